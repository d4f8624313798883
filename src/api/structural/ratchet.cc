#include "api/structural/ratchet.h"

#include <string>
#include <unordered_map>

#include "api/structural/structural.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

/// Absent keys count as their defaults.
const Value& key_value(const Schema& items, const Value& item, std::string_view key) {
  if (const Value* value = item.find(key)) return *value;
  const Field* field = items.field(key);
  return field != nullptr && field->default_value ? *field->default_value : json::null_value();
}

std::string identity(const Schema& list, const Schema& items, const Value& item) {
  std::string text;
  for (const std::string& key : list.map_keys) {
    json::write_to(text, key_value(items, item, key));
    text.push_back(',');
  }
  return text;
}

}  // namespace

std::optional<OldPart> OldPart::member(std::string_view key) const {
  if (!value_->is_object() || !old_->is_object() || schema_->rules == nullptr) return std::nullopt;
  const Value* value = value_->find(key);
  const Value* old = old_->find(key);
  if (value == nullptr || old == nullptr) return std::nullopt;
  const Field* field = schema_->field(key);
  const Schema* schema = field != nullptr ? field->schema : schema_->rules->other;
  if (schema_->embedded_resource && key == "metadata") schema = schema_->rules->metadata;
  // What every object has without its being declared is not the schema's to compare.
  if (schema == nullptr || schema->rules == nullptr) return std::nullopt;
  return OldPart(*schema, *value, *old);
}

std::vector<const Value*> OldPart::items() const {
  std::vector<const Value*> found(value_->size(), nullptr);
  if (schema_->rules == nullptr || !schema_->rules->keyed_list ||
      schema_->rules->items == nullptr || !value_->is_array() || !old_->is_array()) {
    return found;
  }
  const Schema& schema = *schema_->rules->items;
  std::unordered_map<std::string, const Value*> by_keys;
  for (const Value& old : old_->items()) {
    if (old.is_object()) by_keys.emplace(identity(*schema_, schema, old), &old);
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Value& value = (*value_)[i];
    if (!value.is_object()) continue;
    auto match = by_keys.find(identity(*schema_, schema, value));
    if (match != by_keys.end()) found[i] = match->second;
  }
  return found;
}

std::optional<OldPart> OldPart::item(std::size_t index, const Value* old) const {
  if (old == nullptr) return std::nullopt;
  return OldPart(*schema_->rules->items, (*value_)[index], *old);
}

bool OldPart::unchanged() const {
  if (value_->kind() != old_->kind()) return *value_ == *old_;
  if (value_->is_object()) {
    if (value_->size() != old_->size()) return false;
    for (const auto& [key, member_value] : value_->members()) {
      const auto part = member(key);
      if (!part || !part->unchanged()) return false;
    }
    return true;
  }
  if (value_->is_array() && schema_->rules->keyed_list) {
    if (value_->size() != old_->size()) return false;
    const auto olds = items();
    for (std::size_t i = 0; i < olds.size(); ++i) {
      const auto part = item(i, olds[i]);
      if (!part || !part->unchanged()) return false;
    }
    return true;
  }
  return *value_ == *old_;
}

}  // namespace dibs::api
