#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/spec.h"
#include "api/kinds/rule_table.h"
#include "api/kinds/workload/parts.h"
#include "api/kinds/workload/sets.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using namespace workload;

constexpr std::string_view kMoreThanReady = "cannot be greater than readyReplicas";

/// The pod template of a ReplicaSet, also of one that a Deployment will make.
void validate_replica_template(const Value& spec, const Path& spec_path, const Value* old_spec,
                               FieldErrors& errors) {
  if (!selector_parses(spec["selector"])) {
    errors.invalid(spec_path.child("selector"), shown_selector(spec["selector"]),
                   "invalid label selector");
    return;
  }
  // An empty selector selects everything and is told of by check_selector().
  if (!is_set(spec, "selector") || !label_selector_is_empty(spec["selector"])) {
    check_selector_fits(spec, spec_path, errors);
  }
  validate_pod_template(spec["template"], spec_path.child("template"), errors,
                        old_spec ? &(*old_spec)["template"] : nullptr);
  check_restarts_always(spec, spec_path, "ReplicaSet", errors);
}

std::vector<std::string> replica_warnings(const Value& object, const Value* old) {
  std::vector<std::string> warnings;
  if (!old) warnings = pod_name_warnings(object);
  for (std::string& text : template_warnings(object, old)) warnings.push_back(std::move(text));
  return warnings;
}

SelectableField status_replicas_field() {
  return {"status.replicas", [](const Value& object) {
            return std::to_string(object["status"]["replicas"].as_int());
          }};
}

// --- Deployment ---

void set_deployment_defaults(Value& object) {
  Value& spec = object.mut("spec");
  set_default(spec, "replicas", 1);
  set_pod_template_defaults(spec.mut("template"));
  Value& strategy = spec.mut("strategy");
  set_default_text(strategy, "type", "RollingUpdate");
  if (strategy["type"].as_string() == "RollingUpdate") {
    Value& rolling = strategy.mut("rollingUpdate");
    set_default(rolling, "maxUnavailable", "25%");
    set_default(rolling, "maxSurge", "25%");
  }
  set_default(spec, "revisionHistoryLimit", 10);
  set_default(spec, "progressDeadlineSeconds", 600);
}

void validate_deployment_strategy(const Value& strategy, const Path& path, FieldErrors& errors) {
  std::string_view type = strategy["type"].as_string();
  Path rolling_path = path.child("rollingUpdate");
  const Value& rolling = strategy["rollingUpdate"];
  if (type == "Recreate") {
    if (!rolling.is_null()) {
      errors.forbidden(rolling_path, "may not be specified when strategy `type` is 'Recreate'");
    }
  } else if (type == "RollingUpdate") {
    if (rolling.is_null()) {
      errors.required(rolling_path, "this should be defaulted and never be nil");
      return;
    }
    Path unavailable = rolling_path.child("maxUnavailable");
    check_int_or_percent(rolling["maxUnavailable"], unavailable, errors);
    check_int_or_percent(rolling["maxSurge"], rolling_path.child("maxSurge"), errors);
    if (int_or_percent_value(rolling["maxUnavailable"]) == 0 &&
        int_or_percent_value(rolling["maxSurge"]) == 0) {
      errors.invalid(unavailable, rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0");
    }
    check_at_most_100_percent(rolling["maxUnavailable"], unavailable, errors);
  } else {
    errors.not_supported(
        path,
        shown_strategy(strategy,
                       Value::object({{"MaxUnavailable", number_or(rolling["maxUnavailable"])},
                                      {"MaxSurge", number_or(rolling["maxSurge"])}})),
        {"Recreate", "RollingUpdate"});
  }
}

void validate_deployment_spec(const Value& spec, const Value* old_spec, FieldErrors& errors) {
  Path path("spec");
  check_nonnegative(spec, "replicas", path, errors);
  check_selector(spec, path, "deployment", errors);
  validate_replica_template(spec, path, old_spec, errors);
  validate_deployment_strategy(spec["strategy"], path.child("strategy"), errors);
  check_nonnegative(spec, "minReadySeconds", path, errors);
  check_nonnegative(spec, "revisionHistoryLimit", path, errors);
  if (is_set(spec, "progressDeadlineSeconds")) {
    check_nonnegative(spec, "progressDeadlineSeconds", path, errors);
    if (spec["progressDeadlineSeconds"].as_int() <= spec["minReadySeconds"].as_int()) {
      errors.invalid(path.child("progressDeadlineSeconds"), spec["progressDeadlineSeconds"],
                     "must be greater than minReadySeconds");
    }
  }
}

void validate_deployment_status(const Value& object, const Value& old, FieldErrors& errors) {
  const Value& status = object["status"];
  check_counts(
      status,
      {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
       "unavailableReplicas", "terminatingReplicas", "collisionCount"},
      errors);
  check_not_above(status, "updatedReplicas", "replicas", kMoreThanReplicas, errors);
  check_not_above(status, "readyReplicas", "replicas", kMoreThanReplicas, errors);
  check_not_above(status, "availableReplicas", "replicas", kMoreThanReplicas, errors);
  check_not_above(status, "availableReplicas", "readyReplicas", kMoreThanReady, errors);
  check_collisions(object, old, errors);
}

KindRules deployment_rules() {
  KindRules rules = workload_rules();
  rules.former_versions = {"extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"};
  rules.set_defaults = set_deployment_defaults;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object());
  };
  rules.prepare_update = [](Value& object, const Value& old, const RuleContext&) {
    // Of all workloads only a Deployment takes its annotations into the generation.
    const Value& metadata = object["metadata"];
    const Value& before = old["metadata"];
    if (!(metadata["annotations"] == before["annotations"])) {
      object.mut("metadata")
          .set("generation", static_cast<long>(before["generation"].as_int() + 1));
    }
  };
  rules.prepare_status = [](Value& object, const Value& old, const RuleContext&) {
    Value& metadata = object.mut("metadata");
    if (const Value* labels = old["metadata"].find("labels")) {
      metadata.set("labels", *labels);
    } else {
      metadata.erase("labels");
    }
  };
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_deployment_spec(object["spec"], nullptr, errors);
  };
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    validate_deployment_spec(object["spec"], &old["spec"], errors);
    Path spec("spec");
    check_selector_immutable(object["spec"]["selector"], old["spec"]["selector"],
                             spec.child("selector"), errors);
  };
  rules.validate_status = validate_deployment_status;
  rules.warnings = replica_warnings;
  return rules;
}

