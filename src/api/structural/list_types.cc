#include "api/structural/list_types.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

Value sorted(const Value& value) {
  Value out;
  if (value.is_array()) {
    out = Value::array();
    for (const Value& item : value.items()) out.push(sorted(item));
    return out;
  }
  if (!value.is_object()) return value;
  std::vector<std::string_view> keys;
  for (const auto& [key, member] : value.members()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  out = Value::object();
  for (std::string_view key : keys) out.set(key, sorted(value[key]));
  return out;
}

/// The second of equal items, for each that is there more than once.
std::vector<std::size_t> repetitions(const std::vector<Value>& items) {
  std::unordered_map<std::string, int> seen;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const int times = ++seen[json::write(sorted(items[i]))];
    if (times == 2) found.push_back(i);
  }
  return found;
}

void judge_keyed(const Value& list, const Schema& schema, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_object() && !list[i].is_null()) {
      errors.invalid(path.index(i), list[i], "must be an object for an array of list-type map");
      return;
    }
  }
  std::vector<Value> keys;
  for (const Value& item : list.items()) {
    Value key = Value::object();
    for (const std::string& name : schema.map_keys) {
      if (const Value* value = item.find(name)) key.set(name, *value);
    }
    keys.push_back(std::move(key));
  }
  for (std::size_t i : repetitions(keys)) errors.duplicate(path.index(i), sorted(keys[i]));
}

void judge(const Value& value, const Schema& schema, const Path& path, FieldErrors& errors) {
  if (schema.rules == nullptr) return;
  if (value.is_object()) {
    for (const auto& [key, member] : value.members()) {
      if (schema.rules->other != nullptr)
        judge(member, *schema.rules->other, path.key(key), errors);
      if (const Field* field = schema.field(key))
        judge(member, *field->schema, path.child(key), errors);
    }
  } else if (value.is_array()) {
    if (schema.rules->keyed_list) {
      judge_keyed(value, schema, path, errors);
    } else if (schema.list_type == ListType::set) {
      std::vector<Value> items;
      for (const Value& item : value.items()) items.push_back(item);
      for (std::size_t i : repetitions(items)) errors.duplicate(path.index(i), sorted(value[i]));
    }
    if (schema.rules->items == nullptr) return;
    for (std::size_t i = 0; i < value.size(); ++i)
      judge(value[i], *schema.rules->items, path.index(i), errors);
  }
}

}  // namespace

void validate_list_types(const Value& object, const Schema& schema, FieldErrors& errors) {
  judge(object, schema, Path(), errors);
}

}  // namespace dibs::api
