#include "base/strings.h"
#include "rpc/channel.h"

namespace dibs::rpc {
namespace {

/// As Go's grpc/codes spells them.
const char* name_of(Code code) {
  switch (code) {
    case Code::ok:
      return "OK";
    case Code::cancelled:
      return "Canceled";
    case Code::unknown:
      return "Unknown";
    case Code::invalid_argument:
      return "InvalidArgument";
    case Code::deadline_exceeded:
      return "DeadlineExceeded";
    case Code::not_found:
      return "NotFound";
    case Code::already_exists:
      return "AlreadyExists";
    case Code::permission_denied:
      return "PermissionDenied";
    case Code::resource_exhausted:
      return "ResourceExhausted";
    case Code::failed_precondition:
      return "FailedPrecondition";
    case Code::aborted:
      return "Aborted";
    case Code::out_of_range:
      return "OutOfRange";
    case Code::unimplemented:
      return "Unimplemented";
    case Code::internal:
      return "Internal";
    case Code::unavailable:
      return "Unavailable";
    case Code::data_loss:
      return "DataLoss";
    case Code::unauthenticated:
      return "Unauthenticated";
  }
  return "Code";
}

}  // namespace

std::string Status::text() const {
  return cat("rpc error: code = ", name_of(code), " desc = ", message);
}

}  // namespace dibs::rpc
