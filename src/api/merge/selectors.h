#pragma once
// Selectors: which objects a request is about, by their labels or by a few fields.
//
// A selector is a list of requirements that must all hold; an empty list holds for everything. Both
// kinds are parsed from query parameters, label selectors also from meta/v1 LabelSelector objects.
// Values: immutable once made, free to copy.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

using json::Value;

enum class LabelOperator : std::uint8_t {
  equals,         // key=value
  double_equals,  // key==value
  not_equals,     // key!=value: holds where the key is absent too
  in,
  not_in,  // holds where the key is absent too
  exists,
  does_not_exist,
  greater_than,  // both sides are integers
  less_than,
};

struct LabelRequirement {
  std::string key;
  LabelOperator op = LabelOperator::exists;
  std::vector<std::string> values;

  /// `value` is that of the key, or nullptr when the object lacks it.
  bool matches(const std::string_view* value) const;
  friend bool operator==(const LabelRequirement&, const LabelRequirement&) = default;
};

class LabelSelector {
 public:
  /// Holds for everything.
  LabelSelector() = default;
  /// Holds for nothing: what an absent LabelSelector object means.
  static LabelSelector nothing();
  explicit LabelSelector(std::vector<LabelRequirement> requirements);

  /// `labels` is a map of strings (metadata.labels), or null.
  bool matches(const Value& labels) const;
  bool empty() const { return !nothing_ && requirements_.empty(); }
  bool matches_nothing() const { return nothing_; }
  /// Sorted by key; those of one key in the order written.
  const std::vector<LabelRequirement>& requirements() const { return requirements_; }
  /// The canonical spelling; parses back to an equal selector.
  std::string str() const;

 private:
  std::vector<LabelRequirement> requirements_;
  bool nothing_ = false;
};

/// The labelSelector parameter. Errors are bad_request in the API's words.
Result<LabelSelector> parse_label_selector(std::string_view text);

/// A meta/v1 LabelSelector (matchLabels, matchExpressions); null selects nothing, {} everything.
/// For objects that have been judged by validation: the error is a plain text about the first
/// fault.
Result<LabelSelector> to_label_selector(const Value& selector);

/// A core/v1 NodeSelector: one of its terms holds for the node.
bool node_selector_matches(const Value& selector, const Value& node);

struct FieldRequirement {
  std::string field;
  bool equal = true;  // false: !=
  std::string value;
  friend bool operator==(const FieldRequirement&, const FieldRequirement&) = default;
};

class FieldSelector {
 public:
  FieldSelector() = default;
  explicit FieldSelector(std::vector<FieldRequirement> requirements)
      : requirements_(std::move(requirements)) {}

  /// `value_of` gives a field's value; "" where it is not set.
  bool matches(const std::function<std::string_view(std::string_view field)>& value_of) const;
  bool empty() const { return requirements_.empty(); }
  const std::vector<FieldRequirement>& requirements() const { return requirements_; }
  /// The value of the first `field=` requirement: metadata.name= turns a list into a get.
  std::optional<std::string> exact(std::string_view field) const;

 private:
  std::vector<FieldRequirement> requirements_;
};

/// The fieldSelector parameter. Which fields a kind knows is the caller's to check.
Result<FieldSelector> parse_field_selector(std::string_view text);

}  // namespace dibs::api
