#include "api/expressions/typed_values.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/time.h"
#include "cel/calendar.h"
#include "cel/operations.h"
#include "json/go_print.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

/// The name of the Go type that holds such a value upstream.
/// What the schema does not know: only good for being compared.
class Unknown final : public cel::Opaque {
 public:
  explicit Unknown(const Value& tree) : tree_(tree) {}
  std::string_view type_name() const override { return "unknown"; }
  bool equals(const cel::Opaque& other) const override {
    return tree_ == static_cast<const Unknown&>(other).tree_;
  }
  bool equals_only_itself() const override { return false; }

 private:
  const Value& tree_;
};

class Entries final : public cel::Map {
 public:
  Entries(const Value& tree, const TypedSchema& schema) : tree_(tree), schema_(schema) {}

  std::size_t size() const override { return tree_.size(); }

  bool find(const cel::Value& key, cel::Value& out) const override {
    if (!key.is(cel::Kind::string)) {
      out = cel::Value::no_such_overload();
      return true;
    }
    if (schema_.properties.empty()) return find_member(key.text(), out);
    const auto name = unescape_name(key.text());
    return name && find_member(*name, out);
  }

  cel::Value key_at(std::size_t index) const override {
    const std::string_view name = member(index).key();
    if (schema_.properties.empty()) return cel::Value::borrow(name);
    return cel::Value::string(escape_name(name).value_or(std::string(name)));
  }

  cel::Value value_at(std::size_t index) const override {
    cel::Value made;
    find_member(member(index).key(), made);
    return made;
  }

  bool equals(const cel::Map& other, cel::Value& out) const override {
    out = cel::Value::boolean(false);
    if (size() != other.size()) return true;
    for (const auto& [name, value] : tree_.members()) {
      if (schema_of(name) == nullptr) {
        if (!same_unknown(name, value, other)) return true;
        continue;
      }
      cel::Value own;
      cel::Value others;
      const bool is_set = find_member(name, own);
      if (is_set != other.find(cel::Value::borrow(name), others)) return true;
      if (!is_set) continue;
      cel::Value same = cel::equal(own, others);
      if (same.is_true()) continue;
      out = std::move(same);
      return true;
    }
    out = cel::Value::boolean(true);
    return true;
  }

 private:
  const json::Member& member(std::size_t index) const { return tree_.members().begin()[index]; }

  const TypedSchema* schema_of(std::string_view name) const {
    if (schema_.values) return schema_.values.get();
    const auto found = schema_.properties.find(name);
    return found == schema_.properties.end() ? nullptr : found->second.get();
  }

  bool find_member(std::string_view name, cel::Value& out) const {
    const TypedSchema* schema = schema_of(name);
    const Value* value = tree_.find(name);
    if (schema == nullptr || value == nullptr) return false;
    if (!schema_.properties.empty() && value->is_null()) return false;
    out = typed_value(*value, *schema);
    return true;
  }

  /// Members that the schema does not know count where both have them.
  static bool same_unknown(std::string_view name, const Value& value, const cel::Map& other) {
    const auto* typed = dynamic_cast<const Entries*>(&other);
    if (typed == nullptr) return false;
    const Value* theirs = typed->tree_.find(name);
    return theirs == nullptr || value == *theirs;
  }

  const Value& tree_;
  const TypedSchema& schema_;
};

/// A text that two scalars share exactly when they are the same.
std::string identity_of(const cel::Value& value) {
  switch (value.kind()) {
    case cel::Kind::boolean:
      return value.as_boolean() ? "b1" : "b0";
    case cel::Kind::integer:
      return cat("i", value.as_integer());
    case cel::Kind::uinteger:
      return cat("u", value.as_uinteger());
    case cel::Kind::real:
      return cat("d", cel::show_double(value.as_real()));
    case cel::Kind::duration:
      return cat("n", value.as_duration());
    case cel::Kind::timestamp:
      return cat("t", value.timestamp_seconds(), ".", value.timestamp_nanos());
    case cel::Kind::string:
      return cat("s", value.text().size(), ":", value.text());
    case cel::Kind::bytes:
      return cat("y", value.text().size(), ":", value.text());
    default:
      return "-";
  }
}

constexpr std::string_view kScalarsOnly =
    "listSet operations are only supported on lists of scalar values";

bool is_container(const cel::Value& value) {
  return value.is(cel::Kind::list) || value.is(cel::Kind::map);
}

/// A list whose equality and sum follow its list type. What it holds is the subclass's matter.
class TypedItems : public cel::List {
 public:
  explicit TypedItems(const TypedSchema& schema) : schema_(schema) {}

  bool equals(const cel::List& other, cel::Value& out) const override {
    if (schema_.list_type == TypedList::atomic) return false;
    if (size() != other.size()) {
      out = cel::Value::boolean(false);
      return true;
    }
    out = schema_.list_type == TypedList::set ? same_set(other) : same_keyed(other);
    return true;
  }

