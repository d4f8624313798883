#pragma once
// The JSONPath of kubectl, as far as printer columns and scale paths of custom resources use it.
//
//   .spec.size  .status.conditions[?(@.type=="Ready")].status  .spec.list[*].name  .a['b.c']
//   .l[0:2]  .a.*  ..name  [0,2]
//
// A missing member yields no value; an index out of range or a filter over something that is no
// list is an error.

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

namespace internal {
struct PathNode;
}

class JsonPath {
 public:
  /// The path without the surrounding braces.
  static Result<JsonPath> parse(std::string_view text);

  /// All values the path selects, in document order.
  Result<std::vector<json::Value>> find(const json::Value& root) const;

 private:
  std::vector<std::shared_ptr<const internal::PathNode>> nodes_;
};

/// A value as text: strings bare, lists and objects as JSON with sorted keys, null as "<no value>".
std::string json_path_text(const json::Value& value);

}  // namespace dibs::api
