#pragma once
// ConversionReviews: what the conversion webhook of a definition is sent, and what its answer is
// worth. Pure functions; the words of faults are upstream's.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "net/http.h"

namespace dibs::server {

using json::Value;

/// Why an answer is of no use; `type` as metrics name it, without "conversion_webhook_" and
/// "_failure".
struct ConversionFault {
  std::string why;
  std::string_view type;
};

struct ConversionAnswer {
  std::vector<Value> objects;  // one for each that was sent, in their order
  std::optional<ConversionFault> fault;
};

/// `version` of the review (v1, v1beta1); `uid` is the question's.
Value make_conversion(std::string_view version, std::string_view uid, std::string_view api_version,
                      const std::vector<Value>& objects);
/// Of what was asked by make_conversion(). Whatever but labels and annotations the webhook did to
/// metadata is undone.
ConversionAnswer read_conversion(std::string_view version, std::string_view uid,
                                 std::string_view api_version, const std::vector<Value>& objects,
                                 const net::Response& response);

}  // namespace dibs::server
