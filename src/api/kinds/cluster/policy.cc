#include <set>
#include <vector>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/pod/scheduling.h"
#include "api/kinds/rule_table.h"
#include "api/schema/builtin.h"
#include "api/schema/go_print.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

// --- PodDisruptionBudget ---

void validate_budget(const Value& object, FieldErrors& errors) {
  const Value& spec = object["spec"];
  Path path("spec");
  if (is_set(spec, "minAvailable") && is_set(spec, "maxUnavailable")) {
    Value shown =
        Value::object({{"MinAvailable", spec["minAvailable"]},
                       {"Selector", spec["selector"]},
                       {"MaxUnavailable", spec["maxUnavailable"]},
                       {"UnhealthyPodEvictionPolicy", spec["unhealthyPodEvictionPolicy"]}});
    errors.invalid(path, shown, "minAvailable and maxUnavailable cannot be both set");
  }
  for (std::string_view key : {"minAvailable", "maxUnavailable"}) {
    if (!is_set(spec, key)) continue;
    check_int_or_percent(spec[key], path.child(key), errors);
    check_at_most_100_percent(spec[key], path.child(key), errors);
  }
  validate_label_selector(spec["selector"], path.child("selector"), errors);
  const Value& eviction = spec["unhealthyPodEvictionPolicy"];
  if (!eviction.is_null() && !is_one_of(eviction.as_string(), {"AlwaysAllow", "IfHealthyBudget"})) {
    errors.not_supported(path.child("unhealthyPodEvictionPolicy"), eviction,
                         {"AlwaysAllow", "IfHealthyBudget"});
  }
}

void validate_budget_status(const Value& object, const Value&, FieldErrors& errors) {
  const Value& status = object["status"];
  Path path("status");
  validate_conditions(status["conditions"], path.child("conditions"), errors);
  for (std::string_view key :
       {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}) {
    check_nonnegative(status, key, path, errors);
  }
}

KindRules budget_rules() {
  KindRules rules;
  rules.name_rule = NameRule::any;
  rules.tracks_generation = true;
  rules.has_status = true;
  rules.allow_unconditional_update = false;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object({{"disruptionsAllowed", 0},
                                        {"currentHealthy", 0},
                                        {"desiredHealthy", 0},
                                        {"expectedPods", 0}}));
  };
  rules.validate = validate_budget;
  rules.validate_update = [](const Value& object, const Value&, FieldErrors& errors) {
    validate_budget(object, errors);
  };
  rules.validate_status = validate_budget_status;
  return rules;
}

// --- PriorityClass ---

constexpr std::int64_t kHighestUserPriority = 1'000'000'000;

