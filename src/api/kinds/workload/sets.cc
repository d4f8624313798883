#include "api/kinds/workload/sets.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/spec.h"
#include "api/kinds/storage/volumes.h"
#include "api/kinds/workload/parts.h"
#include "base/strings.h"

namespace dibs::api::workload {
namespace {

constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

// --- StatefulSet ---

void set_stateful_set_defaults(Value& object) {
  Value& spec = object.mut("spec");
  set_pod_template_defaults(spec.mut("template"));
  set_default_text(spec, "podManagementPolicy", "OrderedReady");
  Value& strategy = spec.mut("updateStrategy");
  if (strategy["type"].as_string().empty()) {
    strategy.set("type", "RollingUpdate");
    set_default(strategy, "rollingUpdate", Value::object());
  }
  if (strategy["type"].as_string() == "RollingUpdate" && is_set(strategy, "rollingUpdate")) {
    Value& rolling = strategy.mut("rollingUpdate");
    set_default(rolling, "partition", 0);
    set_default(rolling, "maxUnavailable", 1);
  }
  Value& retention = spec.mut("persistentVolumeClaimRetentionPolicy");
  set_default_text(retention, "whenDeleted", "Retain");
  set_default_text(retention, "whenScaled", "Retain");
  set_default(spec, "replicas", 1);
  set_default(spec, "revisionHistoryLimit", 10);
  if (spec["volumeClaimTemplates"].size() == 0) return;
  Value& claims = spec.mut("volumeClaimTemplates");
  for (std::size_t i = 0; i < claims.size(); ++i) {
    Value& claim = claims.mut(i);
    set_default_text(claim, "kind", "PersistentVolumeClaim");
    set_default_text(claim, "apiVersion", "v1");
    set_claim_defaults(claim);
  }
}

void validate_stateful_set_strategy(const Value& strategy, const Path& path, FieldErrors& errors) {
  std::string_view type = strategy["type"].as_string();
  const Value& rolling = strategy["rollingUpdate"];
  Path rolling_path = path.child("rollingUpdate");
  const Value shown = Value::object({{"Partition", number_or(rolling["partition"])},
                                     {"MaxUnavailable", rolling["maxUnavailable"]}});
  if (type.empty()) {
    errors.required(path);
  } else if (type == "OnDelete") {
    if (rolling.is_null()) return;
    errors.invalid(rolling_path, shown, "only allowed for updateStrategy 'RollingUpdate'");
  } else if (type == "RollingUpdate") {
    if (rolling.is_null()) return;
    check_nonnegative(rolling, "partition", rolling_path, errors);
    const Value& unavailable = rolling["maxUnavailable"];
    if (unavailable.is_null()) return;
    Path unavailable_path = rolling_path.child("maxUnavailable");
    check_int_or_percent(unavailable, unavailable_path, errors);
    if (int_or_percent_value(unavailable) == 0) {
      errors.invalid(unavailable_path, unavailable, "cannot be 0");
    }
    check_at_most_100_percent(unavailable, unavailable_path, errors);
  } else {
    errors.invalid(path, shown_strategy(strategy, shown), "must be 'RollingUpdate' or 'OnDelete'");
  }
}

/// The template as its pods will be: hostname and subdomain are set per pod, and each claim
/// template makes a volume of its name.
Value template_with_claims(const Value& spec) {
  Value pod_template = spec["template"];
  const Value& claims = spec["volumeClaimTemplates"];
  const Value& pod = pod_template["spec"];
  if (claims.empty() && !is_set(pod, "subdomain") && !is_set(pod, "hostname")) return pod_template;
  Value& changed = pod_template.mut("spec");
  changed.erase("subdomain");
  changed.erase("hostname");
  if (claims.empty()) return pod_template;
  Value volumes = Value::array();
  auto is_claim = [&](std::string_view name) {
    for (const Value& claim : claims.items()) {
      if (claim["metadata"]["name"].as_string() == name) return true;
    }
    return false;
  };
  std::set<std::string> made;
  for (const Value& claim : claims.items()) {
    const Value& name = claim["metadata"]["name"];
    if (!made.insert(name.str()).second) continue;
    volumes.push(Value::object(
        {{"name", name}, {"persistentVolumeClaim", Value::object({{"claimName", name}})}}));
  }
  for (const Value& volume : changed["volumes"].items()) {
    if (!is_claim(volume["name"].as_string())) volumes.push(volume);
  }
  changed.set("volumes", std::move(volumes));
  return pod_template;
}

void validate_stateful_set_spec(const Value& spec, const Value* old_spec, FieldErrors& errors) {
  Path path("spec");
  const Value& management = spec["podManagementPolicy"];
  if (management.as_string().empty()) {
    errors.required(path.child("podManagementPolicy"));
  } else if (!is_one_of(management.as_string(), {"OrderedReady", "Parallel"})) {
    errors.invalid(path.child("podManagementPolicy"), management,
                   "must be 'OrderedReady' or 'Parallel'");
  }
  validate_stateful_set_strategy(spec["updateStrategy"], path.child("updateStrategy"), errors);
  const Value& retention = spec["persistentVolumeClaimRetentionPolicy"];
  Path retention_path = path.child("persistentVolumeClaimRetentionPolicy");
  for (std::string_view when : {"whenDeleted", "whenScaled"}) {
    if (retention.is_null()) break;
    if (!is_one_of(retention[when].as_string(), {"Retain", "Delete"})) {
      errors.not_supported(retention_path.child(when), retention[when].str(), {"Retain", "Delete"});
    }
  }
  if (!old_spec) {
    Path claims = path.child("volumeClaimTemplates");
    std::size_t i = 0;
    for (const Value& claim : spec["volumeClaimTemplates"].items()) {
      Path at = claims.index(i++);
      validate_claim_spec(claim["spec"], at.child("spec"), errors);
    }
  }
  check_nonnegative(spec, "replicas", path, errors);
  check_nonnegative(spec, "minReadySeconds", path, errors);
  if (is_set(spec, "ordinals")) {
    check_nonnegative(spec["ordinals"], "start", path.child("ordinals"), errors);
  }
  const Value& service = spec["serviceName"];
  if (!old_spec && !service.as_string().empty()) {
    add_invalid(is_dns1123_label(service.as_string()), service, path.child("serviceName"), errors);
  }
  bool selects = check_selector(spec, path, "statefulset", errors);
  if (!selects || !label_selector_is_empty(spec["selector"])) {
    check_selector_fits(spec, path, errors);
  }
  if (selector_parses(spec["selector"])) {
    Value pod_template = template_with_claims(spec);
    validate_pod_template(pod_template, path.child("template"), errors,
                          old_spec ? &(*old_spec)["template"] : nullptr);
  } else {
    errors.invalid(path.child("selector"), shown_selector(spec["selector"]), "");
  }
  check_restarts_always(spec, path, "StatefulSet", errors);
}

void validate_stateful_set_update(const Value& object, const Value& old, FieldErrors& errors) {
  const Value& spec = object["spec"];
  const Value& before = old["spec"];
  validate_stateful_set_spec(spec, &before, errors);
  Path path("spec");
  check_selector_immutable(spec["selector"], before["selector"], path.child("selector"), errors);
  for (std::string_view key : {"volumeClaimTemplates", "serviceName", "podManagementPolicy"}) {
    validate_immutable(spec[key], before[key], path.child(key), errors);
  }
}

void validate_stateful_set_status(const Value& object, const Value& old, FieldErrors& errors) {
  const Value& status = object["status"];
  check_counts(status,
               {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas",
                "availableReplicas", "observedGeneration", "collisionCount"},
               errors);
  check_not_above(status, "readyReplicas", "replicas", kMoreThanReplicas, errors);
  check_not_above(status, "currentReplicas", "replicas", kMoreThanReplicas, errors);
  check_not_above(status, "updatedReplicas", "replicas", kMoreThanReplicas, errors);
  check_not_above(status, "availableReplicas", "replicas", kMoreThanReplicas, errors);
  check_not_above(status, "availableReplicas", "readyReplicas",
                  "cannot be greater than status.readyReplicas", errors);
  check_collisions(object, old, errors);
}

std::vector<std::string> stateful_set_warnings(const Value& object, const Value* old) {
  std::vector<std::string> warnings = template_warnings(object, old);
  if (object["spec"]["revisionHistoryLimit"].as_int() < 0) {
    warnings.push_back(
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= "
        "0 "
        "is recommended");
  }
  return warnings;
}

}  // namespace

KindRules stateful_set_rules() {
  KindRules rules = workload_rules();
  rules.former_versions = {"apps/v1beta1", "apps/v1beta2"};
  rules.name_rule = NameRule::label;
  rules.set_defaults = set_stateful_set_defaults;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object({{"replicas", 0}, {"availableReplicas", 0}}));
  };
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_stateful_set_spec(object["spec"], nullptr, errors);
  };
  rules.validate_update = validate_stateful_set_update;
  rules.validate_status = validate_stateful_set_status;
  rules.warnings = stateful_set_warnings;
  return rules;
}

