// Namespaces, config maps, service accounts, limit ranges, quotas.

#include <algorithm>
#include <cstdio>
#include <set>

#include "api/kinds/access/secret.h"
#include "api/kinds/access/signing_request.h"
#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/pod.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/rule_table.h"
#include "api/kinds/subresource_rules.h"
#include "base/finalizers.h"
#include "base/names.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";
constexpr std::string_view kImmutableText = "field is immutable when `immutable` is set";

// Namespaces.

void set_name_label(Value& name_space) {
  std::string name = name_space["metadata"]["name"].str();
  if (name.empty()) return;
  if (name_space["metadata"]["labels"][kNameLabel].as_string() == name) return;
  name_space.mut("metadata").mut("labels").set(kNameLabel, name);
}

void prepare_namespace(Value& name_space, const RuleContext&) {
  set_name_label(name_space);
  name_space.set("status", Value::object({{"phase", "Active"}}));
  for (const Value& finalizer : name_space["spec"]["finalizers"].items()) {
    if (finalizer.as_string() == kNamespaceFinalizer) return;
  }
  name_space.mut("spec").mut("finalizers").push(kNamespaceFinalizer);
}

void keep_finalizers(Value& name_space, const Value& old, const RuleContext&) {
  if (is_set(old["spec"], "finalizers")) {
    name_space.mut("spec").set("finalizers", Value(old["spec"]["finalizers"]));
  } else if (name_space["spec"].contains("finalizers")) {
    name_space.mut("spec").erase("finalizers");
  }
}

void validate_namespace(const Value& name_space, FieldErrors& errors) {
  Path spec("spec");
  Path path = spec.child("finalizers");
  for (const Value& finalizer : name_space["spec"]["finalizers"].items()) {
    std::string_view name = finalizer.as_string();
    validate_finalizer_name(name, path, errors);
    if (name.find('/') == std::string_view::npos && !is_plain_finalizer(name)) {
      errors.invalid(path, finalizer,
                     "name is neither a standard finalizer name nor is it fully qualified");
    }
  }
}

void validate_namespace_status(const Value& name_space, const Value&, FieldErrors& errors) {
  Path status("status");
  const Value& phase = name_space["status"]["phase"];
  bool terminating = !name_space["metadata"]["deletionTimestamp"].is_null();
  if (!terminating && phase.as_string() != "Active") {
    errors.invalid(status.child("Phase"), Value(phase.as_string()),
                   "may only be 'Active' if `deletionTimestamp` is empty");
  } else if (terminating && phase.as_string() != "Terminating") {
    errors.invalid(status.child("Phase"), Value(phase.as_string()),
                   "may only be 'Terminating' if `deletionTimestamp` is not empty");
  }
}

KindRules namespace_rules() {
  KindRules rules;
  rules.set_defaults = set_name_label;
  rules.prepare_create = prepare_namespace;
  rules.prepare_update = keep_finalizers;
  rules.validate = validate_namespace;
  rules.validate_update = [](const Value&, const Value&, FieldErrors&) {};
  rules.validate_status = validate_namespace_status;
  rules.mark_deleted = [](Value& name_space, Time) {
    name_space.mut("status").set("phase", "Terminating");
  };
  rules.is_held = [](const Value& name_space) { return !name_space["spec"]["finalizers"].empty(); };
  rules.name_rule = NameRule::label;
  rules.has_status = true;
  rules.selectable = {
      {"status.phase", [](const Value& object) { return object["status"]["phase"].str(); }}};
  return rules;
}

KindRules finalize_rules() {
  KindRules rules;
  rules.prepare_update = [](Value& object, const Value& old, const RuleContext&) {
    object.set("status", Value(old["status"]));
  };
  rules.validate_update = [](const Value& object, const Value&, FieldErrors& errors) {
    validate_namespace(object, errors);
  };
  return rules;
}

// Config maps.

void validate_config_map(const Value& map, FieldErrors& errors) {
  Path data("data");
  Path binary("binaryData");
  std::size_t size = 0;
  for (const std::string& key : sorted_keys(map["data"])) {
    add_invalid(is_config_map_key(key), Value(key), data.key(key), errors);
    if (map["binaryData"].contains(key)) {
      errors.invalid(data.key(key), Value(key), "duplicate of key present in binaryData");
    }
    size += map["data"][key].as_string().size();
  }
  for (const std::string& key : sorted_keys(map["binaryData"])) {
    add_invalid(is_config_map_key(key), Value(key), binary.key(key), errors);
    size += decoded_size(map["binaryData"][key].as_string());
  }
  // The API names no field here.
  if (size > kMaxSecretSize) errors.too_long(Path(""), kMaxSecretSize);
}

