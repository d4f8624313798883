#include "server/plugins/webhooks_review.h"

#include <algorithm>

#include "base/strings.h"
#include "json/go_print.h"
#include "json/parse.h"

namespace dibs::server {
namespace {

constexpr std::size_t kMaxDepth = 500;
constexpr std::size_t kMostServerText = 2048;
constexpr std::string_view kGroup = "admission.k8s.io/";

ReviewOutcome failed(std::string why, int code = 503) {
  ReviewOutcome out;
  out.fault = CallFault{std::move(why), code};
  return out;
}

ReviewOutcome invalid(std::string_view why) {
  return failed(cat("received invalid webhook response: ", why));
}

ReviewOutcome undecodable(std::string_view why) {
  return failed(cat("failed to call webhook: ", why));
}

/// What client-go says of an HTTP status that came without a Status object.
std::string words_of(int code, std::string_view text) {
  switch (code) {
    case 400:
      return "the server rejected our request for an unknown reason";
    case 401:
      return "the server has asked for the client to provide credentials";
    case 403:
    case 406:
    case 415:
      return std::string(text);
    case 404:
      return "the server could not find the requested resource";
    case 405:
      return "the server does not allow this method on the requested resource";
    case 409:
      return "the server reported a conflict";
    case 422:
      return "the server rejected our request due to an error in our request";
    case 429:
      return "the server has received too many requests and has asked us to try again later";
    case 503:
      return "the server is currently unable to handle the request";
    case 504:
      return "the server was unable to return a response in the time allotted, but may still be "
             "processing the request";
    default:
      break;
  }
  if (code >= 500) {
    return cat("an error on the server (", quoted(text),
               ") has prevented the request from succeeding");
  }
  return cat("the server responded with the status code ", code,
             " but did not return more information");
}

bool is_text(const net::Response& response) {
  const std::string_view type = response.headers.get("Content-Type");
  return type.empty() ? is_valid_utf8(response.body) : type.starts_with("text/");
}

CallFault refused_by_server(const net::Response& response) {
  auto body = json::parse(response.body, {.max_depth = kMaxDepth});
  if (body.ok() && (*body)["kind"].as_string() == "Status" &&
      (*body)["status"].as_string() != "Success") {
    const auto code = static_cast<int>((*body)["code"].as_int(response.status));
    return {(*body)["message"].str(), code};
  }
  std::string text = "unknown";
  if (is_text(response) && !trim(response.body).empty()) {
    text = trim(std::string_view(response.body).substr(0, kMostServerText));
  }
  return {words_of(response.status, text), response.status};
}

/// In Go's words, or "".
std::string type_fault(const Value& value, std::string_view field, bool fits,
                       std::string_view type) {
  if (value.is_null() || fits) return {};
  return cat("json: cannot unmarshal ", json::go_kind(value), " into Go struct field ", field,
             " of type ", type);
}

/// Faults of what the decoder of upstream would not take.
std::string shape_fault(const Value& review, std::string_view version) {
  const Value& response = review["response"];
  const std::string type = cat(version, ".AdmissionResponse");
  std::vector<std::string> faults = {
      type_fault(response, "AdmissionReview.response", response.is_object(), type)};
  const auto check = [&](std::string_view key, bool fits, std::string_view of) {
    faults.push_back(type_fault(response[key], cat("AdmissionReview.response.", key), fits, of));
  };
  check("uid", response["uid"].is_string(), "types.UID");
  check("allowed", response["allowed"].is_boolean(), "bool");
  check("status", response["status"].is_object(), "v1.Status");
  check("patch", response["patch"].is_string(), "[]uint8");
  check("patchType", response["patchType"].is_string(), cat(version, ".PatchType"));
  check("auditAnnotations", response["auditAnnotations"].is_object(), "map[string]string");
  check("warnings", response["warnings"].is_array(), "[]string");
  for (const auto& [key, value] : response["auditAnnotations"].members()) {
    faults.push_back(type_fault(value, "AdmissionReview.response.auditAnnotations",
                                value.is_string(), "string"));
  }
  for (const Value& value : response["warnings"].items()) {
    faults.push_back(
        type_fault(value, "AdmissionReview.response.warnings", value.is_string(), "string"));
  }
  for (const std::string& fault : faults) {
    if (!fault.empty()) return fault;
  }
  return {};
}

/// Why a patch that came, or not, does not do; "" when it does.
std::string patch_fault(const Value& response, std::string_view patch, bool mutating) {
  const Value& type = response["patchType"];
  if (!mutating) {
    if (!patch.empty()) return "validating webhook may not return response.patch";
    if (!type.is_null()) return "validating webhook may not return response.patchType";
    return {};
  }
  if (!patch.empty() && type.is_null())
    return "webhook returned response.patch but not response.patchType";
  if (patch.empty() && !type.is_null())
    return "webhook returned response.patchType but not response.patch";
  if (!type.is_null() && type.as_string().empty())
    return "webhook returned invalid response.patchType of \"\"";
  return {};
}

/// Whether it is a list of operations, as far as that can be told without an object.
std::string patch_shape_fault(const Value& patch) {
  if (!patch.is_array()) {
    return cat("json: cannot unmarshal ", json::go_kind(patch),
               " into Go value of type jsonpatch.Patch");
  }
  for (const Value& operation : patch.items()) {
    if (!operation.is_object()) {
      return cat("json: cannot unmarshal ", json::go_kind(operation),
                 " into Go value of type jsonpatch.Operation");
    }
  }
  return {};
}

}  // namespace

std::string shown_kind(const Value& review) {
  const std::string_view version = review["apiVersion"].as_string();
  return cat(version.find('/') == std::string_view::npos ? "/" : "", version,
             ", Kind=", review["kind"].as_string());
}

WebhookAnswer read_webhook_answer(const net::Response& response, std::string_view go_type) {
  WebhookAnswer out;
  if (response.status < 200 || response.status > 206) {
    out.fault = refused_by_server(response);
    return out;
  }
  if (response.body.empty()) {
    out.fault = CallFault{cat("0-length response with status code: ", response.status,
                              " and content type: ", response.headers.get("Content-Type"))};
    return out;
  }
  constexpr std::string_view kUnread = "couldn't get version/kind; json parse error: ";
  auto parsed = json::parse(response.body, {.max_depth = kMaxDepth});
  if (!parsed.ok()) {
    out.fault = CallFault{cat(kUnread, parsed.error().message())};
  } else if (!parsed->is_object()) {
    out.fault = CallFault{cat(kUnread, "json: cannot unmarshal ", json::go_kind(*parsed),
                              " into Go value of type ", go_type)};
  } else {
    out.review = std::move(parsed).value();
  }
  return out;
}

Value make_review(std::string_view version, std::string_view uid, const api::PolicyInput& input) {
  Value request = input.request;
  request.set("uid", uid);
  request.set("object", input.object);
  request.set("oldObject", input.old_object);
  if (!request.contains("options")) request.set("options", nullptr);
  return Value::object({{"kind", "AdmissionReview"},
                        {"apiVersion", cat(kGroup, version)},
                        {"request", std::move(request)}});
}

ReviewOutcome read_review(std::string_view version, std::string_view uid, bool mutating,
                          const net::Response& response) {
  const WebhookAnswer answered = read_webhook_answer(response, cat(version, ".AdmissionReview"));
  if (answered.fault) {
    return failed(cat("failed to call webhook: ", answered.fault->why), answered.fault->code);
  }
  const Value& review = answered.review;
  if (std::string fault = shape_fault(review, version); !fault.empty()) return undecodable(fault);
  const Value& given = review["response"];
  if (given.is_null()) return invalid("webhook response was absent");
  const bool strict = version == "v1";  // v1beta1 was never looked at closely
  if (strict && given["uid"].as_string() != uid) {
    return invalid(
        cat("expected response.uid=", quoted(uid), ", got ", quoted(given["uid"].as_string())));
  }
  const Value kind =
      Value::object({{"apiVersion", cat(kGroup, version)}, {"kind", "AdmissionReview"}});
  if (strict && shown_kind(review) != shown_kind(kind)) {
    return invalid(
        cat("expected webhook response of ", shown_kind(kind), ", got ", shown_kind(review)));
  }
  std::string patch;
  if (!base64_decode(given["patch"].as_string(), patch)) {
    return undecodable("illegal base64 data in response.patch");
  }
  if (std::string fault = strict ? patch_fault(given, patch, mutating) : ""; !fault.empty()) {
    return invalid(fault);
  }

  ReviewOutcome out;
  ReviewAnswer& answer = out.answer;
  answer.allowed = given["allowed"].as_bool();
  answer.status = given["status"];
  for (const Value& text : given["warnings"].items()) answer.warnings.push_back(text.str());
  for (const auto& [key, value] : given["auditAnnotations"].members()) {
    answer.annotations[std::string(key)] = value.str();
  }
  if (!answer.allowed || !mutating || patch.empty()) return out;
  auto operations = json::parse(patch, {.max_depth = kMaxDepth});
  std::string fault =
      operations.ok() ? patch_shape_fault(*operations) : operations.error().message();
  if (!fault.empty()) {
    out.fault = CallFault{cat("received undecodable patch in webhook response: ", fault)};
    return out;
  }
  if (operations->empty()) return out;
  if (strict && given["patchType"].as_string() != "JSONPatch") {
    out.fault =
        CallFault{cat("unsupported patch type ", quoted(given["patchType"].as_string())), 400};
    return out;
  }
  answer.patch = std::move(operations).value();
  return out;
}

Error refusal_of(std::string_view webhook, const Value& status) {
  std::string message = cat("admission webhook ", quoted(webhook), " denied the request");
  const std::string_view words = status["message"].as_string();
  const std::string_view reason = status["reason"].as_string();
  if (!words.empty()) {
    append(message, ": ", words);
  } else if (!reason.empty()) {
    append(message, ": ", reason);
  } else {
    append(message, " without explanation");
  }
  ErrorDetails details;
  // What is no code of a refusal, or of HTTP at all, is one of a refusal here.
  details.status = static_cast<int>(std::clamp<std::int64_t>(status["code"].as_int(), 400, 599));
  details.reason = reason;
  const Value& given = status["details"];
  details.name = given["name"].str();
  details.group = given["group"].str();
  details.kind = given["kind"].str();
  details.uid = given["uid"].str();
  for (const Value& cause : given["causes"].items()) {
    details.causes.push_back({cause["reason"].str(), cause["message"].str(), cause["field"].str()});
  }
  details.retry_after_seconds =
      static_cast<int>(std::clamp<std::int64_t>(given["retryAfterSeconds"].as_int(), 0, 3600));
  return {Code::plain, std::move(message), std::move(details)};
}

}  // namespace dibs::server