// --- DaemonSet ---

namespace {

void set_daemon_set_defaults(Value& object) {
  Value& spec = object.mut("spec");
  set_pod_template_defaults(spec.mut("template"));
  Value& strategy = spec.mut("updateStrategy");
  set_default_text(strategy, "type", "RollingUpdate");
  if (strategy["type"].as_string() == "RollingUpdate") {
    Value& rolling = strategy.mut("rollingUpdate");
    set_default(rolling, "maxUnavailable", 1);
    set_default(rolling, "maxSurge", 0);
  }
  set_default(spec, "revisionHistoryLimit", 10);
}

std::int64_t template_generation(const Value& object) {
  std::string_view text = object["metadata"]["annotations"][kTemplateGeneration].as_string();
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void set_template_generation(Value& object, std::int64_t generation) {
  object.mut("metadata").mut("annotations").set(kTemplateGeneration, std::to_string(generation));
}

void validate_daemon_set_strategy(const Value& strategy, const Path& path, FieldErrors& errors) {
  std::string_view type = strategy["type"].as_string();
  if (type == "OnDelete") return;
  if (type != "RollingUpdate") {
    errors.not_supported(
        path,
        shown_strategy(
            strategy,
            Value::object(
                {{"MaxUnavailable", number_or(strategy["rollingUpdate"]["maxUnavailable"])},
                 {"MaxSurge", number_or(strategy["rollingUpdate"]["maxSurge"])}})),
        {"RollingUpdate", "OnDelete"});
    return;
  }
  Path rolling_path = path.child("rollingUpdate");
  const Value& rolling = strategy["rollingUpdate"];
  if (rolling.is_null()) {
    errors.required(rolling_path);
    return;
  }
  Path unavailable = rolling_path.child("maxUnavailable");
  Path surge = rolling_path.child("maxSurge");
  check_int_or_percent(rolling["maxUnavailable"], unavailable, errors);
  check_int_or_percent(rolling["maxSurge"], surge, errors);
  check_at_most_100_percent(rolling["maxUnavailable"], unavailable, errors);
  check_at_most_100_percent(rolling["maxSurge"], surge, errors);
  bool may_miss = int_or_percent_value(rolling["maxUnavailable"]) != 0;
  bool may_exceed = int_or_percent_value(rolling["maxSurge"]) != 0;
  if (may_miss && may_exceed) {
    errors.invalid(surge, rolling["maxSurge"], "may not be set when maxUnavailable is non-zero");
  } else if (!may_miss && !may_exceed) {
    errors.required(unavailable, "cannot be 0 when maxSurge is 0");
  }
}

void validate_daemon_set_spec(const Value& spec, const Value* old_spec, FieldErrors& errors) {
  Path path("spec");
  validate_label_selector(spec["selector"], path.child("selector"), errors);
  check_selector_fits(spec, path, errors);
  if (is_set(spec, "selector") && label_selector_is_empty(spec["selector"])) {
    errors.invalid(path.child("selector"), spec["selector"],
                   "empty selector is invalid for daemonset");
  }
  validate_pod_template(spec["template"], path.child("template"), errors,
                        old_spec ? &(*old_spec)["template"] : nullptr);
  check_restarts_always(spec, path, "DaemonSet", errors);
  check_nonnegative(spec, "minReadySeconds", path, errors);
  validate_daemon_set_strategy(spec["updateStrategy"], path.child("updateStrategy"), errors);
  check_nonnegative(spec, "revisionHistoryLimit", path, errors);
}

void validate_daemon_set_status(const Value& object, const Value& old, FieldErrors& errors) {
  check_counts(object["status"],
               {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled",
                "numberReady", "observedGeneration", "updatedNumberScheduled", "numberAvailable",
                "numberUnavailable", "collisionCount"},
               errors);
  check_collisions(object, old, errors);
}

}  // namespace

KindRules daemon_set_rules() {
  KindRules rules = workload_rules();
  rules.former_versions = {"extensions/v1beta1", "apps/v1beta2"};
  rules.set_defaults = set_daemon_set_defaults;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object({{"currentNumberScheduled", 0},
                                        {"numberMisscheduled", 0},
                                        {"desiredNumberScheduled", 0},
                                        {"numberReady", 0}}));
    set_template_generation(object, std::max<std::int64_t>(template_generation(object), 1));
  };
  rules.prepare_update = [](Value& object, const Value& old, const RuleContext&) {
    bool changed = !(object["spec"]["template"] == old["spec"]["template"]);
    set_template_generation(object, template_generation(old) + (changed ? 1 : 0));
  };
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_daemon_set_spec(object["spec"], nullptr, errors);
  };
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    Path spec("spec");
    check_selector_immutable(object["spec"]["selector"], old["spec"]["selector"],
                             spec.child("selector"), errors);
    validate_daemon_set_spec(object["spec"], &old["spec"], errors);
  };
  rules.validate_status = validate_daemon_set_status;
  rules.warnings = template_warnings;
  return rules;
}

}  // namespace dibs::api::workload
