#include "api/structural/crd_schema.h"

#include <algorithm>
#include <set>
#include <utility>

#include "api/structural/embedded.h"
#include "api/structural/go_text.h"
#include "api/structural/openapi_rules.h"
#include "api/structural/prune.h"
#include "api/structural/structural.h"
#include "api/structural/structural_rules.h"
#include "api/structural/validate.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

constexpr std::string_view kAllowedAtRoot =
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
    "MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
    "XPreserveUnknownFields "
    "XValidations]";

/// With a status sub-resource the status is judged alone, so nothing at the root may speak about
/// it.
void validate_root(const Value& schema, const Path& path, FieldErrors& errors) {
  static const std::set<std::string_view> allowed = {"description",
                                                     "type",
                                                     "format",
                                                     "title",
                                                     "maximum",
                                                     "exclusiveMaximum",
                                                     "minimum",
                                                     "exclusiveMinimum",
                                                     "maxLength",
                                                     "minLength",
                                                     "pattern",
                                                     "maxItems",
                                                     "minItems",
                                                     "uniqueItems",
                                                     "multipleOf",
                                                     "required",
                                                     "items",
                                                     "properties",
                                                     "externalDocs",
                                                     "example",
                                                     "x-kubernetes-preserve-unknown-fields",
                                                     "x-kubernetes-validations"};
  const auto type = schema["type"].as_string();
  const bool odd_before_type =
      schema.contains("id") || schema.contains("$schema") || schema.contains("$ref");
  if (!odd_before_type && !type.empty() && type != "object") {
    errors.invalid(path.child("openAPIV3Schema.type"), type,
                   "only \"object\" is allowed as the type at the root of the schema if the status "
                   "subresource is enabled");
    return;
  }
  for (const auto& [key, value] : schema.members()) {
    if (allowed.contains(key) || value.is_null()) continue;
    errors.add(
        Fault::invalid, path.child("openAPIV3Schema"),
        cat("Invalid value: ", go_schema(schema), ": only ", kAllowedAtRoot,
            " fields are allowed at the root of the schema if the status subresource is enabled"));
    return;
  }
}

/// Defaults are values of their own schema. What stands under additionalProperties has none.
void validate_defaults(const Value& source, const Schema& schema, const Path& path,
                       bool inside_metadata, FieldErrors& errors) {
  if (schema.rules == nullptr) return;
  if (const Value& value = source["default"]; !value.is_null()) {
    const Path at = path.child("default");
    Value pruned = value;
    if (!inside_metadata) prune_value(pruned, schema);
    FieldErrors found;
    if (!(pruned == value)) errors.invalid(at, value, "must not have unknown fields");
    if (!inside_metadata) validate_embedded_value(value, schema, at, found);
    if (found.empty()) validate_value(value, schema, at, found);
    for (const FieldError& error : found.errors())
      errors.add(error.fault, Path(error.field), error.text);
  }
  if (schema.rules->items != nullptr) {
    validate_defaults(source["items"], *schema.rules->items, path.child("items"), inside_metadata,
                      errors);
  }
  const Path properties = path.child("properties");
  for (const auto& [key, property] : source["properties"].members()) {
    const bool is_meta =
        schema.embedded_resource && (key == "metadata" || key == "apiVersion" || key == "kind");
    const Field* field = schema.field(key);
    const Schema* child = is_meta && key == "metadata" ? schema.rules->metadata
                          : field != nullptr           ? field->schema
                                                       : nullptr;
    if (child == nullptr) continue;
    validate_defaults(property, *child, properties.key(key),
                      (inside_metadata && !child->embedded_resource) || is_meta, errors);
  }
}