struct SystemPriority {
  std::string_view name;
  std::int64_t value;
};
constexpr SystemPriority kSystemPriorities[] = {{"system-node-critical", 2'000'001'000},
                                                {"system-cluster-critical", 2'000'000'000}};

/// What is wrong with a class whose name begins with "system-"; "" for one that exists.
std::string system_priority_fault(const Value& object) {
  std::string_view name = object["metadata"]["name"].as_string();
  for (const SystemPriority& known : kSystemPriorities) {
    if (known.name != name) continue;
    if (object["value"].as_int() != known.value) {
      return cat("value of ", name, " PriorityClass must be ", known.value);
    }
    if (object["globalDefault"].as_bool()) {
      return cat("globalDefault of ", name, " PriorityClass must be false");
    }
    return {};
  }
  return cat(name, " is not a known system priority class");
}

void validate_priority_class(const Value& object, FieldErrors& errors) {
  constexpr std::string_view kPrefix = "system-";
  if (object["metadata"]["name"].as_string().substr(0, kPrefix.size()) == kPrefix) {
    if (std::string fault = system_priority_fault(object); !fault.empty()) {
      Path metadata("metadata");
      errors.forbidden(metadata.child("name"), cat("priority class names with 'system-' prefix are "
                                                   "reserved for system use only. error: ",
                                                   fault));
    }
  } else if (object["value"].as_int() > kHighestUserPriority) {
    errors.forbidden(Path("value"), cat("maximum allowed value of a user defined priority is ",
                                        kHighestUserPriority));
  }
  const Value& policy = object["preemptionPolicy"];
  if (policy.is_null()) return;
  if (policy.as_string().empty()) {
    errors.required(Path("preemptionPolicy"));
  } else if (!is_one_of(policy.as_string(), {"PreemptLowerPriority", "Never"})) {
    errors.not_supported(Path("preemptionPolicy"), policy, {"PreemptLowerPriority", "Never"});
  }
}

KindRules priority_class_rules() {
  KindRules rules;
  rules.set_defaults = [](Value& object) {
    set_default(object, "preemptionPolicy", "PreemptLowerPriority");
  };
  // It has a generation, which stays as it began.
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.mut("metadata").set("generation", 1);
  };
  rules.validate = validate_priority_class;
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    if (object["value"].as_int() != old["value"].as_int()) {
      errors.forbidden(Path("value"), "may not be changed in an update.");
    }
    validate_immutable(object["preemptionPolicy"], old["preemptionPolicy"],
                       Path("preemptionPolicy"), errors);
  };
  return rules;
}

// --- RuntimeClass ---

void check_runtime_scheduling(const Value& scheduling, FieldErrors& errors) {
  Path path("scheduling");
  if (is_set(scheduling, "nodeSelector")) {
    validate_labels(scheduling["nodeSelector"], path.child("nodeSelector"), errors);
  }
  Path tolerations = path.child("tolerations");
  std::vector<Value> seen;
  validate_tolerations(scheduling["tolerations"], tolerations, errors);
  for (const Value& toleration : scheduling["tolerations"].items()) seen.push_back(toleration);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      auto same = [&](std::string_view key) { return seen[i][key] == seen[j][key]; };
      if (!same("key") || !same("operator") || !same("value") || !same("effect")) continue;
      errors.duplicate(tolerations.index(i), go_form(seen[i], *builtin_type("core/v1.Toleration")));
      break;
    }
  }
}

void validate_runtime_class(const Value& object, FieldErrors& errors) {
  if (is_set(object, "overhead")) {
    // The fixed cost of a pod is judged as if it were the limits of a container.
    Value limits = Value::object({{"limits", object["overhead"]["podFixed"]}});
    validate_container_resources(limits, {}, Path("overhead"), errors);
  }
  if (is_set(object, "scheduling")) check_runtime_scheduling(object["scheduling"], errors);
  const Value& handler = object["handler"];
  if (handler.as_string().empty()) {
    errors.required(Path("handler"));
  } else {
    add_invalid(is_dns1123_label(handler.as_string(), Unit::bytes), handler, Path("handler"),
                errors);
  }
}

KindRules runtime_class_rules() {
  KindRules rules;
  rules.allow_unconditional_update = false;
  rules.allow_create_on_update = true;
  rules.validate = validate_runtime_class;
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    check_immutable_hidden(object["handler"], old["handler"], Path("handler"), errors);
  };
  return rules;
}

// --- Lease ---

void validate_lease(const Value& object, FieldErrors& errors) {
  const Value& spec = object["spec"];
  Path path("spec");
  const Value& seconds = spec["leaseDurationSeconds"];
  if (!seconds.is_null() && seconds.as_int() <= 0) {
    errors.invalid(path.child("leaseDurationSeconds"), seconds, "must be greater than 0");
  }
  check_nonnegative(spec, "leaseTransitions", path, errors);
}

KindRules lease_rules() {
  KindRules rules;
  rules.allow_unconditional_update = false;
  rules.allow_create_on_update = true;
  rules.validate = validate_lease;
  rules.validate_update = [](const Value& object, const Value&, FieldErrors& errors) {
    validate_lease(object, errors);
  };
  return rules;
}

}  // namespace

void add_policy_rules(RuleTable& table) {
  table[{"policy", "PodDisruptionBudget"}] = budget_rules();
  table[{"scheduling.k8s.io", "PriorityClass"}] = priority_class_rules();
  table[{"node.k8s.io", "RuntimeClass"}] = runtime_class_rules();
  table[{"coordination.k8s.io", "Lease"}] = lease_rules();
}

}  // namespace dibs::api
