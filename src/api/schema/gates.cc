#include "api/schema/gates.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

namespace dibs::api {
namespace {

using json::Value;
using Names = std::set<std::string_view>;
/// Told of each field that has gates and is set; true ends the walk.
using Visit = std::function<bool(const Field& field)>;

void collect(const Schema& schema, std::set<const Schema*>& seen, std::set<std::string>& names) {
  if (!schema.gated || !seen.insert(&schema).second) return;
  if (schema.element) collect(*schema.element, seen, names);
  for (const Field& field : schema.fields) {
    names.insert(field.gates.begin(), field.gates.end());
    collect(*field.schema, seen, names);
  }
}

bool is_used(const Field& field, const Value& value) {
  return field.pointer ? !value.is_null() : !value.is_null() && !value.empty();
}

bool has_gate(const Field& field, const Names& gates) {
  return std::any_of(field.gates.begin(), field.gates.end(),
                     [&](const std::string& gate) { return gates.contains(gate); });
}

bool walk(const Schema& schema, const Value& value, const Visit& visit) {
  if (!schema.gated) return false;
  if (schema.shape == Shape::list) {
    auto items = value.items();
    return std::any_of(items.begin(), items.end(),
                       [&](const Value& item) { return walk(*schema.element, item, visit); });
  }
  if (schema.shape == Shape::map) {
    for (const auto& [key, item] : value.members()) {
      if (walk(*schema.element, item, visit)) return true;
    }
    return false;
  }
  for (const Field& field : schema.fields) {
    if (field.gates.empty() && !field.schema->gated) continue;
    const Value& member = value[field.name];
    if (!field.gates.empty() && is_used(field, member) && visit(field)) return true;
    if (walk(*field.schema, member, visit)) return true;
  }
  return false;
}

bool holds(const Schema& schema, const Value& value, const Names& gates) {
  return walk(schema, value, [&](const Field& field) { return has_gate(field, gates); });
}

/// Goes only where there is something, so that the rest of the object stays shared.
void drop(const Schema& schema, Value& value, const Names& gates) {
  if (schema.shape == Shape::list) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (holds(*schema.element, value[i], gates)) drop(*schema.element, value.mut(i), gates);
    }
    return;
  }
  if (schema.shape == Shape::map) {
    std::vector<std::string> keys;
    for (const auto& [key, item] : value.members()) {
      if (holds(*schema.element, item, gates)) keys.emplace_back(key);
    }
    for (const std::string& key : keys) drop(*schema.element, value.mut(key), gates);
    return;
  }
  for (const Field& field : schema.fields) {
    if (has_gate(field, gates)) {
      value.erase(field.name);
    } else if (holds(*field.schema, value[field.name], gates)) {
      drop(*field.schema, value.mut(field.name), gates);
    }
  }
}

}  // namespace

Gates::Gates(const Schema& schema) : schema_(schema) {
  std::set<const Schema*> seen;
  std::set<std::string> names;
  collect(schema, seen, names);
  names_.assign(names.begin(), names.end());
}

void Gates::drop_disabled(Value& object, const Value* old, const Features& features) const {
  Names off;
  for (const std::string& name : names_) {
    if (!features.on(name)) off.insert(name);
  }
  if (off.empty() || !holds(schema_, object, off)) return;
  if (old) {
    walk(schema_, *old, [&](const Field& field) {
      for (const std::string& gate : field.gates) off.erase(gate);
      return off.empty();
    });
  }
  if (!off.empty()) drop(schema_, object, off);
}

}  // namespace dibs::api