void validate_config_map_update(const Value& map, const Value& old, FieldErrors& errors) {
  if (old["immutable"].as_bool()) {
    if (!map["immutable"].as_bool()) errors.forbidden(Path("immutable"), kImmutableText);
    for (const char* key : {"data", "binaryData"}) {
      bool same = map[key] == old[key] || (map[key].empty() && old[key].empty());
      if (!same) errors.forbidden(Path(key), kImmutableText);
    }
  }
  validate_config_map(map, errors);
}

// Limit ranges.

void set_limit_range_defaults(Value& range) {
  for (std::size_t i = 0; i < range["spec"]["limits"].size(); ++i) {
    if (range["spec"]["limits"][i]["type"].as_string() != "Container") continue;
    Value item = range["spec"]["limits"][i];
    auto fill = [&](const char* target, const char* source) {
      Value from = item[source];
      for (const auto& [name, amount] : from.members()) {
        if (!item[target].contains(name)) item.mut(target).set(name, amount);
      }
    };
    fill("default", "max");
    fill("defaultRequest", "default");
    fill("defaultRequest", "min");
    range.mut("spec").mut("limits").mut(i) = item;
  }
}

void check_limit_name(std::string_view type, std::string_view name, const Path& path,
                      FieldErrors& errors) {
  validate_resource_name(name, path, errors);
  if (!is_one_of(type, {"Pod", "Container"})) return;
  if (name.find('/') == std::string_view::npos) {
    if (!is_standard_container_resource(name)) {
      errors.invalid(path, Value(name), "must be a standard resource for containers");
    }
  } else if (!is_native_resource(name) && !is_extended_resource_name(name)) {
    errors.invalid(path, Value(name), "doesn't follow extended resource name standard");
  }
}

std::string fixed_text(double number) {
  char text[64];
  std::snprintf(text, sizeof text, "%f", number);
  return text;
}

// How min, max, default, defaultRequest and ratio of one resource must stand to each other.
void validate_limit(const Value& item, const std::string& name, const Path& path,
                    FieldErrors& errors) {
  const Value* min = item["min"].find(name);
  const Value* max = item["max"].find(name);
  const Value* limit = item["default"].find(name);
  const Value* request = item["defaultRequest"].find(name);
  const Value* ratio = item["maxLimitRequestRatio"].find(name);
  auto above = [](const Value* a, const Value* b) {
    return a != nullptr && b != nullptr && quantity_of(*a) > quantity_of(*b);
  };
  auto tell = [&](const char* field, const Value& shown, std::string_view first, const Value& a,
                  std::string_view second, const Value& b) {
    Path list = path.child(field);
    errors.invalid(list.key(name), shown,
                   cat(first, " ", a.as_string(), " is greater than ", second, " ", b.as_string()));
  };
  if (above(min, max)) tell("min", *min, "min value", *min, "max value", *max);
  if (above(min, request)) {
    tell("defaultRequest", *request, "min value", *min, "default request value", *request);
  }
  if (above(request, max)) {
    tell("defaultRequest", *request, "default request value", *request, "max value", *max);
  }
  if (above(request, limit)) {
    tell("defaultRequest", *request, "default request value", *request, "default limit value",
         *limit);
  }
  if (above(min, limit)) tell("default", *min, "min value", *min, "default value", *limit);
  if (above(limit, max)) tell("default", *max, "default value", *limit, "max value", *max);
  if (ratio != nullptr) {
    Path list = path.child("maxLimitRequestRatio");
    if (quantity_of(*ratio) < Quantity(1)) {
      errors.invalid(list.key(name), *ratio, cat("ratio ", ratio->as_string(), " is less than 1"));
    }
    if (min != nullptr && max != nullptr && !quantity_of(*min).is_zero()) {
      double bound = static_cast<double>(quantity_of(*max).milli_value()) /
                     static_cast<double>(quantity_of(*min).milli_value());
      if (quantity_of(*ratio).approximate() > bound) {
        errors.invalid(
            list.key(name), *ratio,
            cat("ratio ", ratio->as_string(), " is greater than max/min = ", fixed_text(bound)));
      }
    }
  }
  if (!is_overcommit_allowed(name) && limit != nullptr && request != nullptr &&
      !same_amount(*limit, *request)) {
    Path list = path.child("defaultRequest");
    errors.invalid(list.key(name), *request,
                   cat("default value ", limit->as_string(), " must equal to defaultRequest value ",
                       request->as_string(), " in ", name));
  }
}

