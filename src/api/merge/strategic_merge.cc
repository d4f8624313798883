#include "api/merge/strategic_merge.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "json/go_print.h"

namespace dibs::api {
namespace {

using json::Value;
using List = std::vector<Value>;

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kDeleteFrom = "$deleteFromPrimitiveList";
constexpr std::string_view kSetOrder = "$setElementOrder";

List to_list(const Value& array) {
  const auto items = array.items();
  return List(items.begin(), items.end());
}

Value to_array(const List& list) {
  Value out = Value::array();
  for (const Value& item : list) out.push(item);
  return out;
}

Error no_merge_key(const Value& map, std::string_view key) {
  return Error::plain(cat("map: ", go_value(map), " does not contain declared merge key: ", key));
}

Error bad_patch_type(const Value& directive, const Value& map) {
  const std::string shown = directive.is_string()
                                ? directive.str()
                                : cat("%!s(", go_type(directive), '=', go_value(directive), ')');
  return Error::plain(cat("unknown patch type: ", shown, " in map: ", go_value(map)));
}

Error bad_type(std::string_view expected, const Value& actual) {
  return Error::plain(cat("expected a ", expected, ", but received a ",
                          actual.is_null() ? std::string_view("%!s(<nil>)") : go_type(actual)));
}

Error bad_order_format() {
  return Error::bad_request("invalid patch format of setElementOrder list");
}

// How a field merges, and what it is made of.
struct Meta {
  const Schema* schema = nullptr;  // of a list: its elements
  bool merge = false;
  std::string_view key;
};

Result<Meta> lookup(const Schema* schema, std::string_view name) {
  if (schema != nullptr && schema->shape == Shape::map) return Meta{schema->element, false, {}};
  const Field* field = schema == nullptr ? nullptr : schema->field(name);
  if (field == nullptr) {
    return Error::plain(cat("unable to find api field in struct ",
                            schema == nullptr ? "" : schema->name, " for the json field ",
                            quoted(name)));
  }
  return Meta{field->schema, field->merge, field->merge_key};
}

Result<Meta> lookup_list(const Schema* schema, std::string_view name) {
  DIBS_TRY(auto meta, lookup(schema, name));
  if (meta.schema == nullptr || meta.schema->shape != Shape::list) {
    return Error::plain("expected slice or array type, but got: struct");
  }
  meta.schema = meta.schema->element;
  return meta;
}

// Where the merge key is ignored it is the items themselves that are compared.
const Value& key_of(const Value& item, std::string_view key, bool maps) {
  return maps ? item[key] : item;
}

int index_of(const List& list, const Value& item, std::string_view key, bool maps) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (key_of(list[i], key, maps) == key_of(item, key, maps)) return static_cast<int>(i);
  }
  return -1;
}

// All items of both lists are of one kind, which is told: true for maps.
Result<bool> are_maps(const List& original, const List& patch) {
  std::optional<std::string_view> type;
  for (const List* list : {&original, &patch}) {
    for (const Value& item : *list) {
      if (!type) {
        if (item.is_array()) {
          return Error::invalid("the server rejected our request due to an error in our request");
        }
        type = go_type(item);
      } else if (*type != go_type(item)) {
        return Error::plain(cat("list element types are not identical: [",
                                go_value(to_array(original)), ' ', go_value(to_array(patch)), ']'));
      }
    }
  }
  if (!type) return Error::plain("no elements in any of the given slices");
  return *type == "map[string]interface {}";
}

Result<int> find_item(const List& list, std::string_view key, const Value& value) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_object()) return Error::plain(cat("value for key ", i, " is not a map"));
    const Value* found = list[i].find(key);
    if (found != nullptr && *found == value) return static_cast<int>(i);
  }
  return -1;
}

Result<> check_merge_keys(const List& list, std::string_view key) {
  for (const Value& item : list) {
    if (!item.is_object()) return bad_type("map[string]interface {}", item);
    if (!item.contains(key)) return no_merge_key(item, key);
  }
  return success();
}

