#include "api/expressions/type_check.h"

#include <algorithm>
#include <memory>
#include <set>

#include "api/expressions/policy_environment.h"
#include "api/expressions/schema_types.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

constexpr std::string_view kReference = "#/components/schemas/";

/// The texts of a list, sorted. Nothing where one has a wildcard.
std::vector<std::string> plain(const Value& texts) {
  std::vector<std::string> out;
  for (const Value& text : texts.items()) {
    if (text.as_string().find('*') != std::string_view::npos) return {};
    out.push_back(text.str());
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Those without wildcards and sub-resources, sorted.
std::vector<std::string> plain_resources(const Value& texts) {
  std::vector<std::string> out;
  for (const Value& text : texts.items()) {
    if (text.as_string().find_first_of("*/") == std::string_view::npos) out.push_back(text.str());
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Resolver {
 public:
  explicit Resolver(const Value& schemas) : schemas_(schemas) {}

  Value resolve(const Value& schema) {
    const std::string_view name = reference_of(schema);
    if (name.empty()) return resolve_parts(schema);
    if (!open_.insert(std::string(name)).second) return Value::object({{"type", "object"}});
    Value made = resolve_parts(schemas_[name]);
    open_.erase(std::string(name));
    return made;
  }

 private:
  /// What the schema refers to, plainly or in an allOf, which there only wraps a reference; or "".
  static std::string_view reference_of(const Value& schema) {
    std::string_view reference = schema["$ref"].as_string();
    if (reference.starts_with(kReference)) return reference.substr(kReference.size());
    for (const Value& part : schema["allOf"].items()) {
      if (const std::string_view found = reference_of(part); !found.empty()) return found;
    }
    return {};
  }

  Value resolve_parts(const Value& schema) {
    Value made = schema;
    // Custom kinds say this by an extension.
    if (schema["format"].as_string() == "int-or-string")
      made.set("x-kubernetes-int-or-string", true);
    if (schema["properties"].is_object()) {
      Value properties = Value::object();
      for (const auto& [name, property] : schema["properties"].members())
        properties.set(name, resolve(property));
      made.set("properties", std::move(properties));
    }
    for (std::string_view key : {"items", "additionalProperties"}) {
      if (schema[key].is_object()) made.set(key, resolve(schema[key]));
    }
    return made;
  }

  const Value& schemas_;
  std::set<std::string> open_;  // from the root to here
};

bool is_of(const Value& schema, const GroupVersionKind& kind) {
  for (const Value& each : schema["x-kubernetes-group-version-kind"].items()) {
    if (each["group"].as_string() == kind.group && each["version"].as_string() == kind.version &&
        each["kind"].as_string() == kind.kind)
      return true;
  }
  return false;
}

/// An environment in which objects are of one kind, and the schemas that it points into.
class KindEnvironment {
 public:
  KindEnvironment(const Value& policy, const CheckedKind& checked, const Value& params) {
    const Value& spec = policy["spec"];
    PolicyEnvironment::Options options{.params = !spec["paramKind"].is_null(), .variables = true};
    options.request_resource = false;
    object_ = typed(checked.schema, checked.kind.kind);
    options.object = object_.get();
    params_ = typed(params, cat(spec["paramKind"]["kind"].as_string(), "Params"));
    options.params_schema = params_.get();
    environment_ = std::make_unique<PolicyEnvironment>(options);
    for (const Value& variable : spec["variables"].items()) {
      const cel::Compilation made = environment_->cel().compile(variable["expression"].as_string());
      environment_->add_variable(variable["name"].as_string(),
                                 made.program ? made.type : cel::Type());
    }
  }

  /// What is wrong with an expression, or "".
  std::string fault(std::string_view text) const {
    const cel::Compilation made = environment_->cel().compile(text);
    return made.program ? "" : cel::format_issues(text, made.issues);
  }

 private:
  static std::unique_ptr<TypedSchema> typed(const Value& schema, const std::string& name) {
    if (schema.is_null()) return nullptr;
    auto made = make_typed_schema(schema, true, name);
    return made->has_type ? std::move(made) : nullptr;
  }

  std::unique_ptr<TypedSchema> object_;
  std::unique_ptr<TypedSchema> params_;
  std::unique_ptr<PolicyEnvironment> environment_;
};

}  // namespace

std::vector<std::vector<RuleResource>> resources_to_check(const Value& policy) {
  std::vector<std::vector<RuleResource>> out;
  for (const Value& rule : policy["spec"]["matchConstraints"]["resourceRules"].items()) {
    std::vector<RuleResource> named;
    for (const std::string& group : plain(rule["apiGroups"])) {
      for (const std::string& version : plain(rule["apiVersions"])) {
        for (const std::string& resource : plain_resources(rule["resources"]))
          named.push_back({group, version, resource});
      }
    }
    if (!named.empty()) out.push_back(std::move(named));
  }
  return out;
}

Value resolved_schema(const Value& document, const GroupVersionKind& kind) {
  const Value& schemas = document["components"]["schemas"];
  for (const auto& [name, schema] : schemas.members()) {
    if (!is_of(schema, kind)) continue;
    return Resolver(schemas).resolve(Value::object({{"$ref", cat(kReference, name)}}));
  }
  return nullptr;
}

Value type_check(const Value& policy, const std::vector<CheckedKind>& kinds, const Value& params) {
  std::vector<std::unique_ptr<KindEnvironment>> environments;
  for (const CheckedKind& kind : kinds)
    environments.push_back(std::make_unique<KindEnvironment>(policy, kind, params));
  Value warnings = Value::array();
  const auto check = [&](std::string_view text, std::string field) {
    std::string told;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const std::string fault = environments[i]->fault(text);
      if (fault.empty()) continue;
      const GroupVersionKind& kind = kinds[i].kind;
      append(told, told.empty() ? "" : "\n", kind.group, "/", kind.version, ", Kind=", kind.kind,
             ": ", fault, "\n");
    }
    if (told.empty()) return;
    warnings.push(Value::object({{"fieldRef", std::move(field)}, {"warning", std::move(told)}}));
  };
  std::size_t i = 0;
  for (const Value& validation : policy["spec"]["validations"].items()) {
    const std::string at = cat("spec.validations[", i++, "].");
    check(validation["expression"].as_string(), cat(at, "expression"));
    if (const std::string_view text = validation["messageExpression"].as_string(); !text.empty())
      check(text, cat(at, "messageExpression"));
  }
  return warnings;
}

}  // namespace dibs::api