void validate_limit_range(const Value& range, FieldErrors& errors) {
  Path spec("spec");
  Path list = spec.child("limits");
  std::set<std::string> types;
  const Value& limits = range["spec"]["limits"];
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const Value& item = limits[i];
    Path at = list.index(i);
    std::string type = item["type"].str();
    Faults faults = is_qualified_name(type);
    add_invalid(faults, Value(type), at.child("type"), errors);
    if (faults.empty() && type.find('/') == std::string::npos &&
        !is_one_of(type, {"Pod", "Container", "PersistentVolumeClaim"})) {
      errors.invalid(at.child("type"), Value(type),
                     "must be a standard limit type or fully qualified");
    }
    if (!types.insert(type).second) errors.duplicate(at.child("type"), Value(type));
    std::set<std::string> names;
    auto check = [&](const char* field) {
      Path field_at = at.child(field);
      for (const std::string& name : sorted_keys(item[field])) {
        check_limit_name(type, name, field_at.key(name), errors);
        names.insert(name);
      }
    };
    check("max");
    check("min");
    if (type == "Pod") {
      for (const char* field : {"default", "defaultRequest"}) {
        if (!item[field].empty()) {
          errors.forbidden(at.child(field), "may not be specified when `type` is 'Pod'");
        }
      }
    } else {
      check("default");
      check("defaultRequest");
    }
    if (type == "PersistentVolumeClaim" && !item["min"].contains("storage") &&
        !item["max"].contains("storage")) {
      errors.required(
          at.child("limits"),
          "either minimum or maximum storage value is required, but neither was provided");
    }
    check("maxLimitRequestRatio");
    if (type == "Pod") {
      Value bounds = item;
      bounds.erase("default");
      bounds.erase("defaultRequest");
      for (const std::string& name : names) validate_limit(bounds, name, at, errors);
    } else {
      for (const std::string& name : names) validate_limit(item, name, at, errors);
    }
  }
}

// Quotas.

void validate_quota_amounts(const Value& amounts, const Path& path, FieldErrors& errors) {
  for (const std::string& name : sorted_keys(amounts)) {
    Path at = path.key(name);
    validate_resource_name(name, at, errors);
    if (name.find('/') == std::string::npos && !is_standard_quota_resource(name)) {
      errors.invalid(at, Value(name), "must be a standard resource for quota");
    }
    validate_resource_amount(name, amounts[name], at, errors);
  }
}

bool is_scope(std::string_view scope) {
  return is_one_of(scope, {"Terminating", "NotTerminating", "BestEffort", "NotBestEffort",
                           "PriorityClass", "CrossNamespacePodAffinity", "VolumeAttributesClass"});
}

bool scope_fits(std::string_view scope, std::string_view name) {
  if (scope == "BestEffort") return name == "pods";
  if (scope == "VolumeAttributesClass") {
    return is_one_of(name, {"persistentvolumeclaims", "requests.storage"});
  }
  return is_one_of(name, {"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu",
                          "requests.memory"});
}

void check_scopes_agree(const std::set<std::string>& all, const Value& scopes, const Path& path,
                        FieldErrors& errors) {
  for (auto [one, other] :
       {std::pair("BestEffort", "NotBestEffort"), std::pair("Terminating", "NotTerminating")}) {
    if (all.count(one) && all.count(other)) errors.invalid(path, scopes, "conflicting scopes");
  }
}

void validate_scopes(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& scopes = spec["scopes"];
  Path at = path.child("scopes");
  std::set<std::string> all;
  for (const Value& scope : scopes.items()) {
    if (!is_scope(scope.as_string())) errors.invalid(at, scopes, "unsupported scope");
    for (const std::string& name : sorted_keys(spec["hard"])) {
      if (is_standard_quota_resource(name) && !scope_fits(scope.as_string(), name)) {
        errors.invalid(at, scopes, "unsupported scope applied to resource");
      }
    }
    all.insert(scope.str());
  }
  check_scopes_agree(all, scopes, at, errors);
}

Value shown_scope_selector(const Value& expressions) {
  Value list = Value::array();
  for (const Value& expression : expressions.items()) {
    list.push(Value::object({{"ScopeName", expression["scopeName"].str()},
                             {"Operator", expression["operator"].str()},
                             {"Values", expression["values"]}}));
  }
  return Value::object({{"MatchExpressions", std::move(list)}});
}

void validate_scope_selector(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& expressions = spec["scopeSelector"]["matchExpressions"];
  Path selector = path.child("scopeSelector");
  Path list = selector.child("matchExpressions");
  std::set<std::string> all;
  // The API shows the list's path without an index, and the selector as the server has it.
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    std::string_view scope = expressions[i]["scopeName"].as_string();
    std::string_view op = expressions[i]["operator"].as_string();
    all.emplace(scope);
    if (!is_scope(scope)) {
      errors.invalid(list.child("scopeName"), Value(scope), "unsupported scope");
    }
    for (const std::string& name : sorted_keys(spec["hard"])) {
      if (is_standard_quota_resource(name) && !scope_fits(scope, name)) {
        errors.invalid(list, shown_scope_selector(expressions),
                       "unsupported scope applied to resource");
      }
    }
    const Value& values = expressions[i]["values"];
    if (is_one_of(scope, {"BestEffort", "NotBestEffort", "Terminating", "NotTerminating",
                          "CrossNamespacePodAffinity"}) &&
        op != "Exists") {
      errors.invalid(
          list.child("operator"), Value(op),
          "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
          "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
          "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity");
    }
    if (op == "In" || op == "NotIn") {
      if (values.empty()) {
        errors.required(list.child("values"),
                        "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                        "selector");
      }
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty()) {
        errors.invalid(list.child("values"), values,
                       "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope "
                       "selector");
      }
    } else {
      errors.invalid(list.child("operator"), Value(op), "not a valid selector operator");
    }
  }
  check_scopes_agree(all, spec["scopes"], list, errors);
}

