#include "api/kinds/checks.h"

#include <algorithm>
#include <charconv>

#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kNotNegative = "must be greater than or equal to 0";

bool is_reason(std::string_view text) {
  // ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$
  auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  auto word = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  if (text.empty() || !letter(text.front()) || !word(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return word(c) || c == ',' || c == ':'; });
}

}  // namespace

void check_nonnegative_value(const Value& value, const Path& path, FieldErrors& errors) {
  if (value.as_int() < 0) errors.invalid(path, value, kNotNegative);
}

void check_nonnegative(const Value& object, std::string_view key, const Path& path,
                       FieldErrors& errors) {
  check_nonnegative_value(object[key], path.child(key), errors);
}

void check_int_or_percent(const Value& value, const Path& path, FieldErrors& errors) {
  if (value.is_string()) {
    add_invalid(is_percent(value.as_string()), value, path, errors);
  } else {
    check_nonnegative_value(value, path, errors);
  }
}

std::int64_t int_or_percent_value(const Value& value) {
  if (!value.is_string()) return value.as_int();
  std::string_view text = value.as_string();
  if (!is_percent(text).empty()) return 0;
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size() - 1, number);
  return number;
}

void check_at_most_100_percent(const Value& value, const Path& path, FieldErrors& errors) {
  if (value.is_string() && int_or_percent_value(value) > 100) {
    errors.invalid(path, value, "must not be greater than 100%");
  }
}

void invalid_without_value(const Path& path, std::string_view detail, FieldErrors& errors) {
  errors.add(Fault::invalid, path, cat("Invalid value: ", detail));
}

void check_immutable_hidden(const Value& value, const Value& old, const Path& path,
                            FieldErrors& errors) {
  if (!(value == old)) errors.invalid(path, Value(), "field is immutable");
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> texts) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

bool is_set(const Value& object, std::string_view key) { return !object[key].is_null(); }

void set_default(Value& object, std::string_view key, Value value) {
  if (!is_set(object, key)) object.set(key, std::move(value));
}

void set_default_text(Value& object, std::string_view key, std::string_view text) {
  if (object[key].as_string().empty()) object.set(key, text);
}

bool condition_is_true(const Value& conditions, std::string_view type) {
  for (const Value& condition : conditions.items()) {
    if (condition["type"].as_string() == type && condition["status"].as_string() == "True") {
      return true;
    }
  }
  return false;
}

void validate_conditions(const Value& conditions, const Path& path, FieldErrors& errors) {
  std::vector<std::string_view> seen;
  std::size_t i = 0;
  for (const Value& condition : conditions.items()) {
    Path at = path.index(i++);
    std::string_view type = condition["type"].as_string();
    if (std::find(seen.begin(), seen.end(), type) != seen.end()) {
      errors.duplicate(at, condition["type"]);
    }
    seen.push_back(type);
    if (type.empty()) {
      errors.required(at.child("type"), "is required");
    } else {
      add_invalid(is_qualified_name(type), condition["type"], at.child("type"), errors);
    }
    if (condition["status"].as_string().empty()) {
      errors.required(at.child("status"));
    } else if (!is_one_of(condition["status"].as_string(), {"True", "False", "Unknown"})) {
      errors.not_supported(at.child("status"), condition["status"].str(),
                           {"False", "True", "Unknown"});
    }
    if (condition["observedGeneration"].as_int() < 0) {
      errors.invalid(at.child("observedGeneration"), condition["observedGeneration"],
                     "must be greater than or equal to zero");
    }
    if (condition["lastTransitionTime"].is_null()) {
      errors.required(at.child("lastTransitionTime"));
    }
    std::string_view reason = condition["reason"].as_string();
    if (reason.empty()) {
      errors.required(at.child("reason"));
    } else {
      if (!is_reason(reason)) {
        errors.invalid(
            at.child("reason"), condition["reason"],
            regex_text("a condition reason must start with alphabetic character, "
                       "optionally followed by a string of alphanumeric characters or "
                       "'_,:', and must end with an alphanumeric character or '_'",
                       "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
                       {"my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"}));
      }
      if (reason.size() > 1024) errors.too_long(at.child("reason"), 1024);
    }
    if (condition["message"].as_string().size() > 32 * 1024) {
      errors.too_long(at.child("message"), 32 * 1024);
    }
  }
}

Value sorted_map(const Value& map) {
  if (!map.is_object()) return map;
  Value sorted = Value::object();
  for (const std::string& key : sorted_keys(map)) sorted.set(key, map[key]);
  return sorted;
}

void check_domain_prefixed_path(const Value& value, const Path& path, FieldErrors& errors) {
  const std::string_view text = value.as_string();
  const auto slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size())
    return add_invalid(is_domain_prefixed_path(text), value, path, errors);
  const std::string_view host = text.substr(0, slash);
  add_invalid(is_dns1123_subdomain(host), Value(host), path, errors);
  if (is_domain_prefixed_path(cat("a", text.substr(slash))).empty()) return;
  errors.invalid(path, Value(text.substr(slash + 1)),
                 "Invalid path (regex used for validation is "
                 "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
}

Value shown_selector(const Value& selector) {
  if (!selector.is_object()) return selector;
  Value shown = Value::object();
  if (!selector["matchLabels"].empty())
    shown.set("matchLabels", sorted_map(selector["matchLabels"]));
  if (selector["matchExpressions"].empty()) return shown;
  Value expressions = Value::array();
  for (const Value& expression : selector["matchExpressions"].items()) {
    Value one = Value::object(
        {{"key", expression["key"].str()}, {"operator", expression["operator"].str()}});
    if (!expression["values"].empty()) one.set("values", expression["values"]);
    expressions.push(std::move(one));
  }
  shown.set("matchExpressions", std::move(expressions));
  return shown;
}

void check_selector_immutable(const Value& selector, const Value& old, const Path& path,
                              FieldErrors& errors) {
  if (selector == old) return;
  errors.invalid(path, shown_selector(selector), "field is immutable");
}

std::string selector_text(const Value& selector) {
  std::vector<std::pair<std::string, std::string>> pieces;  // key, text
  for (const auto& [key, value] : selector["matchLabels"].members()) {
    pieces.emplace_back(key, cat(key, "=", value.as_string()));
  }
  for (const Value& expression : selector["matchExpressions"].items()) {
    std::string key = expression["key"].str();
    std::string_view op = expression["operator"].as_string();
    if (op == "Exists") {
      pieces.emplace_back(key, key);
    } else if (op == "DoesNotExist") {
      pieces.emplace_back(key, cat("!", key));
    } else {
      std::vector<std::string> values;
      for (const Value& value : expression["values"].items()) values.push_back(value.str());
      std::sort(values.begin(), values.end());
      pieces.emplace_back(key, cat(key, op == "In" ? " in (" : " notin (", join(values, ","), ")"));
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (const auto& piece : pieces) append(out, out.empty() ? "" : ",", piece.second);
  return out;
}

}  // namespace dibs::api
