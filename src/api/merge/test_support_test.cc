#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "api/merge/test_support.h"
#include "base/strings.h"
#include "base/test_data.h"
#include "json/parse.h"

namespace dibs::api::test {

Value from_text(std::string_view text) {
  std::string with_quotes(text);
  for (char& c : with_quotes) {
    if (c == '\'') c = '"';
  }
  auto value = json::parse(with_quotes);
  if (!value.ok()) {
    std::fprintf(stderr, "%s: %s\n", with_quotes.c_str(), value.error().message().c_str());
    std::abort();
  }
  return *value;
}

Schema& SchemaBuilder::scalar(Shape shape) {
  schemas_.emplace_back().shape = shape;
  return schemas_.back();
}

Schema& SchemaBuilder::map(const Schema& element) {
  Schema& schema = scalar(Shape::map);
  schema.element = &element;
  return schema;
}

Schema& SchemaBuilder::list(const Schema& element, ListType type, std::vector<std::string> keys) {
  Schema& schema = scalar(Shape::list);
  schema.element = &element;
  schema.list_type = type;
  schema.map_keys = std::move(keys);
  return schema;
}

Schema& SchemaBuilder::object(std::string name, std::vector<Field> fields) {
  Schema& schema = scalar(Shape::object);
  schema.name = std::move(name);
  schema.fields = std::move(fields);
  return schema;
}

Field SchemaBuilder::field(std::string name, const Schema& schema) {
  Field field;
  field.name = std::move(name);
  field.schema = &schema;
  return field;
}

Field SchemaBuilder::merged(std::string name, const Schema& schema, std::string key) {
  Field field = SchemaBuilder::field(std::move(name), schema);
  field.merge = true;
  field.merge_key = std::move(key);
  return field;
}

const Schema& SchemaBuilder::from_openapi(const Value& openapi) {
  const std::string_view type = openapi["type"].as_string();
  Schema* schema = nullptr;
  if (openapi["x-kubernetes-int-or-string"].as_bool()) {
    schema = &scalar(Shape::int_or_string);
  } else if (type == "object" && openapi["additionalProperties"].is_object()) {
    schema = &map(from_openapi(openapi["additionalProperties"]));
  } else if (type == "object") {
    std::map<std::string, Field> fields;
    for (const auto& [name, property] : openapi["properties"].members()) {
      Field property_field = field(std::string(name), from_openapi(property));
      if (const Value* fallback = property.find("default"))
        property_field.default_value = *fallback;
      fields.emplace(name, std::move(property_field));
    }
    schema = &object("", {});
    for (auto& [name, property_field] : fields) schema->fields.push_back(property_field);
  } else if (type == "array") {
    const std::string_view list_type = openapi["x-kubernetes-list-type"].as_string();
    schema = &list(from_openapi(openapi["items"]), list_type == "set"   ? ListType::set
                                                   : list_type == "map" ? ListType::map
                                                                        : ListType::atomic);
    for (const Value& key : openapi["x-kubernetes-list-map-keys"].items()) {
      schema->map_keys.push_back(key.str());
    }
  } else {
    schema = &scalar(type == "string"    ? Shape::string
                     : type == "integer" ? Shape::int64
                     : type == "number"  ? Shape::number
                     : type == "boolean" ? Shape::boolean
                                         : Shape::any);
  }
  schema->atomic = openapi["x-kubernetes-map-type"].as_string() == "atomic";
  schema->preserve_unknown = openapi["x-kubernetes-preserve-unknown-fields"].as_bool();
  return *schema;
}

const Schema& SchemaBuilder::thing() {
  if (thing_ != nullptr) return *thing_;
  const Schema& text = scalar(Shape::string);
  const Schema& number = scalar(Shape::int32);
  Field protocol = field("protocol", text);
  protocol.default_value = Value("TCP");
  const Schema& port = object(
      "Port", {field("name", text), field("port", number), protocol, field("target", number)});
  Schema& selector = map(text);
  selector.atomic = true;
  Schema& free_form = scalar(Shape::any);
  free_form.preserve_unknown = true;
  const Schema& container =
      object("Container", {merged("env",
                                  list(object("Env", {field("name", text), field("value", text)}),
                                       ListType::map, {"name"}),
                                  "name"),
                           field("image", text), field("name", text)});
  const Schema& spec =
      object("ThingSpec",
             {field("any", free_form), field("args", list(text)),
              merged("containers", list(container, ListType::map, {"name"}), "name"),
              field("image", text), field("labels", map(text)), field("opaque", scalar(Shape::any)),
              merged("ports", list(port, ListType::map, {"port", "protocol"}), "port"),
              field("replicas", number), field("selector", selector),
              merged("set", list(text, ListType::set))});
  const Schema& condition =
      object("Condition", {field("reason", text), field("status", text), field("type", text)});
  const Schema& status =
      object("ThingStatus", {merged("conditions", list(condition, ListType::map, {"type"}), "type"),
                             field("replicas", number)});
  thing_ = &object("Thing", {field("apiVersion", text), field("kind", text), field("spec", spec),
                             field("status", status)});
  return *thing_;
}

std::string conformance_folder() { return dibs::test::conformance_data().string(); }
std::string read_file(const std::string& path) { return dibs::test::read_file(path); }

namespace {

const Value& session_file(std::string_view file) {
  static std::map<std::string, Value, std::less<>> files;
  auto at = files.find(file);
  if (at == files.end()) {
    const std::string folder = conformance_folder();
    auto parsed =
        json::parse(folder.empty() ? "null" : read_file(cat(folder, "/http/", file, ".json")));
    at = files.emplace(std::string(file), parsed.ok() ? *parsed : Value()).first;
  }
  return at->second;
}

}  // namespace

Value session_steps(std::string_view file, std::string_view session) {
  for (const Value& candidate : session_file(file)["sessions"].items()) {
    if (candidate["name"].as_string() == session) return candidate["steps"];
  }
  return Value();
}

}  // namespace dibs::api::test