// --- ReplicaSet ---

void validate_replica_set_spec(const Value& spec, const Value* old_spec, FieldErrors& errors) {
  Path path("spec");
  check_nonnegative(spec, "replicas", path, errors);
  check_nonnegative(spec, "minReadySeconds", path, errors);
  check_selector(spec, path, "deployment", errors);
  validate_replica_template(spec, path, old_spec, errors);
}

void validate_replica_status(const Value& object, const Value&, FieldErrors& errors) {
  const Value& status = object["status"];
  check_counts(status,
               {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
                "observedGeneration", "terminatingReplicas"},
               errors);
  check_not_above(status, "fullyLabeledReplicas", "replicas", kMoreThanReplicas, errors);
  check_not_above(status, "readyReplicas", "replicas", kMoreThanReplicas, errors);
  check_not_above(status, "availableReplicas", "replicas", kMoreThanReplicas, errors);
  check_not_above(status, "availableReplicas", "readyReplicas", kMoreThanReady, errors);
}

KindRules replica_set_rules() {
  KindRules rules = workload_rules();
  rules.former_versions = {"extensions/v1beta1", "apps/v1beta2"};
  rules.set_defaults = [](Value& object) {
    Value& spec = object.mut("spec");
    set_default(spec, "replicas", 1);
    set_pod_template_defaults(spec.mut("template"));
  };
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object({{"replicas", 0}}));
  };
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_replica_set_spec(object["spec"], nullptr, errors);
  };
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    validate_replica_set_spec(object["spec"], &old["spec"], errors);
    Path spec("spec");
    check_selector_immutable(object["spec"]["selector"], old["spec"]["selector"],
                             spec.child("selector"), errors);
  };
  rules.validate_status = validate_replica_status;
  rules.warnings = replica_warnings;
  return rules;
}

// --- ReplicationController ---

void set_controller_defaults(Value& object) {
  Value& spec = object.mut("spec");
  set_default(spec, "replicas", 1);
  if (!is_set(spec, "template")) return;
  set_pod_template_defaults(spec.mut("template"));
  Value labels = spec["template"]["metadata"]["labels"];
  if (labels.empty()) return;
  if (spec["selector"].empty()) spec.set("selector", labels);
  Value& metadata = object.mut("metadata");
  if (metadata["labels"].empty()) metadata.set("labels", labels);
}

void validate_controller_spec(const Value& spec, const Value* old_spec, FieldErrors& errors) {
  Path path("spec");
  if (spec["selector"].empty()) errors.required(path.child("selector"));
  if (!is_set(spec, "template")) {
    errors.required(path.child("template"));
  } else {
    const Value& labels = spec["template"]["metadata"]["labels"];
    Path pod_template = path.child("template");
    if (!map_contains(labels, spec["selector"])) {
      Path metadata = pod_template.child("metadata");
      errors.invalid(metadata.child("labels"), sorted_map(labels),
                     "`selector` does not match template `labels`");
    }
    validate_pod_template(spec["template"], pod_template, errors,
                          old_spec ? &(*old_spec)["template"] : nullptr);
    check_restarts_always(spec, path, "ReplicationController", errors);
  }
  check_nonnegative(spec, "replicas", path, errors);
  check_nonnegative(spec, "minReadySeconds", path, errors);
}

KindRules controller_rules() {
  KindRules rules = workload_rules();
  rules.set_defaults = set_controller_defaults;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object({{"replicas", 0}}));
  };
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_controller_spec(object["spec"], nullptr, errors);
  };
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    validate_controller_spec(object["spec"], &old["spec"], errors);
  };
  rules.validate_status = validate_replica_status;
  rules.warnings = replica_warnings;
  rules.selectable = {status_replicas_field()};
  rules.orphans_by_default = true;  // as in the days before there were policies
  return rules;
}

// --- ControllerRevision ---

KindRules revision_rules() {
  KindRules rules;
  rules.former_versions = {"apps/v1beta1", "apps/v1beta2"};
  rules.validate = [](const Value& object, FieldErrors& errors) {
    check_nonnegative_value(object["revision"], Path("revision"), errors);
    const Value& data = object["data"];
    if (data.is_null()) {
      errors.required(Path("data"), "data is mandatory");
    } else if (!data.is_object()) {
      errors.required(Path("data"), "data must be a valid JSON object");
    }
  };
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    check_nonnegative_value(object["revision"], Path("revision"), errors);
    validate_immutable(object["data"], old["data"], Path("data"), errors);
  };
  return rules;
}

}  // namespace

void add_workload_rules(RuleTable& table) {
  table[{"apps", "Deployment"}] = deployment_rules();
  table[{"apps", "ReplicaSet"}] = replica_set_rules();
  table[{"apps", "StatefulSet"}] = stateful_set_rules();
  table[{"apps", "DaemonSet"}] = daemon_set_rules();
  table[{"apps", "ControllerRevision"}] = revision_rules();
  table[{"", "ReplicationController"}] = controller_rules();
}

}  // namespace dibs::api
