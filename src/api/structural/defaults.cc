#include "api/structural/defaults.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dibs::api {
namespace {

using json::Value;

const Schema* schema_of(const Schema& schema, std::string_view key) {
  if (const Field* field = schema.field(key)) return field->schema;
  return schema.rules == nullptr ? nullptr : schema.rules->other;
}

const Value* default_of(const Schema& schema) {
  if (schema.rules == nullptr || !schema.rules->default_value) return nullptr;
  return &*schema.rules->default_value;
}

bool is_container(const Value& value) { return value.is_object() || value.is_array(); }

std::vector<std::string> keys_of(const Value& object) {
  std::vector<std::string> keys;
  keys.reserve(object.size());
  for (const auto& [key, member] : object.members()) keys.emplace_back(key);
  return keys;
}

/// Applies `change` to a copy and says whether that made a difference.
template <typename Change>
bool changed(Value& copy, Change change) {
  const Value before = copy;
  change(copy);
  return !copy.same_node(before);
}

void default_member(Value& object, const std::string& key, const Schema& schema) {
  Value member = object[key];
  bool differs = false;
  if (member.is_null() && !schema.nullable) {
    const Value* value = default_of(schema);
    if (value != nullptr) {
      member = *value;
      differs = true;
    }
  }
  if (is_container(member)) {
    differs = changed(member, [&](Value& copy) { apply_custom_defaults(copy, schema); }) || differs;
  }
  if (differs) object.set(key, std::move(member));
}

}  // namespace

void apply_custom_defaults(Value& value, const Schema& schema) {
  if (schema.rules == nullptr) return;
  if (value.is_object()) {
    for (const Field& field : schema.fields) {
      if (!field.default_value) continue;
      const Value* member = value.find(field.name);
      if (member == nullptr || (member->is_null() && !field.schema->nullable)) {
        value.set(field.name, *field.default_value);
      }
    }
    for (const std::string& key : keys_of(value)) {
      if (const Schema* child = schema_of(schema, key)) default_member(value, key, *child);
    }
  } else if (value.is_array() && schema.rules->items != nullptr) {
    const Schema& items = *schema.rules->items;
    for (std::size_t i = 0; i < value.size(); ++i) {
      Value item = value[i];
      bool differs = false;
      if (item.is_null() && !items.nullable) {
        if (const Value* substitute = default_of(items)) {
          item = *substitute;
          differs = true;
        }
      }
      if (is_container(item)) {
        differs =
            changed(item, [&](Value& copy) { apply_custom_defaults(copy, items); }) || differs;
      }
      if (differs) value.mut(i) = std::move(item);
    }
  }
}

void prune_nulls(Value& value, const Schema& schema) {
  if (schema.rules == nullptr) return;
  if (value.is_object()) {
    for (const std::string& key : keys_of(value)) {
      const Schema* child = schema_of(schema, key);
      if (child == nullptr) continue;
      Value member = value[key];
      // Metadata and the like have no rules; their normal form has no nulls to spare.
      if (member.is_null() && !child->nullable && child->rules != nullptr &&
          default_of(*child) == nullptr) {
        value.erase(key);
      } else if (is_container(member) &&
                 changed(member, [&](Value& copy) { prune_nulls(copy, *child); })) {
        value.set(key, std::move(member));
      }
    }
  } else if (value.is_array() && schema.rules->items != nullptr) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      Value item = value[i];
      if (is_container(item) &&
          changed(item, [&](Value& copy) { prune_nulls(copy, *schema.rules->items); })) {
        value.mut(i) = std::move(item);
      }
    }
  }
}

}  // namespace dibs::api
