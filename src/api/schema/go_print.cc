#include "api/schema/go_print.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

constexpr std::string_view kPackages = "io.k8s.api.";
constexpr std::string_view kMeta = "io.k8s.apimachinery.";
constexpr std::string_view kAddress = "0xc000000000";

std::string go_name(const Field& field) {
  if (!field.go_name.empty()) return field.go_name;
  std::string name = field.name;
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

/// Shared types have no internal twin: they are printed as JSON has them.
bool is_shared(const Schema& schema) { return schema.full_name.starts_with(kMeta); }

/// Embedded in all that has it.
bool is_object_meta(const Schema& schema) {
  return is_shared(schema) && schema.name == "ObjectMeta";
}

std::vector<std::string> sorted_keys_of(const Value& map) {
  std::vector<std::string> keys;
  for (const auto& [key, item] : map.members()) keys.emplace_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

/// %#v.
class Syntax {
 public:
  std::string object(const Value& value, const Schema& schema) {
    const std::string_view outside = package_;
    if (std::string_view group = group_of(schema); !group.empty()) package_ = group;
    std::string text = cat(type_of(schema), "{", members(value, schema), "}");
    package_ = outside;
    return text;
  }

  std::string any(const Value& value, const Schema& schema) {
    switch (schema.shape) {
      case Shape::object:
        return object(value, schema);
      case Shape::list:
        return list(value, schema);
      case Shape::map:
        return map(value, schema);
      case Shape::boolean:
        return value.as_bool() ? "true" : "false";
      case Shape::int32:
      case Shape::int64:
        return cat(value.as_int());
      default:
        return quoted(value.as_string());
    }
  }

 private:
  /// "resource" of "io.k8s.api.resource.v1.Device".
  static std::string_view group_of(const Schema& schema) {
    std::string_view name = schema.full_name;
    if (!name.starts_with(kPackages)) return {};
    name.remove_prefix(kPackages.size());
    return name.substr(0, name.find('.'));
  }

  /// Internal types have the package of their group.
  std::string type_of(const Schema& schema) const {
    if (std::string_view group = group_of(schema); !group.empty())
      return cat(group, ".", schema.name);
    if (schema.full_name.empty() && schema.shape == Shape::object)
      return cat(package_, ".", schema.name);
    if (schema.shape == Shape::list && schema.element->shape == Shape::object)
      return cat("[]", type_of(*schema.element));
    std::size_t dot = schema.go_type.find('.');
    if (schema.shape == Shape::string && dot != std::string::npos && schema.go_type[0] == 'v')
      return cat(package_, schema.go_type.substr(dot));
    return schema.go_type;
  }

  std::string list(const Value& value, const Schema& schema) {
    std::vector<std::string> items;
    for (const Value& item : value.items()) items.push_back(any(item, *schema.element));
    return cat(type_of(schema), "{", join(items, ", "), "}");
  }

  std::string map(const Value& value, const Schema& schema) {
    std::vector<std::string> items;
    for (const std::string& key : sorted_keys_of(value))
      items.push_back(cat(quoted(key), ":", any(value[key], *schema.element)));
    return cat(type_of(schema), "{", join(items, ", "), "}");
  }

  std::string member(const Value& value, const Field& field) {
    const Schema& schema = *field.schema;
    const bool absent = value.is_null();
    if (schema.shape == Shape::time && absent) {
      return field.pointer ? "<nil>" : "time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)";
    }
    if (field.pointer) return cat("(*", type_of(schema), ")(", absent ? "nil" : kAddress, ")");
    if (absent && (schema.shape == Shape::list || schema.shape == Shape::map))
      return cat(type_of(schema), "(nil)");
    return any(value, schema);
  }

  /// A member of an embedded structure stands for all of that, at the place of the first.
  std::string members(const Value& value, const Schema& schema) {
    std::vector<std::string> texts;
    const Inlined* last = nullptr;
    for (std::uint16_t index : schema.stated) {
      const Field& field = schema.fields[index];
      if (const Inlined* part = part_with(schema, field)) {
        if (part == last) continue;
        last = part;
        texts.push_back(cat(part->schema->name, ":", object(value, *part->schema)));
      } else if (field.proto != 0) {
        texts.push_back(cat(is_object_meta(*field.schema) ? "ObjectMeta" : go_name(field), ":",
                            member(value[field.name], field)));
      }
    }
    return join(texts, ", ");
  }

  static const Inlined* part_with(const Schema& schema, const Field& field) {
    if (field.proto != 0) return nullptr;
    for (const Inlined& part : schema.inlined) {
      if (part.schema->field(field.name)) return &part;
    }
    return nullptr;
  }

  std::string_view package_;  // of the structure that is being printed
};

Value form_of_object(const Value& value, const Schema& schema) {
  if (is_shared(schema)) return in_go_order(value, schema);
  Value out = Value::object();
  for (std::uint16_t index : schema.stated) {
    const Field& field = schema.fields[index];
    const Value& member = value[field.name];
    if (is_object_meta(*field.schema)) {
      const Value metadata = in_go_order(member, *field.schema);
      for (const auto& [key, item] : metadata.members()) {
        if (!item.is_null()) out.set(key, item);
      }
    } else {
      out.set(go_name(field),
              field.pointer && member.is_null() ? Value() : go_form(member, *field.schema));
    }
  }
  return out;
}

Value form_of_union(const Value& value, const Schema& schema) {
  auto object = [&](const Value& part) {
    return part.is_object() ? go_form(part, *schema.element) : Value();
  };
  auto objects = [&](const Value& list) {
    if (!list.is_array()) return Value();
    Value out = Value::array();
    for (const Value& item : list.items()) out.push(go_form(item, *schema.element));
    return out;
  };
  switch (schema.any_form) {
    case AnyForm::schema_or_array:
      return Value::object({{"Schema", object(value)}, {"JSONSchemas", objects(value)}});
    case AnyForm::schema_or_bool:
      return Value::object(
          {{"Allows", value.is_object() || value.as_bool()}, {"Schema", object(value)}});
    case AnyForm::schema_or_strings:
      return Value::object(
          {{"Schema", object(value)}, {"Property", value.is_array() ? value : Value()}});
    default:
      return value;
  }
}

Value form_of_map(const Value& map, const Schema& element) {
  Value out = Value::object();
  for (const std::string& key : sorted_keys_of(map)) out.set(key, go_form(map[key], element));
  return out;
}

}  // namespace

std::string go_syntax(const Value& value, const Schema& schema) {
  return Syntax().any(value, schema);
}

Value go_form(const Value& value, const Schema& schema) {
  switch (schema.shape) {
    case Shape::object:
      return form_of_object(value, schema);
    case Shape::list: {
      if (value.is_null()) return nullptr;
      Value out = Value::array();
      for (const Value& item : value.items()) out.push(go_form(item, *schema.element));
      return out;
    }
    case Shape::map:
      return value.is_null() ? Value() : form_of_map(value, *schema.element);
    case Shape::string:
      return Value(value.as_string());
    case Shape::boolean:
      return value.as_bool();
    case Shape::int32:
    case Shape::int64:
      return Value(value.as_int());
    case Shape::any:
      return form_of_union(value, schema);
    default:
      return value;
  }
}

Value in_go_order(const Value& value, const Schema& schema) {
  if (value.is_array() && schema.shape == Shape::list) {
    Value out = Value::array();
    for (const Value& item : value.items()) out.push(in_go_order(item, *schema.element));
    return out;
  }
  if (!value.is_object()) return value;
  Value out = Value::object();
  if (schema.shape == Shape::map) {
    for (const std::string& key : sorted_keys_of(value))
      out.set(key, in_go_order(value[key], *schema.element));
    return out;
  }
  if (schema.shape != Shape::object) return value;
  for (std::uint16_t index : schema.stated) {
    const Field& field = schema.fields[index];
    if (const Value* member = value.find(field.name))
      out.set(field.name, in_go_order(*member, *field.schema));
  }
  return out;
}

}  // namespace dibs::api
