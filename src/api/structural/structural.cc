#include "api/structural/structural.h"

#include <algorithm>
#include <utility>

#include "api/schema/builtin.h"
#include "api/structural/formats.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

/// Keywords whose members or elements are schemas, and those that are schemas themselves.
constexpr std::string_view kSchemaMaps[] = {"properties", "patternProperties", "definitions",
                                            "dependencies"};
constexpr std::string_view kSchemaLists[] = {"allOf", "anyOf", "oneOf"};
constexpr std::string_view kSchemas[] = {"items", "additionalProperties", "additionalItems", "not"};

std::optional<double> number(const Value& schema, std::string_view key) {
  const Value& value = schema[key];
  if (!value.is_number()) return std::nullopt;
  return value.as_double();
}

std::optional<std::int64_t> count(const Value& schema, std::string_view key) {
  const Value& value = schema[key];
  if (!value.is_number()) return std::nullopt;
  return value.as_int();
}

/// What a structural schema may not have, in upstream's words; "" when there is nothing of it.
std::string unsupported(const Value& schema) {
  if (!schema["id"].as_string().empty()) return "OpenAPIV3Schema 'id' is not supported";
  if (!schema["$schema"].as_string().empty()) return "OpenAPIV3Schema 'schema' is not supported";
  if (!schema["$ref"].as_string().empty()) return "OpenAPIV3Schema '$ref' is not supported";
  if (!schema["patternProperties"].empty())
    return "OpenAPIV3Schema 'patternProperties' is not supported";
  if (!schema["dependencies"].empty()) return "OpenAPIV3Schema 'dependencies' is not supported";
  if (!schema["additionalItems"].is_null())
    return "OpenAPIV3Schema 'additionalItems' is not supported";
  if (!schema["definitions"].empty()) return "OpenAPIV3Schema 'definitions' is not supported";
  if (schema["items"].is_array())
    return "OpenAPIV3Schema 'items' must be a schema, but is an array";
  const Value* preserve = schema.find("x-kubernetes-preserve-unknown-fields");
  if (preserve != nullptr && preserve->is_boolean() && !preserve->as_bool()) {
    return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
  }
  return "";
}

Shape shape_of(const Value& schema) {
  if (schema["x-kubernetes-int-or-string"].as_bool()) return Shape::int_or_string;
  const auto type = schema["type"].as_string();
  if (type == "string") return Shape::string;
  if (type == "boolean") return Shape::boolean;
  if (type == "integer") return Shape::int64;
  if (type == "number") return Shape::number;
  if (type == "array") return Shape::list;
  const bool has_properties = !schema["properties"].empty();
  if (type == "object" || has_properties) {
    const Value& additional = schema["additionalProperties"];
    return !has_properties && !additional.is_null() ? Shape::map : Shape::object;
  }
  return Shape::any;
}

const Schema& any_schema() {
  static const Schema schema = [] {
    Schema any;
    any.shape = Shape::any;
    any.preserve_unknown = true;
    return any;
  }();
  return schema;
}

const Schema& string_schema() {
  static const Schema schema = [] {
    Schema text;
    text.shape = Shape::string;
    return text;
  }();
  return schema;
}

void add_field(Schema& schema, std::string name, const Schema* type) {
  Field field;
  field.name = std::move(name);
  field.schema = type;
  schema.fields.push_back(std::move(field));
}

}  // namespace

class SchemaCompiler {
 public:
  SchemaCompiler() : result_(std::make_shared<CompiledSchema>()) {}

  Result<CompiledSchemaPtr> run(const Value& schema) {
    const Schema* root = compile(schema, true);
    if (!fault_.empty()) return Error::invalid(fault_);
    result_->root_ = root;
    return CompiledSchemaPtr(std::move(result_));
  }

 private:
  const Schema* compile(const Value& source, bool is_root) {
    Schema& schema = result_->nodes_.emplace_back();
    if (!fault_.empty()) return &schema;
    fault_ = unsupported(source);
    if (!fault_.empty()) return &schema;

    auto rules = std::make_shared<Rules>();
    schema.shape = shape_of(source);
    schema.nullable = source["nullable"].as_bool();
    schema.preserve_unknown = source["x-kubernetes-preserve-unknown-fields"].as_bool();
    schema.embedded_resource = is_root || source["x-kubernetes-embedded-resource"].as_bool();
    schema.atomic = source["x-kubernetes-map-type"].as_string() == "atomic";
    read_keywords(source, *rules);
    read_children(source, schema, *rules);
    read_list_type(source, schema, *rules);
    for (const Value& value : rules->enum_values) {
      if (value.is_string()) schema.enum_values.push_back(value.str());
    }
    if (schema.embedded_resource) add_meta_fields(schema, *rules);
    std::sort(schema.fields.begin(), schema.fields.end(),
              [](const Field& a, const Field& b) { return a.name < b.name; });
    if (!rules->validations.empty()) result_->has_validations_ = true;
    schema.rules = std::move(rules);
    return &schema;
  }

