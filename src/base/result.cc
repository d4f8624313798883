#include "base/result.h"

#include "base/strings.h"

namespace dibs {

int http_status(Code code) {
  switch (code) {
    case Code::bad_request:
      return 400;
    case Code::unauthorized:
      return 401;
    case Code::forbidden:
      return 403;
    case Code::not_found:
      return 404;
    case Code::method_not_allowed:
      return 405;
    case Code::not_acceptable:
      return 406;
    case Code::already_exists:
    case Code::conflict:
      return 409;
    case Code::gone:
    case Code::expired:
      return 410;
    case Code::too_large:
      return 413;
    case Code::unsupported_media_type:
      return 415;
    case Code::invalid:
      return 422;
    case Code::too_many_requests:
      return 429;
    case Code::internal:
    case Code::plain:
    // The API answers ServerTimeout with 500, although 504 exists: clients look at the reason.
    case Code::server_timeout:
      return 500;
    case Code::unavailable:
      return 503;
    case Code::timeout:
      return 504;
  }
  return 500;
}

std::string_view reason(Code code) {
  switch (code) {
    case Code::bad_request:
      return "BadRequest";
    case Code::unauthorized:
      return "Unauthorized";
    case Code::forbidden:
      return "Forbidden";
    case Code::not_found:
      return "NotFound";
    case Code::method_not_allowed:
      return "MethodNotAllowed";
    case Code::not_acceptable:
      return "NotAcceptable";
    case Code::already_exists:
      return "AlreadyExists";
    case Code::conflict:
      return "Conflict";
    case Code::gone:
      return "Gone";
    case Code::expired:
      return "Expired";
    case Code::too_large:
      return "RequestEntityTooLarge";
    case Code::unsupported_media_type:
      return "UnsupportedMediaType";
    case Code::invalid:
      return "Invalid";
    case Code::too_many_requests:
      return "TooManyRequests";
    case Code::internal:
      return "InternalError";
    case Code::plain:
      return "";
    case Code::unavailable:
      return "ServiceUnavailable";
    case Code::timeout:
      return "Timeout";
    case Code::server_timeout:
      return "ServerTimeout";
  }
  return "";
}

int http_status(const Error& error) {
  const ErrorDetails* details = error.details();
  return details != nullptr && details->status != 0 ? details->status : http_status(error.code());
}

std::string_view reason(const Error& error) {
  const ErrorDetails* details = error.details();
  return details != nullptr && details->status != 0 ? std::string_view(details->reason)
                                                    : reason(error.code());
}

Error Error::within(std::string_view context) const {
  Error error(*this);
  error.message_ = cat(context, ": ", message_);
  return error;
}

}  // namespace dibs
