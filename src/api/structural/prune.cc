#include "api/structural/prune.h"

#include <algorithm>

#include "api/schema/decode.h"
#include "api/structural/defaults.h"
#include "api/structural/embedded.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

bool is_meta_field(std::string_view name) {
  return name == "apiVersion" || name == "kind" || name == "metadata";
}

class Pruner {
 public:
  explicit Pruner(std::vector<std::string>* unknown) : unknown_(unknown) {}

  /// `schema` null: nothing is specified.
  void run(Value& value, const Schema* schema) {
    if (schema != nullptr && (schema->rules == nullptr || schema->preserve_unknown)) {
      keep(value, *schema);
      return;
    }
    if (value.is_object()) {
      prune_members(value, schema);
    } else if (value.is_array()) {
      const Schema* items = schema == nullptr ? nullptr : schema->rules->items;
      each_item(value, [&](Value& item) { run(item, items); });
    }
  }

 private:
  void prune_members(Value& value, const Schema* schema) {
    std::vector<std::string> dropped;
    for_members(value, [&](std::string_view key, const Value& member) {
      if (schema == nullptr) {
        tell(key);
        dropped.emplace_back(key);
        return;
      }
      if (schema->embedded_resource && is_meta_field(key)) return;
      if (const Field* field = schema->field(key)) {
        change(value, key, member, field->schema);
      } else if (schema->rules->additional != Additional::unsaid) {
        change(value, key, member, schema->rules->other);
      } else {
        if (!is_meta_field(key) || !path_.empty()) tell(key);
        dropped.emplace_back(key);
      }
    });
    for (const std::string& key : dropped) value.erase(key);
  }

  /// Keeps what is unknown here, and still prunes inside what is specified.
  void keep(Value& value, const Schema& schema) {
    if (schema.rules == nullptr) return;
    if (value.is_object()) {
      for_members(value, [&](std::string_view key, const Value& member) {
        if (schema.embedded_resource && is_meta_field(key)) return;
        if (const Field* field = schema.field(key)) {
          change(value, key, member, field->schema);
        } else if (schema.rules->additional != Additional::unsaid) {
          change(value, key, member, schema.rules->other);
        }
      });
    } else if (value.is_array() && schema.rules->items != nullptr) {
      each_item(value, [&](Value& item) { keep(item, *schema.rules->items); });
    }
  }

  /// The keys are taken first: changing one member may move them all.
  template <typename Visit>
  static void for_members(const Value& value, Visit visit) {
    std::vector<std::string> keys;
    for (const auto& [key, member] : value.members()) keys.emplace_back(key);
    for (const std::string& key : keys) visit(key, value[key]);
  }

  /// Works on a copy, and writes it back only when something changed, so that what is unchanged
  /// stays shared.
  void change(Value& object, std::string_view key, const Value& member, const Schema* schema) {
    if (!member.is_object() && !member.is_array()) return;
    const std::size_t length = path_.size();
    append(path_, path_.empty() ? "" : ".", key);
    Value copy = member;
    run(copy, schema);
    path_.resize(length);
    if (!copy.same_node(member)) object.set(key, std::move(copy));
  }

  template <typename Visit>
  void each_item(Value& list, Visit visit) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_object() && !list[i].is_array()) continue;
      const std::size_t length = path_.size();
      append(path_, '[', i, ']');
      Value copy = list[i];
      visit(copy);
      path_.resize(length);
      if (!copy.same_node(list[i])) list.mut(i) = std::move(copy);
    }
  }

  void tell(std::string_view key) {
    if (unknown_ != nullptr) unknown_->push_back(cat(path_, path_.empty() ? "" : ".", key));
  }

  std::vector<std::string>* unknown_;
  std::string path_;
};

}  // namespace

void prune(Value& object, const Schema& schema, std::vector<std::string>* unknown) {
  std::vector<std::string> found;
  Pruner(&found).run(object, &schema);
  std::sort(found.begin(), found.end());
  if (unknown != nullptr) unknown->insert(unknown->end(), found.begin(), found.end());
}

void prune_value(Value& value, const Schema& schema) { Pruner(nullptr).run(value, &schema); }

Result<Value> decode_custom(const Value& raw, const Schema& schema,
                            std::vector<std::string>& unknown) {
  Value object = raw;
  if (raw.contains("metadata")) {
    DIBS_TRY(auto metadata, decode_metadata(raw["metadata"], "metadata", unknown));
    object.set("metadata", std::move(metadata));
  }
  prune(object, schema, &unknown);
  prune_nulls(object, schema);
  std::vector<std::string> inside;
  DIBS_CHECK(decode_embedded(object, schema, inside));
  std::sort(inside.begin(), inside.end());
  unknown.insert(unknown.end(), inside.begin(), inside.end());
  return object;
}

}  // namespace dibs::api
