#include "api/kinds/declared.h"

#include <algorithm>
#include <string>
#include <vector>

#include "api/kinds/metadata.h"
#include "api/schema/declared.h"
#include "api/schema/go_print.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

bool is_container(const Schema& schema) {
  return schema.shape == Shape::list || schema.shape == Shape::map;
}

bool is_empty(const Field& field, const Value& value) {
  if (value.is_null()) return true;
  if (is_container(*field.schema)) return value.empty();
  if (field.pointer) return false;
  if (value.is_string()) return value.as_string().empty();
  return value.is_number() && value.as_int() == 0;
}

// An absent list and an empty one are the same.
bool is_same(const Value& a, const Value& b) {
  auto nothing = [](const Value& value) {
    return value.is_null() || (value.is_array() && value.empty());
  };
  return (nothing(a) && nothing(b)) || a == b;
}

bool is_set(const Value& member) {
  return !member.is_null() && !(member.is_array() && member.empty());
}

bool have_same_keys(const std::vector<std::string>& keys, const Value& a, const Value& b) {
  if (keys.empty()) return a == b;
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return a[key].as_string() == b[key].as_string();
  });
}

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

class Walk {
 public:
  Walk(const Features& features, FieldErrors& errors) : features_(features), errors_(errors) {}

  void judge_object(const Schema& schema, const Value& value, const Value* old, const Path& path) {
    check_union(schema, value, old, path);
    for (std::uint16_t index : schema.stated) {
      const Field& field = schema.fields[index];
      if (!field.declared && !field.schema->judged) continue;
      const Value& member = value[field.name];
      const Value* before = old == nullptr ? nullptr : &(*old)[field.name];
      if (before == nullptr || !is_same(member, *before)) {
        judge_field(field, member, before, path.child(field.name));
      }
    }
  }

 private:
  void check_union(const Schema& schema, const Value& value, const Value* old, const Path& path) {
    std::vector<std::string> all;
    std::vector<std::string> set;
    bool changed = old == nullptr;
    for (std::uint16_t index : schema.stated) {
      const Field& field = schema.fields[index];
      if (!field.declared || !field.declared->in_union) continue;
      all.push_back(cat("`", field.name, "`"));
      const bool is = is_set(value[field.name]);
      if (is) set.push_back(field.name);
      changed = changed || is != is_set((*old)[field.name]);
    }
    if (all.empty() || !changed) return;
    if (set.empty()) {
      errors_.invalid(path, "", cat("must specify one of: ", join(all, ", ")));
    } else if (set.size() > 1) {
      errors_.invalid(path, cat("{", join(set, ", "), "}"),
                      cat("must specify exactly one of: ", join(all, ", ")));
    }
  }

  void judge_field(const Field& field, const Value& value, const Value* old, const Path& path) {
    static const Declared none;
    const Declared& rules = field.declared ? *field.declared : none;
    if (!may_go_on(field, rules, value, old, path)) return;
    check_value(rules, value, path);
    const Schema& schema = *field.schema;
    if (schema.shape == Shape::list) {
      check_list(rules, *schema.element, value, old, path);
    } else if (schema.shape == Shape::map) {
      check_map(rules, *schema.element, value, old, path);
    } else if (schema.judged) {
      judge_object(schema, value, old != nullptr && !old->is_null() ? old : nullptr, path);
    }
  }

  // Rules that end the judgement of a field when they are broken.
  bool may_go_on(const Field& field, const Declared& rules, const Value& value, const Value* old,
                 const Path& path) {
    if (rules.immutable && old != nullptr) {
      errors_.invalid(path, Value(), "field is immutable");
      return false;
    }
    if (rules.stays && old != nullptr && value.is_null() != old->is_null()) {
      errors_.invalid(path, Value(),
                      value.is_null() ? "field cannot be cleared once set"
                                      : "field cannot be set once created");
      return false;
    }
    if (rules.same_items && old != nullptr) check_same_items(*rules.unique, value, *old, path);
    if (is_empty(field, value)) {
      if (rules.required) errors_.required(path);
      return false;
    }
    bool on = true;
    if (!rules.forbidden_without.empty() && !features_.on(rules.forbidden_without)) {
      errors_.forbidden(path, "");
      on = false;
    }
    if (rules.kept && old != nullptr && !old->is_null()) {
      errors_.invalid(path, Value(), "field cannot be modified once set");
      on = false;
    }
    if (rules.items && value.size() > *rules.items) {
      errors_.too_many(path, value.size(), *rules.items);
      on = false;
    }
    return on;
  }

