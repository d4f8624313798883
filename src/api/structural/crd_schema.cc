#include "api/structural/crd_schema.h"

#include <algorithm>
#include <set>
#include <utility>

#include "api/schema/builtin.h"
#include "api/schema/go_print.h"
#include "api/structural/embedded.h"
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
    errors.invalid(
        path.child("openAPIV3Schema"),
        go_form(schema, *builtin_type("apiextensions/v1.JSONSchemaProps")),
        cat("only ", kAllowedAtRoot,
            " fields are allowed at the root of the schema if the status subresource is enabled"));
    return;
  }
}

/// The work that rules may spend on all defaults of a definition.
constexpr std::int64_t kDefaultsBudget = 10'000'000;

/// Defaults are values of their own schema. What stands under additionalProperties has none.
class DefaultRules {
 public:
  DefaultRules(const CelChecker& cel, FieldErrors& errors) : cel_(cel), errors_(errors) {}

  void run(const Value& source, const Schema& schema, const Path& path, bool inside_metadata,
           bool is_root) {
    if (schema.rules == nullptr || budget_ < 0) return;
    if (!source["default"].is_null()) judge(source, schema, path, inside_metadata, is_root);
    if (schema.rules->items != nullptr) {
      run(source["items"], *schema.rules->items, path.child("items"), inside_metadata, false);
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
      run(property, *child, properties.key(key),
          (inside_metadata && !child->embedded_resource) || is_meta, false);
    }
  }

 private:
  void judge(const Value& source, const Schema& schema, const Path& path, bool inside_metadata,
             bool is_root) {
    const Value& value = source["default"];
    const Path at = path.child("default");
    Value pruned = value;
    if (!inside_metadata) prune_value(pruned, schema);
    FieldErrors found;
    if (!(pruned == value)) errors_.invalid(at, value, "must not have unknown fields");
    if (!inside_metadata) validate_embedded_value(value, schema, at, found);
    if (found.empty()) validate_value(value, schema, at, found);
    if (found.empty() && cel_.defaults)
      cel_.defaults({source, at, is_root || schema.embedded_resource, budget_}, found);
    for (const FieldError& error : found.errors())
      errors_.add(error.fault, Path(error.field), error.text);
  }

  const CelChecker& cel_;
  FieldErrors& errors_;
  std::int64_t budget_ = kDefaultsBudget;
};

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

/// What stands between single quotes. False: an escape that there is not.
bool unescape(std::string_view text, std::string& out) {
  constexpr std::string_view kNames = "abfnrtv'\\";
  constexpr std::string_view kMeant = "\a\b\f\n\r\t\v'\\";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size() || text[i + 1] == '\n') {
      out += text[i];
      continue;
    }
    const std::size_t found = kNames.find(text[++i]);
    if (found == std::string_view::npos) return false;
    out += kMeant[found];
  }
  return true;
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

Result<const Value*> schema_at_path(std::string_view path, const Value& schema, bool brackets,
                                    std::string* normalized) {
  const Value* at = &schema;
  std::string shown;
  auto step = [&](std::string_view name) {
    if ((*at)["properties"].is_object()) {
      append(shown, shown.empty() ? "" : ".", name);
    } else {
      append(shown, "[", name, "]");
    }
    at = member_schema(*at, name);
    return at != nullptr;
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
      std::string plain;
      if (!unescape(name.substr(1, name.size() - 2), plain))
        return Error::invalid(cat("invalid string literal: ", name));
      if (!step(plain)) return Error::invalid("does not refer to a valid field");
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
  if (normalized != nullptr) *normalized = std::move(shown);
  return at;
}

void validate_definition_schema(const Value& schema, const Path& path, bool has_status,
                                bool is_stored, const CelChecker& cel, FieldErrors& errors) {
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
  FieldErrors structural;
  if (compiled.ok()) {
    validate_structural(schema, at, structural);
    if (structural.empty())
      DefaultRules(cel, structural).run(schema, (*compiled)->root(), at, false, true);
    for (const FieldError& error : structural.errors())
      found.add(error.fault, Path(error.field), error.text);
  }
  FieldErrors faults;
  validate_openapi(schema, at, faults);
  for (const FieldError& error : faults.errors())
    found.add(error.fault, Path(error.field), error.text);
  // What keeps a schema from being compiled is mostly told better by the rules above.
  if (found.empty() && !compiled.ok()) found.invalid(at, "", compiled.error().message());
  if (compiled.ok() && structural.empty() && cel.rules && (*compiled)->has_validations())
    cel.rules({schema, at, faults, is_stored}, found);
  for (const FieldError& error : found.errors())
    errors.add(error.fault, Path(error.field), error.text);
}

}  // namespace dibs::api
