#include "api/schema/defaults.h"

#include <string>
#include <vector>

namespace dibs::api {
namespace {

using json::Value;

bool is_unset(const Value& value) {
  switch (value.kind()) {
    case json::Kind::null:
      return true;
    case json::Kind::boolean:
      return !value.as_bool();
    case json::Kind::integer:
      return value.as_int() == 0;
    case json::Kind::string:
      return value.as_string().empty();
    default:
      return false;
  }
}

void walk(Value& value, const Schema& schema) {
  if (!schema.may_default) return;
  if (schema.shape == Shape::list && value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) walk(value.mut(i), *schema.element);
    return;
  }
  if (schema.shape == Shape::map && value.is_object()) {
    std::vector<std::string> keys;
    for (const auto& [key, member] : value.members()) keys.emplace_back(key);
    for (const std::string& key : keys) walk(value.mut(key), *schema.element);
    return;
  }
  if (schema.shape != Shape::object || !value.is_object()) return;
  for (const Field& field : schema.fields) {
    const Value* member = value.find(field.name);
    if (field.default_value) {
      if (member == nullptr || (!field.pointer && is_unset(*member)))
        value.set(field.name, *field.default_value);
    } else if (member != nullptr && (member->is_object() || member->is_array()) &&
               field.schema->may_default) {
      walk(value.mut(field.name), *field.schema);
    }
  }
}

}  // namespace

void apply_defaults(Value& object, const Schema& schema) { walk(object, schema); }

}  // namespace dibs::api