  void check_value(const Declared& rules, const Value& value, const Path& path) {
    std::string_view text = value.as_string();
    if (!rules.format.empty()) check_declared_format(rules.format, text, path, errors_);
    if (!rules.values.empty()) check_enum(rules.values, value, path);
    if (rules.characters && characters_in(text) > *rules.characters) {
      errors_.add(Fault::too_long, path,
                  cat("Too long: may not be more than ", *rules.characters, " characters"));
    }
    if (rules.bytes && text.size() > *rules.bytes) errors_.too_long(path, *rules.bytes);
    if (rules.min && value.as_int() < *rules.min) {
      errors_.invalid(path, value, cat("must be greater than or equal to ", *rules.min));
    }
    if (rules.max && value.as_int() > *rules.max) {
      errors_.invalid(path, value, cat("must be less than or equal to ", *rules.max));
    }
  }

  void check_enum(const std::vector<std::string>& values, const Value& value, const Path& path) {
    if (std::find(values.begin(), values.end(), value.as_string()) == values.end()) {
      errors_.not_supported(path, value, values);
    }
  }

  void check_list(const Declared& rules, const Schema& element, const Value& list, const Value* old,
                  const Path& path) {
    if (rules.unique) check_unique(*rules.unique, element, list, path);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!rules.each_values.empty()) check_enum(rules.each_values, list[i], path.index(i));
      if (!rules.each_format.empty()) {
        check_declared_format(rules.each_format, list[i].as_string(), path.index(i), errors_);
      }
    }
    if (!element.judged) return;
    static const std::vector<std::string> whole;
    const std::vector<std::string>& keys = rules.unique ? *rules.unique : whole;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Value* before = old == nullptr ? nullptr : counterpart(*old, keys, list[i]);
      if (before != nullptr && *before == list[i]) continue;
      judge_object(element, list[i], before, path.index(i));
    }
  }

  static const Value* counterpart(const Value& list, const std::vector<std::string>& keys,
                                  const Value& item) {
    for (const Value& candidate : list.items()) {
      if (have_same_keys(keys, candidate, item)) return &candidate;
    }
    return nullptr;
  }

  void check_unique(const std::vector<std::string>& keys, const Schema& element, const Value& list,
                    const Path& path) {
    for (std::size_t i = 1; i < list.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (!have_same_keys(keys, list[j], list[i])) continue;
        errors_.duplicate(path.index(i), in_go_order(list[i], element));
        break;
      }
    }
  }

  void check_same_items(const std::vector<std::string>& keys, const Value& list, const Value& old,
                        const Path& path) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (counterpart(old, keys, list[i]) == nullptr) {
        errors_.forbidden(path.index(i), "item may not be added");
      }
    }
    for (const Value& item : old.items()) {
      if (counterpart(list, keys, item) == nullptr) {
        errors_.forbidden(path, "item may not be removed");
      }
    }
  }

  void check_map(const Declared& rules, const Schema& element, const Value& map, const Value* old,
                 const Path& path) {
    if (rules.key_format.empty() && !element.judged) return;
    for (const std::string& key : sorted_keys(map)) {
      if (!rules.key_format.empty()) check_declared_format(rules.key_format, key, path, errors_);
      if (!element.judged) continue;
      const Value* before = old == nullptr ? nullptr : old->find(key);
      if (before != nullptr && *before == map[key]) continue;
      judge_object(element, map[key], before, path.key(key));
    }
  }

  const Features& features_;
  FieldErrors& errors_;
};

}  // namespace

void check_declared(const Schema& schema, const Value& object, const Value* old,
                    const Features& features, FieldErrors& errors) {
  Walk(features, errors).judge_object(schema, object, old, Path());
}

}  // namespace dibs::api
