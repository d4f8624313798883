#include "api/merge/merge.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"

namespace dibs::api {
namespace {

struct ElementLess {
  bool operator()(std::string_view a, std::string_view b) const {
    return compare_spelled(a, b) < 0;
  }
};

class Merger {
 public:
  // Null for "nothing there": a container of nothing but nothing.
  std::optional<Value> merge(SchemaPtr schema, const Value& live, const Value& applied,
                             bool is_root) {
    if (live.same_node(applied)) return applied;
    const Atom atom = atom_of(schema, applied);
    if (atom == Atom::list && !is_atomic_list(schema) &&
        (is_filled_list(live) || is_filled_list(applied))) {
      return merge_lists(schema, live, applied);
    }
    if (atom == Atom::map && !is_atomic_map(schema) &&
        (is_filled_map(live) || is_filled_map(applied))) {
      return merge_maps(schema, live, applied, is_root);
    }
    return applied;
  }

  std::optional<Error> error;

 private:
  static bool is_filled_list(const Value& value) { return value.is_array() && !value.empty(); }
  static bool is_filled_map(const Value& value) { return value.is_object() && !value.empty(); }

  std::optional<Value> merge_maps(SchemaPtr schema, const Value& live, const Value& applied,
                                  bool is_root) {
    if (!is_filled_map(live)) return applied;
    Value out = live;
    for (const auto& [key, value] : applied.members()) {
      const Value* old = live.find(key);
      if (old == nullptr) {
        out.set(key, value);
      } else if (auto merged = merge(child_of(schema, key, is_root).schema, *old, value, false)) {
        if (!merged->same_node(*old)) out.set(key, std::move(*merged));
      }
    }
    return out;
  }

  std::vector<ListItem> items_of(SchemaPtr schema, const Value& list) {
    if (!list.is_array()) return {};
    auto items = list_items(schema, list);
    if (items.ok()) return std::move(items).value();
    if (!error) error = items.error();
    return {};
  }