// Stable, by the place in `order`; what has none there comes last.
void sort_by(List& list, const List& order, std::string_view key, bool maps) {
  const auto place = [&](const Value& item) {
    return static_cast<unsigned>(index_of(order, item, key, maps));
  };
  std::stable_sort(list.begin(), list.end(),
                   [&](const Value& a, const Value& b) { return place(a) < place(b); });
}

// The patch's items in the order of `patch_order`; among them the server's own, as near to their
// old neighbours as that leaves possible.
Result<List> ordered(const List& merged, const List& patch_order, const List& server_order,
                     std::string_view key, bool maps) {
  List patch_items;
  List server_items;
  for (const Value& item : merged) {
    if (maps) {
      DIBS_CHECK(check_merge_keys({item}, key));
      DIBS_TRY(const int at, find_item(patch_order, key, item[key]));
      (at >= 0 ? patch_items : server_items).push_back(item);
    } else {
      (index_of(patch_order, item, key, maps) >= 0 ? patch_items : server_items).push_back(item);
    }
  }
  if (maps) {
    DIBS_CHECK(check_merge_keys(patch_order, key));
    DIBS_CHECK(check_merge_keys(server_order, key));
  }
  sort_by(patch_items, patch_order, key, maps);
  sort_by(server_items, server_order, key, maps);

  List out;
  out.reserve(merged.size());
  std::size_t s = 0;
  std::size_t p = 0;
  while (s < server_items.size() || p < patch_items.size()) {
    bool take_server = p == patch_items.size();
    if (!take_server && s < server_items.size()) {
      const int left = index_of(server_order, server_items[s], key, maps);
      const int right = index_of(server_order, patch_items[p], key, maps);
      take_server = left >= 0 && right >= 0 && left < right;
    }
    out.push_back(take_server ? server_items[s++] : patch_items[p++]);
  }
  return out;
}

// What stands for a patch where there is nothing to merge with: parts with a directive go. Nothing:
// the value itself is one.
std::optional<Value> without_directives(const Value& value) {
  if (value.is_object()) {
    if (value.contains(kDirective)) return std::nullopt;
    Value out = value;
    for (const auto& [key, item] : value.members()) {
      if (!item.is_object() && !item.is_array()) continue;
      if (auto kept = without_directives(item)) {
        if (!kept->same_node(item)) out.set(key, std::move(*kept));
      } else {
        out.erase(key);
      }
    }
    return out;
  }
  if (value.is_array()) {
    Value out = Value::array();
    for (const Value& item : value.items()) {
      if (auto kept = without_directives(item)) out.push(std::move(*kept));
    }
    return out;
  }
  return value;
}

Value without_nulls(const Value& value) {
  if (value.is_object()) {
    Value out = Value::object();
    for (const auto& [key, item] : value.members()) {
      if (!item.is_null()) out.set(key, without_nulls(item));
    }
    return out;
  }
  if (value.is_array()) {
    Value out = Value::array();
    for (const Value& item : value.items()) out.push(without_nulls(item));
    return out;
  }
  return value;
}

Result<Value> merge_maps(Value original, Value patch, const Schema* schema);

// The patch's items with a directive, done and taken out. "replace" anywhere makes the others the
// whole list.
Result<bool> run_list_directives(List& original, List& patch, std::string_view key) {
  bool replace = false;
  List plain;
  for (const Value& item : patch) {
    const Value* directive = item.find(kDirective);
    if (directive == nullptr) {
      plain.push_back(item);
    } else if (*directive == Value("delete")) {
      const Value* value = item.find(key);
      if (value == nullptr) return no_merge_key(item, key);
      while (true) {
        DIBS_TRY(const int at, find_item(original, key, *value));
        if (at < 0) break;
        original.erase(original.begin() + at);
      }
    } else if (*directive == Value("replace")) {
      replace = true;
    } else if (*directive == Value("merge")) {
      return Error::plain("merging lists cannot yet be specified in the patch");
    } else {
      return bad_patch_type(*directive, item);
    }
  }
  patch = std::move(plain);
  return replace;
}