  bool plus(const cel::List& other, cel::Value& out) const override;

 protected:
  using Index = std::unordered_map<std::string, std::size_t>;

  std::string identity(const cel::Value& item) const {
    if (schema_.list_type == TypedList::set) return identity_of(item);
    std::string made;
    for (const std::string& key : schema_.keys) {
      cel::Value found;
      const auto name = cel::Value::string(escape_name(key).value_or(key));
      if (item.is(cel::Kind::map)) item.as_map().find(name, found);
      append(made, identity_of(found), ",");
    }
    return made;
  }

  /// By identity; false for a set of other things than scalars.
  bool index(Index& made) const {
    for (std::size_t i = 0; i < size(); ++i) {
      const cel::Value item = at(i);
      if (schema_.list_type == TypedList::set && is_container(item)) return false;
      made[identity(item)] = i;
    }
    return true;
  }

  cel::Value same_set(const cel::List& other) const {
    Index own;
    if (!index(own)) return cel::Value::borrow(kScalarsOnly, cel::Kind::error);
    Index seen;
    for (std::size_t i = 0; i < other.size(); ++i) {
      const cel::Value item = other.at(i);
      if (is_container(item)) return cel::Value::borrow(kScalarsOnly, cel::Kind::error);
      std::string key = identity(item);
      if (!own.contains(key)) return cel::Value::boolean(false);
      seen.emplace(std::move(key), i);
    }
    return cel::Value::boolean(seen.size() == own.size());
  }

  cel::Value same_keyed(const cel::List& other) const {
    Index own;
    index(own);
    Index seen;
    for (std::size_t i = 0; i < other.size(); ++i) {
      const cel::Value item = other.at(i);
      std::string key = identity(item);
      const auto found = own.find(key);
      if (found == own.end()) return cel::Value::boolean(false);
      cel::Value same = cel::equal(at(found->second), item);
      if (!same.is_true()) return same;
      seen.emplace(std::move(key), i);
    }
    return cel::Value::boolean(seen.size() == own.size());
  }

  const TypedSchema& schema_;
};

/// Items of a tree.
class TreeItems final : public TypedItems {
 public:
  TreeItems(const Value& tree, const TypedSchema& schema) : TypedItems(schema), tree_(tree) {}
  std::size_t size() const override { return tree_.size(); }
  cel::Value at(std::size_t index) const override {
    return typed_value(tree_[index], *schema_.items);
  }

 private:
  const Value& tree_;
};

/// The sum of two lists, which is of the first one's list type again.
class SumItems final : public TypedItems {
 public:
  SumItems(std::vector<cel::Value> items, const TypedSchema& schema)
      : TypedItems(schema), items_(std::move(items)) {}
  std::size_t size() const override { return items_.size(); }
  cel::Value at(std::size_t index) const override { return items_[index]; }

 private:
  std::vector<cel::Value> items_;
};

bool TypedItems::plus(const cel::List& other, cel::Value& out) const {
  if (schema_.list_type == TypedList::atomic) return false;
  const bool is_set = schema_.list_type == TypedList::set;
  Index own;
  if (!index(own)) {
    out = cel::Value::borrow(kScalarsOnly, cel::Kind::error);
    return true;
  }
  std::vector<cel::Value> items;
  items.reserve(size() + other.size());
  for (std::size_t i = 0; i < size(); ++i) items.push_back(at(i));
  for (std::size_t i = 0; i < other.size(); ++i) {
    cel::Value item = other.at(i);
    if (is_set && is_container(item)) {
      out = cel::Value::borrow(kScalarsOnly, cel::Kind::error);
      return true;
    }
    std::string key = identity(item);
    const auto found = own.find(key);
    if (found == own.end()) {
      // Only sets watch for doubles among what is added.
      if (is_set) own.emplace(std::move(key), items.size());
      items.push_back(std::move(item));
    } else if (!is_set) {
      items[found->second] = std::move(item);
    }
  }
  out = cel::Value::list(static_cast<const cel::List*>(new SumItems(std::move(items), schema_)));
  return true;
}

