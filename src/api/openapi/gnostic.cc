// An OpenAPI v2 document as the protobuf message openapi.v2.Document, which older kubectl asks for.
// The numbers are those of gnostic.

#include "api/openapi/openapi.h"
#include "api/schema/protobuf_wire.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;
using wire::put_bytes;

void put_text(std::string& out, std::uint32_t number, const Value& value) {
  if (value.is_string() && !value.as_string().empty()) put_bytes(out, number, value.as_string());
}

void put_texts(std::string& out, std::uint32_t number, const Value& list) {
  for (const Value& item : list.items()) put_bytes(out, number, item.as_string());
}

void put_flag(std::string& out, std::uint32_t number, const Value& value) {
  if (value.as_bool()) wire::put_integer(out, number, 1);
}

/// openapi.v2.Any: its text is YAML, of which JSON is a part.
std::string any(const Value& value) {
  std::string out;
  put_bytes(out, 2, cat(json::write(value), '\n'));
  return out;
}

void put_extensions(std::string& out, std::uint32_t number, const Value& object) {
  for (const auto& [key, value] : object.members()) {
    if (!key.starts_with("x-")) continue;
    std::string named;
    put_bytes(named, 1, key);
    put_bytes(named, 2, any(value));
    put_bytes(out, number, named);
  }
}

std::string schema(const Value& value);

/// NamedSchema entries.
void put_named_schemas(std::string& out, std::uint32_t number, const Value& object) {
  for (const auto& [key, value] : object.members()) {
    std::string named;
    put_bytes(named, 1, key);
    put_bytes(named, 2, schema(value));
    put_bytes(out, number, named);
  }
}

void put_integer_member(std::string& out, std::uint32_t number, const Value& value) {
  if (value.is_number()) wire::put_integer(out, number, value.as_int());
}

void put_number(std::string& out, std::uint32_t number, const Value& value) {
  if (!value.is_number()) return;
  double d = value.as_double();
  std::uint64_t bits = 0;
  static_assert(sizeof bits == sizeof d);
  __builtin_memcpy(&bits, &d, sizeof bits);
  wire::put_fixed64(out, number, bits);
}

std::string schema(const Value& value) {
  std::string out;
  put_text(out, 1, value["$ref"]);
  put_text(out, 2, value["format"]);
  put_text(out, 3, value["title"]);
  put_text(out, 4, value["description"]);
  if (value.contains("default")) put_bytes(out, 5, any(value["default"]));
  put_number(out, 6, value["multipleOf"]);
  put_number(out, 7, value["maximum"]);
  put_flag(out, 8, value["exclusiveMaximum"]);
  put_number(out, 9, value["minimum"]);
  put_flag(out, 10, value["exclusiveMinimum"]);
  put_integer_member(out, 11, value["maxLength"]);
  put_integer_member(out, 12, value["minLength"]);
  put_text(out, 13, value["pattern"]);
  put_integer_member(out, 14, value["maxItems"]);
  put_integer_member(out, 15, value["minItems"]);
  put_flag(out, 16, value["uniqueItems"]);
  put_integer_member(out, 17, value["maxProperties"]);
  put_integer_member(out, 18, value["minProperties"]);
  put_texts(out, 19, value["required"]);
  for (const Value& item : value["enum"].items()) put_bytes(out, 20, any(item));
  if (value["additionalProperties"].is_object()) {
    std::string item;
    put_bytes(item, 1, schema(value["additionalProperties"]));
    put_bytes(out, 21, item);
  }
  if (value["type"].is_string()) {
    std::string type;
    put_text(type, 1, value["type"]);
    put_bytes(out, 22, type);
  }
  if (value["items"].is_object()) {
    std::string items;
    put_bytes(items, 1, schema(value["items"]));
    put_bytes(out, 23, items);
  }
  if (!value["properties"].empty()) {
    std::string properties;
    put_named_schemas(properties, 1, value["properties"]);
    put_bytes(out, 25, properties);
  }
  put_extensions(out, 31, value);
  return out;
}

std::string parameter(const Value& value) {
  std::string_view in = value["in"].as_string();
  std::string inner;
  std::string outer;
  if (in == "body") {
    put_text(inner, 1, value["description"]);
    put_text(inner, 2, value["name"]);
    put_text(inner, 3, value["in"]);
    put_flag(inner, 4, value["required"]);
    put_bytes(inner, 5, schema(value["schema"]));
    put_bytes(outer, 1, inner);
  } else {
    bool query = in == "query";
    put_flag(inner, 1, value["required"]);
    put_text(inner, 2, value["in"]);
    put_text(inner, 3, value["description"]);
    put_text(inner, 4, value["name"]);
    put_text(inner, query ? 6 : 5, value["type"]);
    put_flag(inner, query ? 20 : 19, value["uniqueItems"]);
    std::string non_body;
    put_bytes(non_body, query ? 3 : 4, inner);
    put_bytes(outer, 2, non_body);
  }
  std::string item;
  put_bytes(item, 1, outer);
  return item;
}

std::string responses(const Value& value) {
  std::string out;
  for (const auto& [code, answer] : value.members()) {
    std::string response;
    put_text(response, 1, answer["description"]);
    if (answer["schema"].is_object()) {
      std::string item;
      put_bytes(item, 1, schema(answer["schema"]));
      put_bytes(response, 2, item);
    }
    std::string response_value;
    put_bytes(response_value, 1, response);
    std::string named;
    put_bytes(named, 1, code);
    put_bytes(named, 2, response_value);
    put_bytes(out, 1, named);
  }
  return out;
}

std::string operation(const Value& value) {
  std::string out;
  put_texts(out, 1, value["tags"]);
  put_text(out, 3, value["description"]);
  put_text(out, 5, value["operationId"]);
  put_texts(out, 6, value["produces"]);
  put_texts(out, 7, value["consumes"]);
  for (const Value& item : value["parameters"].items()) put_bytes(out, 8, parameter(item));
  put_bytes(out, 9, responses(value["responses"]));
  put_texts(out, 10, value["schemes"]);
  put_extensions(out, 13, value);
  return out;
}

std::string path_item(const Value& value) {
  constexpr std::pair<std::string_view, std::uint32_t> kMethods[] = {
      {"get", 2},     {"put", 3},  {"post", 4}, {"delete", 5},
      {"options", 6}, {"head", 7}, {"patch", 8}};
  std::string out;
  for (const auto& [method, number] : kMethods) {
    if (value.contains(method)) put_bytes(out, number, operation(value[method]));
  }
  for (const Value& item : value["parameters"].items()) put_bytes(out, 9, parameter(item));
  return out;
}

}  // namespace

std::string openapi_v2_protobuf(const Value& document) {
  std::string info;
  put_text(info, 1, document["info"]["title"]);
  put_text(info, 2, document["info"]["version"]);
  std::string paths;
  for (const auto& [path, item] : document["paths"].members()) {
    std::string named;
    put_bytes(named, 1, path);
    put_bytes(named, 2, path_item(item));
    put_bytes(paths, 2, named);
  }
  std::string definitions;
  put_named_schemas(definitions, 1, document["definitions"]);

  std::string out;
  put_text(out, 1, document["swagger"]);
  put_bytes(out, 2, info);
  put_bytes(out, 8, paths);
  put_bytes(out, 9, definitions);
  return out;
}

}  // namespace dibs::api
