#include "api/structural/go_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

enum class Form : char {
  text,
  json,
  flag,
  schema,
  schemas,
  schema_map,
  items,
  schema_or_bool,
  dependencies,
  rules
};

struct GoField {
  std::string_view name;
  std::string_view member;
  Form form;
};

constexpr GoField kSchemaFields[] = {
    {"ID", "id", Form::text},
    {"Schema", "$schema", Form::text},
    {"Ref", "$ref", Form::json},
    {"Description", "description", Form::text},
    {"Type", "type", Form::text},
    {"Nullable", "nullable", Form::flag},
    {"Format", "format", Form::text},
    {"Title", "title", Form::text},
    {"Default", "default", Form::json},
    {"Maximum", "maximum", Form::json},
    {"ExclusiveMaximum", "exclusiveMaximum", Form::flag},
    {"Minimum", "minimum", Form::json},
    {"ExclusiveMinimum", "exclusiveMinimum", Form::flag},
    {"MaxLength", "maxLength", Form::json},
    {"MinLength", "minLength", Form::json},
    {"Pattern", "pattern", Form::text},
    {"MaxItems", "maxItems", Form::json},
    {"MinItems", "minItems", Form::json},
    {"UniqueItems", "uniqueItems", Form::flag},
    {"MultipleOf", "multipleOf", Form::json},
    {"Enum", "enum", Form::json},
    {"MaxProperties", "maxProperties", Form::json},
    {"MinProperties", "minProperties", Form::json},
    {"Required", "required", Form::json},
    {"Items", "items", Form::items},
    {"AllOf", "allOf", Form::schemas},
    {"OneOf", "oneOf", Form::schemas},
    {"AnyOf", "anyOf", Form::schemas},
    {"Not", "not", Form::schema},
    {"Properties", "properties", Form::schema_map},
    {"AdditionalProperties", "additionalProperties", Form::schema_or_bool},
    {"PatternProperties", "patternProperties", Form::schema_map},
    {"Dependencies", "dependencies", Form::dependencies},
    {"AdditionalItems", "additionalItems", Form::schema_or_bool},
    {"Definitions", "definitions", Form::schema_map},
    {"ExternalDocs", "externalDocs", Form::json},
    {"Example", "example", Form::json},
    {"XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Form::json},
    {"XEmbeddedResource", "x-kubernetes-embedded-resource", Form::flag},
    {"XIntOrString", "x-kubernetes-int-or-string", Form::flag},
    {"XListMapKeys", "x-kubernetes-list-map-keys", Form::json},
    {"XListType", "x-kubernetes-list-type", Form::json},
    {"XMapType", "x-kubernetes-map-type", Form::json},
    {"XValidations", "x-kubernetes-validations", Form::rules},
};

std::string text_of(std::string_view text) {
  std::string out;
  json::write_string(out, text, true);
  return out;
}

std::string json_of(const Value& value) { return json::write(value, true); }

template <typename Write>
std::string list_of(const Value& list, Write write) {
  if (!list.is_array()) return "null";
  std::string out = "[";
  for (const Value& item : list.items()) append(out, out.size() > 1 ? "," : "", write(item));
  return out + "]";
}

template <typename Write>
std::string map_of(const Value& map, Write write) {
  if (!map.is_object()) return "null";
  std::vector<std::string_view> keys;
  for (const auto& [key, member] : map.members()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  std::string out = "{";
  for (std::string_view key : keys)
    append(out, out.size() > 1 ? "," : "", text_of(key), ":", write(map[key]));
  return out + "}";
}

std::string schema_or_null(const Value& schema) {
  return schema.is_object() ? go_schema(schema) : "null";
}

std::string schema_or_bool(const Value& value) {
  if (value.is_null()) return "null";
  const bool allows = value.is_object() || value.as_bool();
  return cat("{\"Allows\":", allows, ",\"Schema\":", schema_or_null(value), "}");
}

std::string member_text(const Value& value, Form form) {
  switch (form) {
    case Form::text:
      return text_of(value.as_string());
    case Form::json:
      return json_of(value);
    case Form::flag:
      return value.as_bool() ? "true" : "false";
    case Form::schema:
      return schema_or_null(value);
    case Form::schemas:
      return list_of(value, go_schema);
    case Form::schema_map:
      return map_of(value, go_schema);
    case Form::items:
      if (value.is_null()) return "null";
      return cat("{\"Schema\":", schema_or_null(value),
                 ",\"JSONSchemas\":", list_of(value, go_schema), "}");
    case Form::schema_or_bool:
      return schema_or_bool(value);
    case Form::dependencies:
      return map_of(value, [](const Value& dependency) {
        return cat("{\"Schema\":", schema_or_null(dependency),
                   ",\"Property\":", dependency.is_array() ? json_of(dependency) : "null", "}");
      });
    case Form::rules:
      return list_of(value, go_rule);
  }
  return "null";
}

std::string go_scale(const Value& scale) {
  if (scale.is_null()) return "null";
  return cat("{\"SpecReplicasPath\":", text_of(scale["specReplicasPath"].as_string()),
             ",\"StatusReplicasPath\":", text_of(scale["statusReplicasPath"].as_string()),
             ",\"LabelSelectorPath\":", json_of(scale["labelSelectorPath"]), "}");
}

std::string go_subresources(const Value& subresources) {
  if (subresources.is_null()) return "null";
  return cat("{\"Status\":", subresources["status"].is_null() ? "null" : "{}",
             ",\"Scale\":", go_scale(subresources["scale"]), "}");
}

std::string go_column(const Value& column) {
  return cat("{\"Name\":", text_of(column["name"].as_string()),
             ",\"Type\":", text_of(column["type"].as_string()),
             ",\"Format\":", text_of(column["format"].as_string()),
             ",\"Description\":", text_of(column["description"].as_string()),
             ",\"Priority\":", column["priority"].as_int(),
             ",\"JSONPath\":", text_of(column["jsonPath"].as_string()), "}");
}

std::string go_version(const Value& version) {
  const Value& schema = version["schema"];
  return cat(
      "{\"Name\":", text_of(version["name"].as_string()),
      ",\"Served\":", version["served"].as_bool(), ",\"Storage\":", version["storage"].as_bool(),
      ",\"Deprecated\":", version["deprecated"].as_bool(),
      ",\"DeprecationWarning\":", json_of(version["deprecationWarning"]), ",\"Schema\":",
      schema.is_null()
          ? "null"
          : cat("{\"OpenAPIV3Schema\":", schema_or_null(schema["openAPIV3Schema"]), "}"),
      ",\"Subresources\":", go_subresources(version["subresources"]),
      ",\"AdditionalPrinterColumns\":", list_of(version["additionalPrinterColumns"], go_column),
      ",\"SelectableFields\":",
      list_of(version["selectableFields"],
              [](const Value& field) {
                return cat("{\"JSONPath\":", text_of(field["jsonPath"].as_string()), "}");
              }),
      "}");
}

}  // namespace

std::string go_rule(const Value& rule) {
  return cat("{\"Rule\":", text_of(rule["rule"].as_string()),
             ",\"Message\":", text_of(rule["message"].as_string()),
             ",\"MessageExpression\":", text_of(rule["messageExpression"].as_string()),
             ",\"Reason\":", json_of(rule["reason"]),
             ",\"FieldPath\":", text_of(rule["fieldPath"].as_string()),
             ",\"OptionalOldSelf\":", json_of(rule["optionalOldSelf"]), "}");
}

std::string go_schema(const Value& schema) {
  std::string out = "{";
  for (const GoField& field : kSchemaFields) {
    append(out, out.size() > 1 ? "," : "", "\"", field.name,
           "\":", member_text(schema[field.member], field.form));
  }
  return out + "}";
}

std::string go_versions(const Value& versions) { return list_of(versions, go_version); }

}  // namespace dibs::api