void validate_quota(const Value& quota, FieldErrors& errors) {
  Path spec("spec");
  validate_quota_amounts(quota["spec"]["hard"], spec.child("hard"), errors);
  validate_scopes(quota["spec"], spec, errors);
  validate_scope_selector(quota["spec"], spec, errors);
}

std::set<std::string> scope_set(const Value& quota) {
  std::set<std::string> scopes;
  for (const Value& scope : quota["spec"]["scopes"].items()) scopes.insert(scope.str());
  return scopes;
}

void validate_quota_update(const Value& quota, const Value& old, FieldErrors& errors) {
  validate_quota(quota, errors);
  if (scope_set(quota) != scope_set(old)) {
    Path spec("spec");
    errors.invalid(spec.child("scopes"), quota["spec"]["scopes"], "field is immutable");
  }
}

void validate_quota_status(const Value& quota, const Value&, FieldErrors& errors) {
  Path status("status");
  validate_quota_amounts(quota["status"]["hard"], status.child("hard"), errors);
  validate_quota_amounts(quota["status"]["used"], status.child("used"), errors);
}

std::vector<std::string> account_warnings(const Value& account, const Value*) {
  constexpr std::string_view key = "kubernetes.io/enforce-mountable-secrets";
  if (!account["metadata"]["annotations"].contains(key)) return {};
  return {cat("metadata.annotations[", key,
              "]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted "
              "secrets")};
}

KindRules ephemeral_containers_rules() {
  KindRules rules;
  rules.prepare_update = [](Value& pod, const Value& old, const RuleContext&) {
    prepare_ephemeral_containers(pod, old);
  };
  rules.validate_update = validate_ephemeral_containers_update;
  return rules;
}

KindRules resize_rules() {
  KindRules rules;
  rules.prepare_update = [](Value& pod, const Value& old, const RuleContext&) {
    prepare_resize(pod, old);
  };
  rules.validate_update = validate_resize;
  return rules;
}

}  // namespace

const KindRules* subresource_rules(std::string_view group, std::string_view kind,
                                   std::string_view subresource) {
  static const KindRules finalize = finalize_rules();
  static const KindRules ephemeral = ephemeral_containers_rules();
  static const KindRules resize = resize_rules();
  static const KindRules approval = signing_request_approval_rules();
  if (group == "certificates.k8s.io" && kind == "CertificateSigningRequest")
    return subresource == "approval" ? &approval : nullptr;
  if (!group.empty()) return nullptr;
  if (kind == "Namespace" && subresource == "finalize") return &finalize;
  if (kind == "Pod" && subresource == "ephemeralcontainers") return &ephemeral;
  if (kind == "Pod" && subresource == "resize") return &resize;
  return nullptr;
}

void add_core_rules(RuleTable& table) {
  table[{"", "Namespace"}] = namespace_rules();
  table[{"", "Secret"}] = secret_rules();

  KindRules config_map;
  config_map.validate = validate_config_map;
  config_map.validate_update = validate_config_map_update;
  table[{"", "ConfigMap"}] = std::move(config_map);

  KindRules account;
  account.warnings = account_warnings;
  account.returns_deleted = true;
  table[{"", "ServiceAccount"}] = std::move(account);

  KindRules limit_range;
  limit_range.set_defaults = set_limit_range_defaults;
  limit_range.validate = validate_limit_range;
  limit_range.validate_update = [](const Value& range, const Value&, FieldErrors& errors) {
    validate_limit_range(range, errors);
  };
  limit_range.allow_create_on_update = true;
  table[{"", "LimitRange"}] = std::move(limit_range);

  KindRules quota;
  quota.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object());
  };
  quota.validate = validate_quota;
  quota.validate_update = validate_quota_update;
  quota.validate_status = validate_quota_status;
  quota.has_status = true;
  quota.returns_deleted = true;
  table[{"", "ResourceQuota"}] = std::move(quota);

  table[{"", "ComponentStatus"}].deprecation = {19, "v1 ComponentStatus is deprecated in v1.19+"};
}

}  // namespace dibs::api