Result<Value> merge_lists(const Value& original_list, const Value& patch_list,
                          const Schema* element, std::string_view key, bool is_delete_list) {
  List original = to_list(original_list);
  List patch = to_list(patch_list);
  if (original.empty() && patch.empty()) return original_list;
  DIBS_TRY(const bool maps, are_maps(original, patch));
  List merged;
  if (!maps) {
    if (is_delete_list) {
      for (const Value& item : original) {
        if (index_of(patch, item, {}, false) < 0) merged.push_back(item);
      }
      return to_array(merged);
    }
    for (const List* list : {&original, &patch}) {
      for (const Value& item : *list) {
        if (index_of(merged, item, {}, false) < 0) merged.push_back(item);
      }
    }
    DIBS_TRY(auto out, ordered(merged, patch, original, {}, false));
    return to_array(out);
  }
  if (key.empty()) return Error::plain("cannot merge lists without merge key for struct");
  DIBS_TRY(const bool replace, run_list_directives(original, patch, key));
  if (replace) {
    DIBS_CHECK(check_merge_keys(patch, key));
    return to_array(patch);
  }
  merged = original;
  for (const Value& item : patch) {
    const Value* value = item.find(key);
    if (value == nullptr) return no_merge_key(item, key);
    DIBS_TRY(const int at, find_item(merged, key, *value));
    if (at < 0) {
      merged.push_back(item);
    } else {
      const auto place = static_cast<std::size_t>(at);
      DIBS_TRY(merged[place], merge_maps(merged[place], item, element));
    }
  }
  DIBS_TRY(auto out, ordered(merged, patch, original, key, true));
  return to_array(out);
}

Result<> retain_keys(Value& original, Value& patch) {
  const Value* directive = patch.find(kRetainKeys);
  if (directive == nullptr) return success();
  const Value retained = *directive;
  patch.erase(kRetainKeys);
  const Error malformed = Error::bad_request("invalid patch format of retainKeys");
  if (!retained.is_array()) return malformed;
  const auto is_retained = [&](std::string_view key) {
    return std::any_of(retained.items().begin(), retained.items().end(), [&](const Value& name) {
      return name.is_string() && name.as_string() == key;
    });
  };
  for (const auto& [key, value] : patch.members()) {
    if (value.is_null() || key.starts_with(kDeleteFrom) || key.starts_with(kSetOrder)) continue;
    if (!is_retained(key)) return malformed;
  }
  const Value before = original;
  for (const auto& [key, value] : before.members()) {
    if (!is_retained(key)) original.erase(key);
  }
  return success();
}

// The items of the patch must stand in the order that goes with it.
Result<> check_order(const List& patch, const Value& order, std::string_view key) {
  if (patch.empty() || order.empty()) return success();
  List items;
  for (const Value& item : patch) {
    const Value* directive = key.empty() ? nullptr : item.find(kDirective);
    if (directive == nullptr) items.push_back(item);
  }
  std::size_t at = 0;
  std::size_t place = 0;
  for (; at < items.size() && place < order.size(); ++place) {
    if (!key.empty()) {
      DIBS_CHECK(check_merge_keys({items[at], order[place]}, key));
    }
    if (key_of(items[at], key, !key.empty()) == key_of(order[place], key, !key.empty())) ++at;
  }
  if (at < items.size()) {
    return Error::plain(cat("The order in patch list:\n", go_value(to_array(patch)),
                            "\n doesn't match ", kSetOrder, " list:\n", go_value(order), "\n"));
  }
  return success();
}

