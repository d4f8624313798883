#pragma once
// AdmissionReviews: what a webhook is sent, and what its answer says. Pure functions.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/expressions/policy_program.h"
#include "base/result.h"
#include "json/value.h"
#include "net/http.h"

namespace dibs::server {

using json::Value;

/// The AdmissionReview of a request in a version (v1, v1beta1); `uid` is the question's.
Value make_review(std::string_view version, std::string_view uid, const api::PolicyInput& input);

struct ReviewAnswer {
  bool allowed = false;
  Value patch;   // of a JSON patch; null: none
  Value status;  // of a refusal; null: none
  std::vector<std::string> warnings;
  std::map<std::string, std::string> annotations;
};

/// Why a call came to nothing: in words, and with the HTTP status that metrics count.
struct CallFault {
  std::string why;
  int code = 503;
};

/// "group/version, Kind=kind" of an object.
std::string shown_kind(const Value& object);

/// What any webhook has answered, as an object; or why that is none.
struct WebhookAnswer {
  Value review;
  std::optional<CallFault> fault;
};
/// `go_type` is what Go's decoder would have read it into.
WebhookAnswer read_webhook_answer(const net::Response& response, std::string_view go_type);

struct ReviewOutcome {
  ReviewAnswer answer;
  std::optional<CallFault> fault;
};

/// Reads the answer to a question of that version and uid.
ReviewOutcome read_review(std::string_view version, std::string_view uid, bool mutating,
                          const net::Response& response);

/// The refusal of a webhook as its status words it.
Error refusal_of(std::string_view webhook, const Value& status);

}  // namespace dibs::server
