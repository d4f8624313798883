#include "api/structural/structural_rules.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "api/structural/pattern.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

enum class Level : char { root, item, field };

bool is_int_or_string_choice(const Value& any_of) {
  static const Value choice =
      Value::array({Value::object({{"type", "integer"}}), Value::object({{"type", "string"}})});
  return any_of == choice;
}

class StructuralRules {
 public:
  explicit StructuralRules(FieldErrors& errors) : errors_(errors) {}

  void invariants(const Value& schema, Level level, const Path& path) {
    const auto type = schema["type"].as_string();
    if (type == "array" && schema["items"].is_null())
      errors_.required(path.child("items"), "must be specified");
    if (schema["items"].is_object()) invariants(schema["items"], Level::item, path.child("items"));
    const Path properties = path.child("properties");
    for (const auto& [key, property] : schema["properties"].members()) {
      invariants(property, Level::field, properties.key(key));
    }
    const Value& additional = schema["additionalProperties"];
    if (!additional.is_null()) {
      if (level == Level::root)
        errors_.forbidden(path.child("additionalProperties"), "must not be used at the root");
      if (additional.is_object())
        invariants(additional, Level::field, path.child("additionalProperties"));
    }
    extensions(schema, path);
    const Value& first = schema["allOf"][0];
    junctors(schema, is_int_or_string_choice(schema["anyOf"]),
             is_int_or_string_choice(first["anyOf"]), path);
    type_and_metadata(schema, level, path);
  }

  /// Every part that the junctors of the root speak about is declared beside them.
  void completeness(const Value& nested, const Value& schema, const Path& path,
                    const Path& nested_path) {
    auto inside = [&](const Value& part, const Path& at) {
      nested_completeness(part, schema, path, at);
    };
    if (nested["not"].is_object()) inside(nested["not"], nested_path.child("not"));
    for (const char* junctor : {"allOf", "anyOf", "oneOf"}) {
      const Path at = nested_path.child(junctor);
      for (std::size_t i = 0; i < nested[junctor].size(); ++i)
        inside(nested[junctor][i], at.index(i));
    }
  }

