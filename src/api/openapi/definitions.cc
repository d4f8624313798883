#include "api/openapi/build.h"
#include "api/schema/builtin.h"
#include "base/strings.h"

namespace dibs::api::openapi {

using json::Value;

Value reference(Dialect dialect, std::string_view name) {
  return Value::object(
      {{"$ref",
        Value(cat(dialect == Dialect::v3 ? "#/components/schemas/" : "#/definitions/", name))}});
}

Value group_version_kind(const GroupVersionKind& kind) {
  return Value::object(
      {{"group", Value(kind.group)}, {"kind", Value(kind.kind)}, {"version", Value(kind.version)}});
}

namespace {

constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";
constexpr std::string_view kExtensions =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

Value alternatives(std::string_view a, std::string_view b) {
  return Value::array({Value::object({{"type", Value(a)}}), Value::object({{"type", Value(b)}})});
}

/// The name under which a shape of its own is defined, or "".
std::string special_name(const Schema& schema) {
  switch (schema.shape) {
    case Shape::quantity:
      return "io.k8s.apimachinery.pkg.api.resource.Quantity";
    case Shape::int_or_string:
      return "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
    case Shape::time:
      return cat(kMeta, "Time");
    case Shape::micro_time:
      return cat(kMeta, "MicroTime");
    case Shape::duration:
      return cat(kMeta, "Duration");
    case Shape::fields_v1:
      return cat(kMeta, "FieldsV1");
    case Shape::any:
      switch (schema.any_form) {
        case AnyForm::raw:
          return "io.k8s.apimachinery.pkg.runtime.RawExtension";
        case AnyForm::json:
          return cat(kExtensions, "JSON");
        case AnyForm::schema_or_array:
          return cat(kExtensions, "JSONSchemaPropsOrArray");
        case AnyForm::schema_or_bool:
          return cat(kExtensions, "JSONSchemaPropsOrBool");
        case AnyForm::schema_or_strings:
          return cat(kExtensions, "JSONSchemaPropsOrStringArray");
      }
      return "";
    default:
      return "";
  }
}

Value special_definition(const Schema& schema, Dialect dialect) {
  Value out = Value::object();
  bool v3 = dialect == Dialect::v3;
  switch (schema.shape) {
    case Shape::quantity:
      if (v3)
        out.set("oneOf", alternatives("string", "number"));
      else
        out.set("type", "string");
      break;
    case Shape::int_or_string:
      if (v3)
        out.set("oneOf", alternatives("integer", "string"));
      else
        out.set("type", "string");
      out.set("format", "int-or-string");
      break;
    case Shape::time:
    case Shape::micro_time:
      out.set("type", "string");
      out.set("format", "date-time");
      break;
    case Shape::duration:
      out.set("type", "string");
      break;
    case Shape::any:
      if (schema.any_form == AnyForm::raw) out.set("type", "object");
      break;
    default:
      out.set("type", "object");
      break;
  }
  std::string_view words = description(special_name(schema), "");
  if (!words.empty()) out.set("description", Value(words));
  return out;
}

std::string_view list_type_word(ListType type) {
  return type == ListType::map ? "map" : type == ListType::set ? "set" : "atomic";
}

Value strings(const std::vector<std::string>& texts) {
  Value list = Value::array();
  for (const std::string& text : texts) list.push(Value(text));
  return list;
}

/// Go's zero of a value field that is always written; null where no default is told.
Value zero_default(const Field& field) {
  if (field.pointer || field.zero != Zero::keep) return {};
  switch (field.schema->shape) {
    case Shape::string:
      return "";
    case Shape::boolean:
      return false;
    case Shape::int32:
    case Shape::int64:
    case Shape::number:
      return 0;
    case Shape::object:
      return Value::object();
    default:
      return {};
  }
}

}  // namespace

Value Definitions::ref(const Schema& schema) {
  std::string name = special_name(schema);
  if (!name.empty()) {
    if (!made_.contains(name)) made_[name] = special_definition(schema, dialect_);
    return reference(dialect_, name);
  }
  if (!made_.contains(schema.full_name)) wanted_[schema.full_name] = &schema;
  return reference(dialect_, schema.full_name);
}

Value Definitions::ref(const std::string& name, const Value& definition) {
  made_.try_emplace(name, definition);
  return reference(dialect_, name);
}

Value Definitions::type_of(const Schema& schema) {
  Value out = Value::object();
  switch (schema.shape) {
    case Shape::string:
      out.set("type", "string");
      if (!schema.enum_values.empty()) out.set("enum", strings(schema.enum_values));
      return out;
    case Shape::bytes:
      return Value::object({{"type", "string"}, {"format", "byte"}});
    case Shape::boolean:
      return Value::object({{"type", "boolean"}});
    case Shape::int32:
      return Value::object({{"type", "integer"}, {"format", "int32"}});
    case Shape::int64:
      return Value::object({{"type", "integer"}, {"format", "int64"}});
    case Shape::number:
      return Value::object({{"type", "number"}, {"format", "double"}});
    case Shape::list:
      out.set("type", "array");
      out.set("items", type_of(*schema.element));
      if (dialect_ == Dialect::v3 && schema.element->shape == Shape::string) {
        out.mut("items").set("default", "");
      }
      return out;
    case Shape::map:
      out.set("type", "object");
      out.set("additionalProperties", type_of(*schema.element));
      return out;
    default:
      return ref(schema);
  }
}

Value Definitions::property(const Schema& holder, const Field& field) {
  const Schema& schema = *field.schema;
  Value type = type_of(schema);
  Value extra = Value::object();
  if (std::string_view words = description(holder.full_name, field.name); !words.empty()) {
    extra.set("description", Value(words));
  }
  if (field.default_value) {
    extra.set("default", *field.default_value);
  } else if (dialect_ == Dialect::v3) {
    if (Value zero = zero_default(field); !zero.is_null()) extra.set("default", std::move(zero));
  }
  if (schema.shape == Shape::list && field.name != "items") {
    extra.set("x-kubernetes-list-type", Value(list_type_word(schema.list_type)));
    if (!schema.map_keys.empty()) extra.set("x-kubernetes-list-map-keys", strings(schema.map_keys));
  }
  if (schema.shape == Shape::map && schema.atomic) extra.set("x-kubernetes-map-type", "atomic");
  if (field.merge && !field.merge_key.empty())
    extra.set("x-kubernetes-patch-merge-key", Value(field.merge_key));
  if (field.merge || field.retain_keys) {
    extra.set("x-kubernetes-patch-strategy", field.merge && field.retain_keys ? "merge,retainKeys"
                                             : field.merge                    ? "merge"
                                                                              : "retainKeys");
  }
  if (extra.empty()) return type;
  // Version 3 knows no words beside a reference.
  Value out = type;
  if (dialect_ == Dialect::v3 && type.contains("$ref")) {
    out = Value::object({{"allOf", Value::array({type})}});
  }
  for (const auto& [key, value] : extra.members()) out.set(key, value);
  return out;
}

Value Definitions::make(const Schema& schema) {
  Value out = Value::object();
  if (std::string_view words = description(schema.full_name, ""); !words.empty()) {
    out.set("description", Value(words));
  }
  out.set("type", "object");
  Value properties = Value::object();
  Value required = Value::array();
  for (const Field& field : schema.fields) {
    properties.set(field.name, property(schema, field));
    if (field.required) required.push(Value(field.name));
  }
  if (!properties.empty()) out.set("properties", std::move(properties));
  if (!required.empty()) out.set("required", std::move(required));
  if (const GroupVersionKind* kind = builtin_kind(schema)) {
    out.set("x-kubernetes-group-version-kind", Value::array({group_version_kind(*kind)}));
  }
  if (schema.atomic) out.set("x-kubernetes-map-type", "atomic");
  return out;
}

Value Definitions::finish() {
  while (!wanted_.empty()) {
    auto [name, schema] = *wanted_.begin();
    wanted_.erase(wanted_.begin());
    if (made_.contains(name)) continue;
    made_[name] = Value();  // a type may hold itself
    made_[name] = make(*schema);
  }
  Value out = Value::object();
  for (const auto& [name, definition] : made_) out.set(name, definition);
  return out;
}

}  // namespace dibs::api::openapi