// "$setElementOrder/F" with the list F that goes with it; both are taken out of the patch.
Result<> merge_ordered_list(Value& original, Value& patch, std::string_view directive,
                            const Value& order, const Schema* schema) {
  if (!order.is_array()) return bad_type("[]interface {}", order);
  const std::size_t slash = directive.find('/');
  if (slash == std::string_view::npos || directive.substr(0, slash) != kSetOrder) {
    return bad_order_format();
  }
  const std::string name(directive.substr(slash + 1));
  const Value* original_list = original.find(name);
  const Value* patch_list = patch.find(name);
  if (original_list != nullptr && !original_list->is_array()) {
    return bad_type("[]interface {}", *original_list);
  }
  if (patch_list != nullptr && !patch_list->is_array())
    return bad_type("[]interface {}", *patch_list);
  DIBS_TRY(const auto meta, lookup_list(schema, name));
  const List patch_items = patch_list == nullptr ? List() : to_list(*patch_list);
  DIBS_CHECK(check_order(patch_items, order, meta.key));
  if (original_list == nullptr && patch_list == nullptr) return success();

  List server_order = original_list == nullptr ? List() : to_list(*original_list);
  List merged = server_order;
  if (original_list == nullptr) {
    merged = to_list(*without_directives(*patch_list));
  } else if (patch_list != nullptr && meta.merge) {
    DIBS_TRY(const auto list,
             merge_lists(*original_list, *patch_list, meta.schema, meta.key, false));
    merged = to_list(list);
  } else if (patch_list != nullptr) {
    merged = patch_items;
  }
  DIBS_TRY(const bool maps, are_maps(server_order, patch_items));
  if (maps && meta.key.empty())
    return Error::plain(
        "cannot merge lists without merge key for "
        "struct");
  DIBS_TRY(const auto out, ordered(merged, to_list(order), server_order, meta.key, maps));
  original.set(name, to_array(out));
  patch.erase(name);
  return success();
}

Result<Value> merge_maps(Value original, Value patch, const Schema* schema) {
  if (const Value* directive = patch.find(kDirective)) {
    if (*directive == Value("replace")) {
      patch.erase(kDirective);
      return patch;
    }
    if (*directive == Value("delete")) return Value::object();
    return bad_patch_type(*directive, patch);
  }
  if (!original.is_object()) original = Value::object();
  DIBS_CHECK(retain_keys(original, patch));
  const Value whole_patch = patch;
  for (const auto& [key, value] : whole_patch.members()) {
    if (!key.starts_with(kSetOrder)) continue;
    patch.erase(key);
    DIBS_CHECK(merge_ordered_list(original, patch, key, value, schema));
  }

  for (const auto& [patch_key, value] : patch.members()) {
    std::string_view key = patch_key;
    const bool is_delete_list = key.starts_with(kDeleteFrom);
    if (is_delete_list) {
      const std::size_t slash = key.find('/');
      if (slash != kDeleteFrom.size()) {
        return Error::bad_request("invalid patch format of primitive list");
      }
      key.remove_prefix(slash + 1);
    }
    if (value.is_null()) {
      original.erase(key);
      continue;
    }
    const Value* found = original.find(key);
    const bool both_maps = found != nullptr && found->is_object() && value.is_object();
    const bool both_lists = found != nullptr && found->is_array() && value.is_array();
    if (both_maps) {
      DIBS_TRY(const auto meta, lookup(schema, key));
      DIBS_TRY(auto merged, merge_maps(*found, value, meta.schema));
      original.set(key, std::move(merged));
    } else if (both_lists) {
      DIBS_TRY(const auto meta, lookup_list(schema, key));
      if (!meta.merge && !is_delete_list) {
        original.set(key, value);
        continue;
      }
      DIBS_TRY(auto merged, merge_lists(*found, value, meta.schema, meta.key, is_delete_list));
      original.set(key, std::move(merged));
    } else if (!is_delete_list) {
      if (auto kept = without_directives(without_nulls(value))) {
        original.set(key, std::move(*kept));
      } else {
        original.erase(key);
      }
    }
  }
  return original;
}

std::string_view json_type(const Value& value) {
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  return value.is_boolean() ? "bool" : "number";
}

}  // namespace

Result<Value> strategic_merge(const Value& original, const Value& patch, const Schema& schema) {
  if (patch.is_null()) return original;
  if (!patch.is_object()) {
    return Error::bad_request(cat("json: cannot unmarshal ", json_type(patch),
                                  " into Go value of type map[string]interface {}"));
  }
  return merge_maps(original, patch, &schema);
}

}  // namespace dibs::api