/// Units beyond Go's: "3 weeks", "1 day 2 hours". The text has passed the format's check.
bool wordy_duration(std::string_view text, std::int64_t& nanoseconds) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kMinute = 60 * kSecond;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  static constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"nano", 1},      {"ns", 1},        {"micro", 1000},     {"us", 1000},     {"\u00b5s", 1000},
      {"ms", 1000'000}, {"sec", kSecond}, {"milli", 1000'000}, {"min", kMinute}, {"hour", kHour},
      {"hr", kHour},    {"day", kDay},    {"week", 7 * kDay},  {"s", kSecond},   {"m", kMinute},
      {"h", kHour},     {"wk", 7 * kDay}, {"d", kDay},         {"w", 7 * kDay}};
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  bool any = false;
  std::size_t i = 0;
  nanoseconds = 0;
  while (i < text.size()) {
    if (!is_digit(text[i])) {
      ++i;
      continue;
    }
    std::int64_t count = 0;
    for (; i < text.size() && is_digit(text[i]); ++i) {
      if (__builtin_mul_overflow(count, 10, &count) ||
          __builtin_add_overflow(count, text[i] - '0', &count))
        return false;
    }
    while (i < text.size() && text[i] == ' ') ++i;
    std::size_t end = i;
    while (end < text.size() && !is_digit(text[end]) && text[end] != ' ' && text[end] != ',') ++end;
    const std::string unit = to_lower(text.substr(i, end - i));
    for (const auto& [name, size] : kUnits) {
      const bool exact = name.size() <= 3 && name != "sec" && name != "min" && name != "day";
      if (exact ? unit != name : !unit.starts_with(name)) continue;
      std::int64_t part;
      if (__builtin_mul_overflow(count, size, &part) ||
          __builtin_add_overflow(nanoseconds, part, &nanoseconds))
        return false;
      any = true;
      break;
    }
    i = end;
  }
  return any;
}

cel::Value formatted(std::string_view text, TypedShape shape) {
  std::int64_t seconds = 0;
  std::uint32_t nanos = 0;
  switch (shape) {
    case TypedShape::duration: {
      if (const auto plain = parse_duration(text); plain.ok())
        return cel::Value::duration(plain->count());
      if (wordy_duration(text, seconds)) return cel::Value::duration(seconds);
      return cel::Value::error(
          cat("Invalid duration ", text, ": unable to parse ", quoted(text), " as duration"));
    }
    case TypedShape::date: {
      if (text.size() == 10 && cel::parse_timestamp(cat(text, "T00:00:00Z"), seconds, nanos))
        return cel::Value::timestamp(seconds, nanos);
      const auto parsed = parse_rfc3339(text);
      return cel::Value::error(cat("Invalid date formatted string ", text, ": ",
                                   parsed.ok() ? "extra text" : parsed.error().message()));
    }
    case TypedShape::date_time: {
      if (cel::parse_timestamp(text, seconds, nanos)) return cel::Value::timestamp(seconds, nanos);
      const auto parsed = parse_rfc3339(text);
      return cel::Value::error(cat("Invalid date-time formatted string ", text, ": ",
                                   parsed.ok() ? "out of range" : parsed.error().message()));
    }
    case TypedShape::bytes: {
      std::string bytes;
      if (base64_decode(text, bytes)) return cel::Value::bytes(std::move(bytes));
      return cel::Value::error(
          cat("Invalid byte formatted string ", text, ": illegal base64 data"));
    }
    default:
      return cel::Value::borrow(text);
  }
}

cel::Value expected(std::string_view what, const Value& tree) {
  return cel::Value::error(cat("invalid data, expected ", what, ", got ", go_type(tree)));
}

}  // namespace

cel::Value typed_value(const Value& tree, const TypedSchema& schema) {
  if (tree.is_null()) {
    if (schema.nullable) return cel::Value::null();
    return cel::Value::borrow("invalid data, got null for schema with nullable=false",
                              cel::Kind::error);
  }
  switch (schema.shape) {
    case TypedShape::int_or_string:
      if (tree.is_string()) return cel::Value::borrow(tree.as_string());
      if (tree.is_integer()) return cel::Value::integer(tree.as_int());
      return cel::Value::borrow(
          "invalid data, expected XIntOrString value to be either a string or integer",
          cel::Kind::error);
    case TypedShape::object:
    case TypedShape::map:
      if (tree.is_object())
        return cel::Value::map(static_cast<const cel::Map*>(new Entries(tree, schema)));
      return cel::Value::borrow(
          "invalid data, expected a map for the provided schema with type=object",
          cel::Kind::error);
    case TypedShape::list:
      if (!tree.is_array())
        return cel::Value::borrow(
            "invalid data, expected an array for the provided schema with type=array",
            cel::Kind::error);
      if (!schema.items)
        return cel::Value::borrow("invalid array type, expected Items with a non-empty Schema",
                                  cel::Kind::error);
      return cel::Value::list(static_cast<const cel::List*>(new TreeItems(tree, schema)));
    case TypedShape::string:
    case TypedShape::bytes:
    case TypedShape::date:
    case TypedShape::date_time:
    case TypedShape::duration:
      if (!tree.is_string()) return expected("string", tree);
      return formatted(tree.as_string(), schema.shape);
    case TypedShape::number:
      if (tree.is_number()) return cel::Value::real(tree.as_double());
      return expected("float", tree);
    case TypedShape::integer:
      if (tree.is_integer()) return cel::Value::integer(tree.as_int());
      return expected("int", tree);
    case TypedShape::boolean:
      if (tree.is_boolean()) return cel::Value::boolean(tree.as_bool());
      return expected("bool", tree);
    case TypedShape::unknown:
      return cel::Value::opaque(new Unknown(tree));
  }
  return {};
}

}  // namespace dibs::api