  static void read_keywords(const Value& source, Rules& rules) {
    const auto type = source["type"].as_string();
    if (source["x-kubernetes-int-or-string"].as_bool()) {
      rules.types = {"integer", "string"};
    } else if (!type.empty()) {
      rules.types = {std::string(type)};
    }
    // Of several types none counts, as upstream has it.
    const auto format = source["format"].as_string();
    const std::string_view format_type =
        rules.types.size() == 1 ? std::string_view(rules.types[0]) : "";
    if (!format.empty() && is_known_format(format_type, format)) rules.format = format;
    rules.maximum = number(source, "maximum");
    rules.minimum = number(source, "minimum");
    rules.multiple_of = number(source, "multipleOf");
    rules.exclusive_maximum = source["exclusiveMaximum"].as_bool();
    rules.exclusive_minimum = source["exclusiveMinimum"].as_bool();
    rules.max_length = count(source, "maxLength");
    rules.min_length = count(source, "minLength");
    rules.max_items = count(source, "maxItems");
    rules.min_items = count(source, "minItems");
    rules.max_properties = count(source, "maxProperties");
    rules.min_properties = count(source, "minProperties");
    if (const auto pattern = source["pattern"].as_string(); !pattern.empty()) {
      rules.pattern = std::make_shared<const Pattern>(std::string(pattern));
    }
    for (const Value& value : source["enum"].items()) rules.enum_values.push_back(value);
    for (const Value& name : source["required"].items()) rules.required.push_back(name.str());
    if (const Value& value = source["default"]; !value.is_null()) rules.default_value = value;
    rules.validations = source["x-kubernetes-validations"];
  }

  void read_children(const Value& source, Schema& schema, Rules& rules) {
    for (const auto& [name, property] : source["properties"].members()) {
      Field field;
      field.name = name;
      field.schema = compile(property, false);
      if (const Value& value = property["default"]; !value.is_null()) field.default_value = value;
      field.required =
          std::find(rules.required.begin(), rules.required.end(), name) != rules.required.end();
      schema.fields.push_back(std::move(field));
    }
    if (const Value& additional = source["additionalProperties"]; additional.is_boolean()) {
      rules.additional = additional.as_bool() ? Additional::anything : Additional::forbidden;
    } else if (additional.is_object()) {
      rules.additional = Additional::schema;
      rules.other = compile(additional, false);
    }
    if (const Value& items = source["items"]; items.is_object())
      rules.items = compile(items, false);
    if (schema.shape == Shape::list)
      schema.element = rules.items != nullptr ? rules.items : &any_schema();
    if (schema.shape == Shape::map)
      schema.element = rules.other != nullptr ? rules.other : &any_schema();
    for (const Value& part : source["allOf"].items()) rules.all_of.push_back(compile(part, false));
    for (const Value& part : source["anyOf"].items()) rules.any_of.push_back(compile(part, false));
    for (const Value& part : source["oneOf"].items()) rules.one_of.push_back(compile(part, false));
    if (const Value& part = source["not"]; part.is_object()) rules.none_of = compile(part, false);
  }

  static void read_list_type(const Value& source, Schema& schema, Rules& rules) {
    const auto type = source["x-kubernetes-list-type"].as_string();
    if (type == "set") schema.list_type = ListType::set;
    if (type == "map") {
      schema.list_type = ListType::map;
      rules.keyed_list = true;
      for (const Value& key : source["x-kubernetes-list-map-keys"].items()) {
        schema.map_keys.push_back(key.str());
      }
    }
  }

  static void add_meta_fields(Schema& schema, Rules& rules) {
    bool has_version = false;
    bool has_kind = false;
    bool has_metadata = false;
    const Schema* object_meta = builtin_type("meta/v1.ObjectMeta");
    for (Field& field : schema.fields) {
      has_version = has_version || field.name == "apiVersion";
      has_kind = has_kind || field.name == "kind";
      if (field.name == "metadata") {
        has_metadata = true;
        rules.metadata = std::exchange(field.schema, object_meta);
        field.default_value.reset();
      }
    }
    if (!has_version) add_field(schema, "apiVersion", &string_schema());
    if (!has_kind) add_field(schema, "kind", &string_schema());
    if (!has_metadata) add_field(schema, "metadata", object_meta);
    if (schema.shape == Shape::any) schema.shape = Shape::object;
  }

  std::shared_ptr<CompiledSchema> result_;
  std::string fault_;
};

const Schema* CompiledSchema::status() const {
  const Field* field = root_->field("status");
  return field == nullptr ? nullptr : field->schema;
}

Result<> check_schema_size(const Value& schema, const CompileLimits& limits) {
  std::vector<std::pair<const Value*, std::size_t>> open = {{&schema, 1}};
  std::size_t nodes = 0;
  while (!open.empty()) {
    const auto [value, depth] = open.back();
    open.pop_back();
    if (!value->is_object()) continue;
    if (depth > limits.depth) {
      return Error::invalid(cat("must not be nested deeper than ", limits.depth, " levels"));
    }
    if (++nodes > limits.nodes) {
      return Error::invalid(cat("must not have more than ", limits.nodes, " parts"));
    }
    auto add = [&, next = depth + 1](const Value& child) {
      if (child.is_object()) open.emplace_back(&child, next);
      for (const Value& item : child.items()) open.emplace_back(&item, next);
    };
    for (std::string_view key : kSchemaMaps) {
      for (const auto& [name, child] : (*value)[key].members()) add(child);
    }
    for (std::string_view key : kSchemaLists) add((*value)[key]);
    for (std::string_view key : kSchemas) add((*value)[key]);
  }
  return success();
}

Result<CompiledSchemaPtr> compile_schema(const Value& schema, const CompileLimits& limits) {
  if (schema.is_null()) {
    static const Value open =
        Value::object({{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}});
    return SchemaCompiler().run(open);
  }
  DIBS_CHECK(check_schema_size(schema, limits));
  return SchemaCompiler().run(schema);
}

}  // namespace dibs::api