/// One step of a path: '.', '[' and ']' stand alone, everything between them is one piece, quoted
/// text too.
std::string_view next_token(std::string_view& rest) {
  std::size_t length = 0;
  if (rest.front() == '.' || rest.front() == '[' || rest.front() == ']') {
    length = 1;
  } else if (rest.front() == '\'') {
    length = 1;
    while (length < rest.size() && (rest[length] != '\'' || rest[length - 1] == '\\')) ++length;
    length = std::min(length + 1, rest.size());
  } else {
    length = std::min(rest.find_first_of(".[]"), rest.size());
  }
  const auto token = rest.substr(0, length);
  rest.remove_prefix(length);
  return token;
}

/// The schema of a member, or null.
const Value* member_schema(const Value& schema, std::string_view name) {
  if (schema["properties"].is_object()) return schema["properties"].find(name);
  const Value& additional = schema["additionalProperties"];
  return additional.is_null() ? nullptr : &additional;
}

}  // namespace

void for_each_schema(const Value& schema, const std::function<void(const Value&)>& visit) {
  if (!schema.is_object()) {
    for (const Value& item : schema.items()) for_each_schema(item, visit);
    return;
  }
  visit(schema);
  for (const auto& [key, value] : schema.members()) {
    if (key == "items" || key == "additionalProperties" || key == "additionalItems" ||
        key == "not" || key == "allOf" || key == "anyOf" || key == "oneOf") {
      for_each_schema(value, visit);
    } else if (key == "properties" || key == "patternProperties" || key == "definitions" ||
               key == "dependencies") {
      for (const auto& [name, child] : value.members()) for_each_schema(child, visit);
    }
  }
}

Result<const Value*> schema_at_path(std::string_view path, const Value& schema, bool brackets) {
  const Value* at = &schema;
  auto step = [&](std::string_view name) {
    const Value* next = member_schema(*at, name);
    at = next;
    return next != nullptr;
  };
  while (!path.empty()) {
    const auto token = next_token(path);
    if (token == "[") {
      if (!brackets) return Error::invalid("array notation is not allowed");
      if (path.empty()) return Error::invalid("unexpected end of JSON path");
      const auto name = next_token(path);
      if (name.size() < 2 || name.front() != '\'' || name.back() != '\'') {
        return Error::invalid(cat("expected single quoted string but got ", name));
      }
      if (!step(name.substr(1, name.size() - 2)))
        return Error::invalid("does not refer to a valid field");
      if (path.empty()) return Error::invalid("unexpected end of JSON path");
      if (const auto end = next_token(path); end != "]")
        return Error::invalid(cat("expected ] but got ", end));
    } else if (token == ".") {
      if (path.empty()) return Error::invalid("unexpected end of JSON path");
      if (!step(next_token(path))) return Error::invalid("does not refer to a valid field");
    } else {
      return Error::invalid(cat("expected [ or . but got: ", token));
    }
  }
  return at;
}

void validate_definition_schema(const Value& schema, const Path& path, bool has_status,
                                const CelChecker& cel, FieldErrors& errors) {
  const Path at = path.child("openAPIV3Schema");
  // Before anything that recurses.
  if (const auto size = check_schema_size(schema); !size.ok()) {
    errors.invalid(at, "", size.error().message());
    return;
  }
  FieldErrors found;
  if (has_status) validate_root(schema, path, found);
  if (schema["nullable"].as_bool()) {
    found.forbidden(path.child("openAPIV3Schema.nullable"), "nullable cannot be true at the root");
  }
  const auto compiled = compile_schema(schema);
  if (compiled.ok()) {
    FieldErrors structural;
    validate_structural(schema, at, structural);
    if (structural.empty()) validate_defaults(schema, (*compiled)->root(), at, false, structural);
    for (const FieldError& error : structural.errors())
      found.add(error.fault, Path(error.field), error.text);
  }
  validate_openapi(schema, at, found);
  // What keeps a schema from being compiled is mostly told better by the rules above.
  if (found.empty() && !compiled.ok()) found.invalid(at, "", compiled.error().message());
  if (found.empty() && cel && (*compiled)->has_validations()) cel(schema, at, found);
  for (const FieldError& error : found.errors())
    errors.add(error.fault, Path(error.field), error.text);
}

}  // namespace dibs::api