  // Items that only one side has keep their place beside their neighbours; those of both stand in
  // the order in which they are applied.
  std::optional<Value> merge_lists(SchemaPtr schema, const Value& live, const Value& applied) {
    const auto right = items_of(schema, applied);
    const auto left = items_of(schema, live);
    if (error) return std::nullopt;
    const SchemaPtr element = element_of(schema);

    std::map<std::string_view, const Value*, ElementLess> right_values;
    for (const ListItem& item : right) right_values.emplace(item.spelling(), item.value);
    std::map<std::string_view, const Value*, ElementLess> left_values;
    for (const ListItem& item : left) {
      const auto [at, fresh] = left_values.emplace(item.spelling(), item.value);
      // Items that repeat an element are not merged with: the applied one takes their place.
      if (!fresh) at->second = &json::null_value();
    }

    std::vector<std::string_view> shared;
    for (const ListItem& item : right) {
      if (left_values.contains(item.spelling())) shared.push_back(item.spelling());
    }
    std::size_t next = 0;
    const auto is_next = [&](const ListItem& item) {
      return next < shared.size() && compare_spelled(shared[next], item.spelling()) == 0;
    };

    Value out = Value::array();
    std::set<std::string_view, ElementLess> done;
    const auto take_right = [&](const ListItem& item) {
      done.insert(item.spelling());
      const auto old = left_values.find(item.spelling());
      if (old == left_values.end()) {
        out.push(*item.value);
      } else if (auto merged = merge(element, *old->second, *item.value, false)) {
        out.push(std::move(*merged));
      }
    };

    std::size_t l = 0;
    std::size_t r = 0;
    while (l < left.size() || r < right.size()) {
      if (l < left.size() && r < right.size()) {
        if (compare_spelled(left[l].spelling(), right[r].spelling()) == 0) {
          take_right(right[r]);
          ++l;
          ++r;
          if (next < shared.size()) ++next;
          continue;
        }
        if (right_values.contains(left[l].spelling()) && next < shared.size() &&
            !is_next(left[l])) {
          ++l;
          continue;
        }
      }
      if (l < left.size()) {
        if (!right_values.contains(left[l].spelling())) {
          out.push(*left[l].value);
          ++l;
          continue;
        }
        if (done.contains(left[l].spelling())) ++l;
      }
      if (r < right.size()) {
        const bool was_next = is_next(right[r]);
        take_right(right[r]);
        ++r;
        if (was_next) ++next;
      }
    }
    if (out.empty()) return std::nullopt;
    return out;
  }
};

std::optional<Value> remove_from(SchemaPtr schema, const Value& value, const Value& level,
                                 bool is_root) {
  switch (atom_of(schema, value)) {
    case Atom::scalar:
      return value;
    case Atom::list: {
      if (!value.is_array() || value.empty() || is_atomic_list(schema)) return std::nullopt;
      const auto items = list_items(schema, value);
      if (!items.ok()) return value;
      Value out = Value::array();
      for (const ListItem& item : *items) {
        const Value* entry = find_entry(level, item.spelling());
        if (entry == nullptr) {
          out.push(*item.value);
        } else if (!is_member(*entry)) {
          out.push(remove_from(element_of(schema), *item.value, *entry, false).value_or(Value()));
        }
      }
      if (out.empty()) return std::nullopt;
      return out;
    }
    case Atom::map: {
      if (!value.is_object() || value.empty() || is_atomic_map(schema)) return std::nullopt;
      Value out = value;
      for (const auto& [spelling, entry] : entries_of(level)) {
        if (!is_field_spelling(spelling)) continue;
        const std::string_view key = spelled_name(spelling);
        const Value* child = value.find(key);
        if (child == nullptr) continue;
        if (is_member(entry)) {
          out.erase(key);
        } else {
          const SchemaPtr below = child_of(schema, key, is_root).schema;
          out.set(key, remove_from(below, *child, entry, false).value_or(Value()));
        }
      }
      if (out.empty()) return std::nullopt;
      return out;
    }
  }
  return value;
}

SchemaPtr schema_at(SchemaPtr schema, std::string_view spelling, bool is_root) {
  return is_field_spelling(spelling) ? child_of(schema, spelled_name(spelling), is_root).schema
                                     : element_of(schema);
}

/// The level with `edit(spelling, below)` in place of what lies below each of its entries.
template <typename Edit>
Value edit_below(const Value& level, Edit edit) {
  LevelEdit out(level);
  if (level.size() > entries_of(level).size()) out.keep();
  for (const auto& [spelling, entry] : entries_of(level)) {
    if (entry.empty()) {
      out.keep();
    } else {
      out.replace(edit(spelling, entry));
    }
  }
  return out.finish();
}

Value name_fields(const Value& level, SchemaPtr schema, bool is_root) {
  return edit_below(level, [&](std::string_view spelling, const Value& entry) {
    Value below = name_fields(entry, schema_at(schema, spelling, is_root), false);
    if (is_field_spelling(spelling) && child_of(schema, spelled_name(spelling), is_root).declared) {
      below = united_entries(below, Value::object());
    }
    return below;
  });
}

bool is_atomic(SchemaPtr schema) {
  if (schema == nullptr) return false;
  if (schema->shape == Shape::list) return is_atomic_list(schema);
  return (schema->shape == Shape::object || schema->shape == Shape::map) && schema->atomic;
}

Value reconcile(const Value& level, SchemaPtr schema, bool is_root) {
  return edit_below(level, [&](std::string_view spelling, const Value& entry) {
    const SchemaPtr child = schema_at(schema, spelling, is_root);
    return is_atomic(child) ? Value::object() : reconcile(entry, child, false);
  });
}

}  // namespace

Result<Value> merge_objects(const Value& live, const Value& applied, const Schema& schema) {
  Merger merger;
  auto merged = merger.merge(&schema, live, applied, true);
  if (merger.error) return *merger.error;
  return merged.value_or(Value::object());
}

Value remove_items(const Value& object, const FieldSet& set, const Schema& schema) {
  if (set.empty()) return object;
  return remove_from(&schema, object, set.to_json(), true).value_or(Value::object());
}

FieldSet with_named_fields(const FieldSet& set, const Schema& schema) {
  return FieldSet(name_fields(set.to_json(), &schema, true));
}

FieldSet reconciled(const FieldSet& set, const Schema& schema) {
  return FieldSet(reconcile(set.to_json(), &schema, true));
}

}  // namespace dibs::api