 private:
  void extensions(const Value& schema, const Path& path) {
    if (!schema["x-kubernetes-int-or-string"].as_bool()) return;
    for (const char* other :
         {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"}) {
      if (schema[other].as_bool()) {
        errors_.invalid(path.child(other), true,
                        "must be false if x-kubernetes-int-or-string is true");
      }
    }
  }

  void type_and_metadata(const Value& schema, Level level, const Path& path) {
    const auto type = schema["type"].as_string();
    const bool embedded = schema["x-kubernetes-embedded-resource"].as_bool();
    const bool preserves = schema["x-kubernetes-preserve-unknown-fields"].as_bool();
    if (embedded && type != "object") {
      constexpr std::string_view kText = "must be object if x-kubernetes-embedded-resource is true";
      if (type.empty()) {
        errors_.required(path.child("type"), kText);
      } else {
        errors_.invalid(path.child("type"), type, kText);
      }
    } else if (type.empty() && !schema["x-kubernetes-int-or-string"].as_bool() && !preserves) {
      errors_.required(path.child("type"), level == Level::root ? "must not be empty at the root"
                                           : level == Level::item
                                               ? "must not be empty for specified array items"
                                               : "must not be empty for specified object fields");
    }
    if (embedded && !schema["additionalProperties"].is_null()) {
      errors_.forbidden(path.child("additionalProperties"),
                        "must not be used if x-kubernetes-embedded-resource is set");
    }
    if (level == Level::root && !type.empty() && type != "object") {
      errors_.invalid(path.child("type"), type, "must be object at the root");
    }
    const Path properties = path.child("properties");
    const bool check = level == Level::root || embedded;
    for (const char* key : {"kind", "apiVersion"}) {
      const Value* property = schema["properties"].find(key);
      if (check && property != nullptr && (*property)["type"].as_string() != "string") {
        errors_.invalid(properties.key(key).child("type"), (*property)["type"].as_string(),
                        "must be string");
      }
    }
    if (const Value* metadata = schema["properties"].find("metadata")) {
      metadata_rules(*metadata, check, level, properties.key("metadata"));
    }
    if (embedded && !preserves && schema["properties"].empty()) {
      errors_.required(properties,
                       "must not be empty if x-kubernetes-embedded-resource is true without "
                       "x-kubernetes-preserve-unknown-fields");
    }
  }

  void metadata_rules(const Value& metadata, bool check, Level level, const Path& path) {
    if (check && metadata["type"].as_string() != "object") {
      errors_.invalid(path.child("type"), metadata["type"].as_string(), "must be object");
    }
    if (level != Level::root) return;
    bool fine = true;
    for (const auto& [key, value] : metadata.members()) {
      if (key == "properties") {
        for (const auto& [name, property] : value.members())
          fine = fine && (name == "name" || name == "generateName");
      } else if (key != "type" && key != "default") {
        fine = false;
      }
    }
    if (!fine) {
      errors_.forbidden(
          path,
          "must not specify anything other than name and generateName, but metadata is implicitly "
          "specified");
    }
  }

  void junctors(const Value& schema, bool skip_any, bool skip_first_all, const Path& path) {
    if (!skip_any) {
      const Path at = path.child("anyOf");
      for (std::size_t i = 0; i < schema["anyOf"].size(); ++i)
        nested(schema["anyOf"][i], false, at.index(i));
    }
    const Path all = path.child("allOf");
    for (std::size_t i = 0; i < schema["allOf"].size(); ++i) {
      nested(schema["allOf"][i], skip_first_all && i == 0, all.index(i));
    }
    const Path one = path.child("oneOf");
    for (std::size_t i = 0; i < schema["oneOf"].size(); ++i)
      nested(schema["oneOf"][i], false, one.index(i));
    if (schema["not"].is_object()) nested(schema["not"], false, path.child("not"));
    if (const auto pattern = schema["pattern"].str(); !pattern.empty()) {
      if (const auto fault = Pattern::fault_of(pattern); !fault.empty()) {
        errors_.invalid(path.child("pattern"), pattern,
                        cat("must be a valid regular expression, but isn't: ", fault));
      }
    }
  }

  void nested(const Value& schema, bool skip_any, const Path& path) {
    junctors(schema, skip_any, false, path);
    if (schema["items"].is_object()) nested(schema["items"], false, path.child("items"));
    const Path properties = path.child("properties");
    for (const auto& [key, property] : schema["properties"].members())
      nested(property, false, properties.key(key));

    const Value& additional = schema["additionalProperties"];
    const bool has_additional = additional.is_object() || additional.as_bool();
    forbid(!schema["type"].as_string().empty(), path, "type", "must be empty to be structural");
    forbid(has_additional, path, "additionalProperties", "must be undefined to be structural");
    forbid(!schema["default"].is_null(), path, "default", "must be undefined to be structural");
    forbid(!schema["title"].as_string().empty(), path, "title", "must be empty to be structural");
    forbid(!schema["description"].as_string().empty(), path, "description",
           "must be empty to be structural");
    for (std::string_view flag : {"nullable", "x-kubernetes-preserve-unknown-fields",
                                  "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"}) {
      forbid(schema[flag].as_bool(), path, flag, "must be false to be structural");
    }
    forbid(!schema["x-kubernetes-list-map-keys"].empty(), path, "x-kubernetes-list-map-keys",
           "must be empty to be structural");
    for (std::string_view key : {"x-kubernetes-list-type", "x-kubernetes-map-type"}) {
      forbid(!schema[key].is_null(), path, key, "must be undefined to be structural");
    }
    forbid(!schema["x-kubernetes-validations"].empty(), path, "x-kubernetes-validations",
           "must be empty to be structural");
    if (schema["properties"].contains("metadata")) {
      errors_.forbidden(properties.key("metadata"), "must not be specified in a nested context");
    }
  }

  void forbid(bool is_set, const Path& path, std::string_view key, std::string_view text) {
    if (is_set) errors_.forbidden(path.child(key), text);
  }

  void nested_completeness(const Value& nested, const Value& schema, const Path& path,
                           const Path& nested_path) {
    completeness(nested, schema, path, nested_path);
    if (nested["items"].is_object()) {
      const Path at = path.child("items");
      const Path nested_at = nested_path.child("items");
      if (schema["items"].is_object()) {
        nested_completeness(nested["items"], schema["items"], at, nested_at);
      } else {
        errors_.required(at, cat("because it is defined in ", nested_at.str()));
      }
    }
    const Path properties = path.child("properties");
    const Path nested_properties = nested_path.child("properties");
    for (const auto& [key, property] : nested["properties"].members()) {
      const Path at = properties.key(key);
      const Path nested_at = nested_properties.key(key);
      if (const Value* declared = schema["properties"].find(key)) {
        nested_completeness(property, *declared, at, nested_at);
      } else {
        errors_.required(at, cat("because it is defined in ", nested_at.str()));
      }
    }
  }

  FieldErrors& errors_;
};

}  // namespace

void validate_structural(const Value& schema, const Path& path, FieldErrors& errors) {
  FieldErrors found;
  StructuralRules rules(found);
  rules.invariants(schema, Level::root, path);
  rules.completeness(schema, schema, path, path);
  std::vector<FieldError> sorted = found.errors();
  std::stable_sort(sorted.begin(), sorted.end(), [](const FieldError& a, const FieldError& b) {
    return cat(a.field, ": ", a.text) < cat(b.field, ": ", b.text);
  });
  for (FieldError& error : sorted)
    errors.add(error.fault, Path(error.field), std::move(error.text));
}

}  // namespace dibs::api
