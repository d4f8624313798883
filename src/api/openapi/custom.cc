// Definitions of custom resources, from their openAPIV3Schema.

#include <algorithm>

#include "api/openapi/build.h"
#include "api/schema/builtin.h"
#include "base/strings.h"

namespace dibs::api::openapi {
namespace {

using json::Value;

/// "com.example.stable.v1.CronTab" of stable.example.com.
std::string definition_name(const ResourceInfo& resource, std::string_view kind) {
  auto parts = split(resource.group, '.');
  std::string name;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) append(name, *part, '.');
  return cat(name, resource.version, '.', kind);
}

Value type_meta(std::string_view words) {
  return Value::object({{"description", Value(words)}, {"type", "string"}});
}

void add_type_meta(Value& properties) {
  properties.set(
      "apiVersion",
      type_meta("APIVersion defines which version of the API this object is written in."));
  properties.set("kind", type_meta("The kind of this object."));
}

Value described_ref(Definitions& definitions, const Schema& schema, std::string_view words) {
  Value ref = definitions.ref(schema);
  if (definitions.dialect() == Dialect::v3) ref = Value::object({{"allOf", Value::array({ref})}});
  ref.set("description", Value(words));
  return ref;
}

/// What version 2 cannot say is left out, so that a client does not refuse what the server takes.
Value reduced(const Value& schema, int depth) {
  if (!schema.is_object() || depth > 200) return schema;
  bool any_type = schema["nullable"].as_bool() || schema["x-kubernetes-int-or-string"].as_bool();
  Value out = Value::object();
  for (const auto& [key, value] : schema.members()) {
    if (key == "nullable" || key == "oneOf" || key == "anyOf" || key == "allOf" || key == "not" ||
        key == "default")
      continue;
    if (any_type && (key == "type" || key == "items" || key == "properties" ||
                     key == "additionalProperties" || key == "required"))
      continue;
    if (key == "properties") {
      Value properties = Value::object();
      for (const auto& [name, property] : value.members())
        properties.set(name, reduced(property, depth + 1));
      out.set(key, std::move(properties));
    } else if (key == "items" || (key == "additionalProperties" && value.is_object())) {
      out.set(key, reduced(value, depth + 1));
    } else if (key != "additionalProperties") {
      out.set(key, value);
    }
  }
  return out;
}

Value object_definition(const ResourceInfo& resource, Definitions& definitions) {
  Value out = resource.openapi.is_object() ? resource.openapi : Value::object();
  const Value kind =
      Value::array({group_version_kind({resource.group, resource.version, resource.kind})});
  const bool is_v2 = definitions.dialect() == Dialect::v2;
  if (is_v2 && out["x-kubernetes-preserve-unknown-fields"].as_bool()) {
    // Clients take properties that version 2 names for all there are.
    return Value::object({{"type", "object"}, {"x-kubernetes-group-version-kind", kind}});
  }
  if (is_v2) out = reduced(out, 0);
  out.set("type", "object");
  Value properties = out["properties"].is_object() ? out["properties"] : Value::object();
  add_type_meta(properties);
  properties.set(
      "metadata",
      described_ref(
          definitions, *builtin_type("meta/v1.ObjectMeta"),
          "Standard object's metadata: names, labels and other data that all objects have."));
  out.set("properties", std::move(properties));
  out.set("x-kubernetes-group-version-kind", kind);
  return out;
}

Value list_definition(const ResourceInfo& resource, const Value& item, Definitions& definitions) {
  Value properties = Value::object();
  add_type_meta(properties);
  properties.set("items", Value::object({{"type", "array"}, {"items", item}}));
  properties.set("metadata", described_ref(definitions, *builtin_type("meta/v1.ListMeta"),
                                           "Data of the list itself."));
  return Value::object({{"description", Value(cat("A list of objects of kind ", resource.kind))},
                        {"type", "object"},
                        {"properties", std::move(properties)},
                        {"required", Value::array({"items"})},
                        {"x-kubernetes-group-version-kind",
                         Value::array({group_version_kind(
                             {resource.group, resource.version, resource.list_kind})})}});
}

}  // namespace

Value custom_ref(const ResourceInfo& resource, bool list, Definitions& definitions) {
  std::string name = definition_name(resource, resource.kind);
  Value item = definitions.contains(name)
                   ? reference(definitions.dialect(), name)
                   : definitions.ref(name, object_definition(resource, definitions));
  if (!list) return item;
  std::string list_name = definition_name(resource, resource.list_kind);
  if (definitions.contains(list_name)) return reference(definitions.dialect(), list_name);
  return definitions.ref(list_name, list_definition(resource, item, definitions));
}

}  // namespace dibs::api::openapi
