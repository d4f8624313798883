#include "api/structural/openapi_rules.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/structural/crd_schema.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

/// What an outer schema says about all inside it.
struct Surroundings {
  bool allows_defaults = true;
  std::string_view reason;  // why there may be no defaults
  bool inside_metadata = false;
};

bool has_line_break(std::string_view text) {
  return text.find_first_of("\n\r") != std::string_view::npos;
}

class OpenApiRules {
 public:
  explicit OpenApiRules(FieldErrors& errors) : errors_(errors) {}

  void run(const Value& schema, const Path& path, const Surroundings& around, bool is_root) {
    if (!schema.is_object()) return;
    keywords(schema, path, around);
    children(schema, path, around, is_root);
    extensions(schema, path);
    list_type(schema, path);
    keyed_list(schema, path);
    set_and_map_items(schema, path);
    const Path rules = path.child("x-kubernetes-validations");
    for (std::size_t i = 0; i < schema["x-kubernetes-validations"].size(); ++i) {
      validation(schema["x-kubernetes-validations"][i], schema, rules.index(i));
    }
  }

 private:
  void forbid(bool is_set, const Path& path, std::string_view key, std::string_view text) {
    if (is_set) errors_.forbidden(path.child(key), text);
  }

  void keywords(const Value& schema, const Path& path, const Surroundings& around) {
    static const std::vector<std::string> types = {"array",  "boolean", "integer",
                                                   "number", "object",  "string"};
    const auto type = schema["type"].str();
    if (!type.empty() && std::find(types.begin(), types.end(), type) == types.end()) {
      errors_.not_supported(path.child("type"), type, types);
    }
    if (!schema["default"].is_null() && !around.allows_defaults) {
      errors_.forbidden(path.child("default"), cat("must not be set ", around.reason));
    }
    forbid(!schema["id"].as_string().empty(), path, "id", "id is not supported");
    forbid(!schema["additionalItems"].is_null(), path, "additionalItems",
           "additionalItems is not supported");
    forbid(!schema["patternProperties"].empty(), path, "patternProperties",
           "patternProperties is not supported");
    forbid(!schema["definitions"].empty(), path, "definitions", "definitions is not supported");
    forbid(!schema["dependencies"].is_null(), path, "dependencies",
           "dependencies is not supported");
    forbid(!schema["$ref"].is_null(), path, "$ref", "$ref is not supported");
    forbid(type == "null", path, "type",
           "type cannot be set to null, use nullable as an alternative");
    forbid(schema["items"].is_array() && !schema["items"].empty(), path, "items",
           "items must be a schema object and not an array");
    forbid(around.inside_metadata && schema["x-kubernetes-embedded-resource"].as_bool(), path,
           "x-kubernetes-embedded-resource", "must not be used inside of resource meta");
    forbid(schema["uniqueItems"].as_bool(), path, "uniqueItems",
           "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
  }

  void children(const Value& schema, const Path& path, const Surroundings& around, bool is_root) {
    const Value& additional = schema["additionalProperties"];
    if (!additional.is_null()) {
      forbid(!schema["properties"].empty() && !(additional.is_boolean() && additional.as_bool()),
             path, "additionalProperties",
             "additionalProperties and properties are mutual exclusive");
      Surroundings inside = around;
      if (around.inside_metadata) {
        inside.allows_defaults = false;
        inside.reason = "inside additionalProperties applying to object metadata";
      }
      run(additional, path.child("additionalProperties"), inside, false);
    }
    const Path properties = path.child("properties");
    const bool is_resource = is_root || schema["x-kubernetes-embedded-resource"].as_bool();
    for (const auto& [key, property] : schema["properties"].members()) {
      Surroundings inside = around;
      std::string reason;
      if (is_resource && (key == "metadata" || key == "kind" || key == "apiVersion")) {
        inside.inside_metadata = true;
        if (is_root) {
          reason = cat("in top-level ", key);
          inside.allows_defaults = false;
          inside.reason = reason;
        }
      }
      run(property, properties.key(key), inside, false);
    }
    run(schema["not"], path.child("not"), around, false);
    for (const char* junctor : {"allOf", "oneOf", "anyOf"})
      list(schema[junctor], path.child(junctor), around);
    map(schema["definitions"], path.child("definitions"), around);
    run(schema["items"], path.child("items"), around, false);
    list(schema["items"], path.child("items"), around);
    map(schema["dependencies"], path.child("dependencies"), around);
  }

  void list(const Value& schemas, const Path& path, const Surroundings& around) {
    if (!schemas.is_array()) return;
    for (std::size_t i = 0; i < schemas.size(); ++i) run(schemas[i], path.index(i), around, false);
  }

  void map(const Value& schemas, const Path& path, const Surroundings& around) {
    for (const auto& [key, schema] : schemas.members()) run(schema, path.key(key), around, false);
  }

  void demand_type(const Value& schema, const Path& path, std::string_view type,
                   std::string_view text) {
    if (schema["type"].as_string() == type) return;
    if (schema["type"].as_string().empty()) {
      errors_.required(path.child("type"), text);
    } else {
      errors_.invalid(path.child("type"), schema["type"], text);
    }
  }

  void extensions(const Value& schema, const Path& path) {
    const Value* preserve = schema.find("x-kubernetes-preserve-unknown-fields");
    if (preserve != nullptr && preserve->is_boolean() && !preserve->as_bool()) {
      errors_.invalid(path.child("x-kubernetes-preserve-unknown-fields"), false,
                      "must be true or undefined");
    }
    const Value& map_type = schema["x-kubernetes-map-type"];
    if (map_type.is_null()) return;
    demand_type(schema, path, "object", "must be object if x-kubernetes-map-type is specified");
    if (map_type.as_string() != "atomic" && map_type.as_string() != "granular") {
      errors_.not_supported(path.child("x-kubernetes-map-type"), map_type, {"atomic", "granular"});
    }
  }

  void list_type(const Value& schema, const Path& path) {
    const Value& list_type = schema["x-kubernetes-list-type"];
    if (list_type.is_null()) return;
    const auto type = list_type.as_string();
    demand_type(schema, path, "array", "must be array if x-kubernetes-list-type is specified");
    if (schema["type"].as_string() == "array" && type == "set" && schema["items"].is_object()) {
      constexpr std::string_view kText =
          "must be atomic as item of a list with x-kubernetes-list-type=set";
      const Value& items = schema["items"];
      const Value& inner = items["x-kubernetes-list-type"];
      const Path at = path.child("items");
      if (items["type"].as_string() == "array" && !inner.is_null() &&
          inner.as_string() != "atomic") {
        errors_.invalid(at.child("x-kubernetes-list-type"), inner, kText);
      }
      if (items["type"].as_string() == "object" &&
          items["x-kubernetes-map-type"].as_string() != "atomic") {
        // Upstream shows the list type here.
        errors_.invalid(at.child("x-kubernetes-map-type"), inner, kText);
      }
    }
    if (type != "atomic" && type != "set" && type != "map") {
      errors_.not_supported(path.child("x-kubernetes-list-type"), list_type,
                            {"atomic", "set", "map"});
    }
  }

  void keyed_list(const Value& schema, const Path& path) {
    const Value& list_type = schema["x-kubernetes-list-type"];
    const Value& keys = schema["x-kubernetes-list-map-keys"];
    if (!keys.empty() && list_type.as_string() != "map") {
      constexpr std::string_view kText = "must be map if x-kubernetes-list-map-keys is non-empty";
      if (list_type.is_null()) {
        errors_.required(path.child("x-kubernetes-list-type"), kText);
      } else {
        errors_.invalid(path.child("x-kubernetes-list-type"), list_type, kText);
      }
    }
    if (list_type.as_string() != "map") return;
    const Value& items = schema["items"];
    const Path at = path.child("items");
    if (keys.empty()) {
      errors_.required(path.child("x-kubernetes-list-map-keys"),
                       "must not be empty if x-kubernetes-list-type is map");
    }
    if (items.is_null())
      errors_.required(at, "must have a schema if x-kubernetes-list-type is map");
    if (items.is_array()) {
      errors_.invalid(at, items, "must only have a single schema if x-kubernetes-list-type is map");
    }
    if (!items.is_object()) return;
    if (items["type"].as_string() != "object") {
      errors_.invalid(at.child("type"), items["type"].as_string(),
                      "must be object if parent array's x-kubernetes-list-type is map");
      return;
    }
    std::set<std::string_view> seen;
    const Path properties = at.child("properties");
    for (const Value& key : keys.items()) {
      const Value* property = items["properties"].find(key.as_string());
      if (property == nullptr) {
        errors_.invalid(path.child("x-kubernetes-list-map-keys"), keys,
                        "entries must all be names of item properties");
      } else if (const auto type = (*property)["type"].as_string();
                 type == "array" || type == "object") {
        errors_.invalid(properties.key(key.as_string()).child("type"), items["type"],
                        "must be a scalar type if parent array's x-kubernetes-list-type is map");
      }
      if (!seen.insert(key.as_string()).second) {
        errors_.invalid(path.child("x-kubernetes-list-map-keys"), keys,
                        "must not contain duplicate entries");
      }
    }
  }

  void set_and_map_items(const Value& schema, const Path& path) {
    const auto type = schema["x-kubernetes-list-type"].as_string();
    const Value& items = schema["items"];
    if (!items.is_object() || (type != "set" && type != "map")) return;
    const Path at = path.child("items");
    forbid(items["nullable"].as_bool(), at, "nullable",
           cat("cannot be nullable when x-kubernetes-list-type is ", type));
    if (type != "map") return;
    const Path properties = at.child("properties");
    for (const Value& key : schema["x-kubernetes-list-map-keys"].items()) {
      const Value* property = items["properties"].find(key.as_string());
      if (property == nullptr) continue;
      const Path here = properties.key(key.as_string());
      const auto required = items["required"].items();
      if (std::find(required.begin(), required.end(), key) == required.end() &&
          (*property)["default"].is_null()) {
        errors_.required(here.child("default"),
                         "this property is in x-kubernetes-list-map-keys, so it must have a "
                         "default or be a required "
                         "property");
      }
      forbid((*property)["nullable"].as_bool(), here, "nullable",
             "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
    }
  }

  /// All but the expressions themselves.
  void validation(const Value& rule, const Value& schema, const Path& path) {
    static const std::vector<std::string> reasons = {"FieldValueDuplicate", "FieldValueForbidden",
                                                     "FieldValueInvalid", "FieldValueRequired"};
    const auto text = trim(rule["rule"].as_string());
    const auto message = trim(rule["message"].as_string());
    if (text.empty()) {
      errors_.required(path.child("rule"), "rule is not specified");
    } else if (!rule["message"].as_string().empty() && message.empty()) {
      errors_.invalid(path.child("message"), rule["message"], "must be non-empty if specified");
    } else if (has_line_break(message)) {
      errors_.invalid(path.child("message"), rule["message"], "must not contain line breaks");
    } else if (has_line_break(text) && message.empty()) {
      errors_.required(path.child("message"),
                       "message must be specified if rule contains line breaks");
    }
    const auto expression = rule["messageExpression"].as_string();
    if (!expression.empty() && trim(expression).empty()) {
      errors_.required(path.child("messageExpression"),
                       "messageExpression must be non-empty if specified");
    }
    const Value& reason = rule["reason"];
    if (!reason.is_null() &&
        std::find(reasons.begin(), reasons.end(), reason.str()) == reasons.end()) {
      errors_.not_supported(path.child("reason"), reason, reasons);
    }
    const auto field = rule["fieldPath"].as_string();
    if (field.empty()) return;
    const Path at = path.child("fieldPath");
    if (trim(field).empty()) errors_.invalid(at, field, "must be non-empty if specified");
    if (has_line_break(field)) errors_.invalid(at, field, "must not contain line breaks");
    if (!schema_at_path(field, schema, true).ok())
      errors_.invalid(at, field, "must be a valid path");
  }

  FieldErrors& errors_;
};

}  // namespace

void validate_openapi(const Value& schema, const Path& path, FieldErrors& errors) {
  OpenApiRules(errors).run(schema, path, {}, true);
}

}  // namespace dibs::api
