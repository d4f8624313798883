#include "api/kinds/workload/autoscaler.h"

#include <algorithm>

#include "api/kinds/checks.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/resources.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::int64_t kLongestPeriod = 1800;
constexpr std::int64_t kLongestWindow = 3600;
constexpr int kDefaultUtilization = 80;

/// What a reference is judged by.
struct ReferenceOptions {
  bool any_version = false;  // it is as it was
  bool core_group = false;   // a version without a group will do
};

struct Options {
  std::int64_t least = 1;  // minReplicas
  ReferenceOptions target;
  ReferenceOptions described;
  bool declared = true;  // maxReplicas is judged by its declaration
};

// --- Defaults ---

Value scaling_policy(std::string_view type, int value) {
  return Value::object({{"type", type}, {"value", value}, {"periodSeconds", 15}});
}

void default_rules(Value& behavior, std::string_view direction) {
  const bool up = direction == "scaleUp";
  if (!is_set(behavior, direction)) behavior.set(direction, Value::object());
  Value& rules = behavior.mut(direction);
  // How long the last ones before going down count is the controller's own to say.
  if (up) set_default(rules, "stabilizationWindowSeconds", 0);
  set_default(rules, "selectPolicy", "Max");
  if (!rules["policies"].is_null()) return;
  Value policies = Value::array();
  if (up) policies.push(scaling_policy("Pods", 4));
  policies.push(scaling_policy("Percent", 100));
  rules.set("policies", std::move(policies));
}

void set_autoscaler_defaults(Value& object) {
  const bool newest = object["apiVersion"].as_string() == "autoscaling/v2";
  if (newest) drop_autoscaler_annotations(object);
  Value& spec = object.mut("spec");
  set_default(spec, "minReplicas", 1);
  // The older version's other defaults are set where its annotations are read.
  if (!newest) return;
  if (spec["metrics"].empty()) {
    const Value target =
        Value::object({{"type", "Utilization"}, {"averageUtilization", kDefaultUtilization}});
    spec.set("metrics",
             Value::array({Value::object(
                 {{"type", "Resource"},
                  {"resource", Value::object({{"name", "cpu"}, {"target", target}})}})}));
  }
  if (!is_set(spec, "behavior")) return;
  Value& behavior = spec.mut("behavior");
  default_rules(behavior, "scaleUp");
  default_rules(behavior, "scaleDown");
}

// --- Validation ---

/// What is wrong with the apiVersion of a reference; "": nothing.
std::string version_fault(const Value& reference, const ReferenceOptions& options) {
  if (options.any_version) return {};
  const std::string_view version = reference["apiVersion"].as_string();
  const auto slashes = std::count(version.begin(), version.end(), '/');
  if (slashes > 1) return cat("unexpected GroupVersion string: ", version);
  const bool grouped = slashes == 1 && version.front() != '/';
  if (!grouped && !options.core_group) return "apiVersion must specify API group";
  return {};
}

void check_reference(const Value& reference, const Path& path, const ReferenceOptions& options,
                     FieldErrors& errors) {
  for (std::string_view key : {"kind", "name"}) {
    if (reference[key].as_string().empty()) {
      errors.required(path.child(key));
    } else {
      add_invalid(is_path_segment_name(reference[key].as_string()), reference[key], path.child(key),
                  errors);
    }
  }
  if (const auto fault = version_fault(reference, options); !fault.empty())
    errors.invalid(path.child("apiVersion"), Value(reference["apiVersion"].as_string()), fault);
}

void check_identifier(const Value& metric, const Path& path, FieldErrors& errors) {
  const Value& name = metric["name"];
  if (name.as_string().empty()) {
    errors.required(path.child("name"), "must specify a metric name");
  } else {
    add_invalid(is_path_segment_name(name.as_string()), name, path.child("name"), errors);
  }
}

void check_target(const Value& target, const Path& path, FieldErrors& errors) {
  const std::string_view type = target["type"].as_string();
  if (type.empty()) errors.required(path.child("type"), "must specify a metric target type");
  if (!is_one_of(type, {"Utilization", "Value", "AverageValue"})) {
    errors.invalid(path.child("type"), Value(type),
                   "must be either Utilization, Value, or AverageValue");
  }
  for (std::string_view key : {"value", "averageValue"}) {
    if (is_set(target, key) && quantity_of(target[key]).sign() != 1)
      errors.invalid(path.child(key), target[key], "must be positive");
  }
  if (is_set(target, "averageUtilization") && target["averageUtilization"].as_int() < 1) {
    errors.invalid(path.child("averageUtilization"), target["averageUtilization"],
                   "must be greater than 0");
  }
}

void check_object_source(const Value& source, const Path& path, const ReferenceOptions& described,
                         FieldErrors& errors) {
  check_reference(source["describedObject"], path.child("describedObject"), described, errors);
  check_identifier(source["metric"], path.child("metric"), errors);
  const Path target = path.child("target");
  check_target(source["target"], target, errors);
  if (!is_set(source["target"], "value") && !is_set(source["target"], "averageValue")) {
    errors.required(target.child("averageValue"), "must set either a target value or averageValue");
  }
}

void check_external_source(const Value& source, const Path& path, FieldErrors& errors) {
  check_identifier(source["metric"], path.child("metric"), errors);
  const Path target = path.child("target");
  check_target(source["target"], target, errors);
  const bool whole = is_set(source["target"], "value");
  const bool average = is_set(source["target"], "averageValue");
  if (!whole && !average) {
    errors.required(target.child("averageValue"),
                    "must set either a target value for metric or a per-pod target");
  }
  if (whole && average) {
    errors.forbidden(target.child("value"),
                     "may not set both a target value for metric and a per-pod target");
  }
}

void check_pods_source(const Value& source, const Path& path, FieldErrors& errors) {
  check_identifier(source["metric"], path.child("metric"), errors);
  const Path target = path.child("target");
  check_target(source["target"], target, errors);
  if (!is_set(source["target"], "averageValue"))
    errors.required(target.child("averageValue"), "must specify a positive target averageValue");
}

void check_resource_target(const Value& source, const Path& path, FieldErrors& errors) {
  const Path target = path.child("target");
  check_target(source["target"], target, errors);
  const bool share = is_set(source["target"], "averageUtilization");
  const bool raw = is_set(source["target"], "averageValue");
  if (!share && !raw) {
    errors.required(target.child("averageUtilization"),
                    "must set either a target raw value or a target utilization");
  }
  if (share && raw) {
    errors.forbidden(target.child("averageValue"),
                     "may not set both a target raw value and a target utilization");
  }
}

void check_resource_source(const Value& source, const Path& path, FieldErrors& errors) {
  if (source["name"].as_string().empty())
    errors.required(path.child("name"), "must specify a resource name");
  check_resource_target(source, path, errors);
}

void check_container_source(const Value& source, const Path& path, FieldErrors& errors) {
  const std::string_view name = source["name"].as_string();
  if (name.empty()) {
    errors.required(path.child("name"), "must specify a resource name");
  } else {
    validate_container_resource_name(name, path.child("name"), errors);
  }
  const Value& container = source["container"];
  if (container.as_string().empty()) {
    errors.required(path.child("container"), "must specify a container");
  } else {
    add_invalid(is_dns1123_label(container.as_string()), container, path.child("container"),
                errors);
  }
  check_resource_target(source, path, errors);
}

struct Source {
  std::string_view type;
  std::string_view field;
};
// In the order in which they are judged.
constexpr Source kSources[] = {{"Object", "object"},
                               {"External", "external"},
                               {"Pods", "pods"},
                               {"Resource", "resource"},
                               {"ContainerResource", "containerResource"}};

void check_source(const Value& metric, std::string_view field, const Path& path,
                  const ReferenceOptions& described, FieldErrors& errors) {
  const Value& source = metric[field];
  if (field == "object") check_object_source(source, path, described, errors);
  if (field == "external") check_external_source(source, path, errors);
  if (field == "pods") check_pods_source(source, path, errors);
  if (field == "resource") check_resource_source(source, path, errors);
  if (field == "containerResource") check_container_source(source, path, errors);
}

void check_metric(const Value& metric, const Path& path, const ReferenceOptions& described,
                  FieldErrors& errors) {
  const std::string_view type = metric["type"].as_string();
  const auto known = std::find_if(std::begin(kSources), std::end(kSources),
                                  [&](const Source& one) { return one.type == type; });
  if (type.empty()) errors.required(path.child("type"), "must specify a metric source type");
  if (known == std::end(kSources)) {
    errors.not_supported(path.child("type"), Value(type),
                         {"ContainerResource", "External", "Object", "Pods", "Resource"});
  }
  std::vector<std::string_view> present;
  for (const Source& one : kSources) {
    if (!is_set(metric, one.field)) continue;
    present.push_back(one.field);
    if (present.size() == 1)
      check_source(metric, one.field, path.child(one.field), described, errors);
  }
  const std::string_view wanted = known == std::end(kSources) ? std::string_view() : known->field;
  if (!wanted.empty() && !is_set(metric, wanted)) {
    errors.required(path.child(wanted), "must populate information for the given metric source");
  }
  if (present.size() == 1) return;
  for (std::string_view field : present) {
    if (field != wanted)
      errors.forbidden(path.child(field), "must populate the given metric source only");
  }
}

void check_metrics(const Value& spec, const Path& path, const Options& options,
                   FieldErrors& errors) {
  bool without_pods = false;  // a metric that there is even when no pod is
  const Value& metrics = spec["metrics"];
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    check_metric(metrics[i], path.index(i), options.described, errors);
    without_pods =
        without_pods || is_one_of(metrics[i]["type"].as_string(), {"Object", "External"});
  }
  if (is_set(spec, "minReplicas") && spec["minReplicas"].as_int() == 0 && !without_pods) {
    errors.forbidden(path,
                     "must specify at least one Object or External metric to support scaling to "
                     "zero replicas");
  }
}

void check_policy(const Value& policy, const Path& path, FieldErrors& errors) {
  const std::string_view type = policy["type"].as_string();
  if (!is_one_of(type, {"Pods", "Percent"}))
    errors.not_supported(path.child("type"), Value(type), {"Percent", "Pods"});
  if (policy["value"].as_int() <= 0)
    errors.invalid(path.child("value"), policy["value"].as_int(), "must be greater than zero");
  const std::int64_t period = policy["periodSeconds"].as_int();
  if (period <= 0) errors.invalid(path.child("periodSeconds"), period, "must be greater than zero");
  if (period > kLongestPeriod) {
    errors.invalid(path.child("periodSeconds"), period,
                   cat("must be less than or equal to ", kLongestPeriod));
  }
}

void check_rules(const Value& rules, const Path& path, FieldErrors& errors) {
  if (rules.is_null()) return;
  const Value& window = rules["stabilizationWindowSeconds"];
  const Path window_path = path.child("stabilizationWindowSeconds");
  if (window.as_int() < 0)
    errors.invalid(window_path, window, "must be greater than or equal to zero");
  if (window.as_int() > kLongestWindow)
    errors.invalid(window_path, window, cat("must be less than or equal to ", kLongestWindow));
  const Value& select = rules["selectPolicy"];
  if (!select.is_null() && !is_one_of(select.as_string(), {"Disabled", "Max", "Min"}))
    errors.not_supported(path.child("selectPolicy"), select, {"Disabled", "Max", "Min"});
  const Path policies = path.child("policies");
  if (rules["policies"].empty()) errors.required(policies, "must specify at least one Policy");
  for (std::size_t i = 0; i < rules["policies"].size(); ++i)
    check_policy(rules["policies"][i], policies.index(i), errors);
  if (is_set(rules, "tolerance") && quantity_of(rules["tolerance"]).sign() < 0) {
    errors.invalid(path.child("tolerance"), rules["tolerance"],
                   "must be greater than or equal to 0");
  }
}

void check_spec(const Value& spec, const Options& options, FieldErrors& errors) {
  const Path path("spec");
  const Value& least = spec["minReplicas"];
  const std::int64_t most = spec["maxReplicas"].as_int();
  if (!least.is_null() && least.as_int() < options.least) {
    errors.invalid(path.child("minReplicas"), least,
                   cat("must be greater than or equal to ", options.least));
  }
  if (most < 1 && !options.declared)
    errors.invalid(path.child("maxReplicas"), most, "must be greater than 0");
  if (!least.is_null() && most < least.as_int()) {
    errors.invalid(path.child("maxReplicas"), most,
                   "must be greater than or equal to `minReplicas`");
  }
  check_reference(spec["scaleTargetRef"], path.child("scaleTargetRef"), options.target, errors);
  check_metrics(spec, path.child("metrics"), options, errors);
  const Path behavior = path.child("behavior");
  check_rules(spec["behavior"]["scaleUp"], behavior.child("scaleUp"), errors);
  check_rules(spec["behavior"]["scaleDown"], behavior.child("scaleDown"), errors);
  // What is declared of a field is told after what is not.
  if (most == 0 && options.declared) {
    errors.required(path.child("maxReplicas"));
  } else if (most < 1 && options.declared) {
    errors.invalid(path.child("maxReplicas"), most, "must be greater than or equal to 1");
  }
}

/// What an object is judged by, given the one that it replaces.
Options options_for(const Value& object, const Value* old, bool to_zero, bool declared) {
  Options out;
  out.declared = declared;
  out.described.core_group = true;
  const Value& target = object["spec"]["scaleTargetRef"];
  // The one kind of the core group that has a scale.
  out.target.core_group = target["kind"].as_string() == "ReplicationController";
  if (old != nullptr) {
    const Value& before = (*old)["spec"];
    to_zero = to_zero || (is_set(before, "minReplicas") && before["minReplicas"].as_int() == 0);
    out.target.any_version =
        before["scaleTargetRef"]["apiVersion"].as_string() == target["apiVersion"].as_string() &&
        before["scaleTargetRef"]["kind"].as_string() == target["kind"].as_string();
    for (const Value& metric : before["metrics"].items()) {
      if (metric["type"].as_string() == "Object" && is_set(metric, "object") &&
          !version_fault(metric["object"]["describedObject"], out.described).empty()) {
        out.described.any_version = true;
      }
    }
  }
  if (to_zero) out.least = 0;
  return out;
}

void validate_autoscaler_status(const Value& object, const Value&, FieldErrors& errors) {
  const Path path("status");
  const Path conditions = path.child("conditions");
  const Value& list = object["status"]["conditions"];
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (is_set(list[i], "observedGeneration"))
      check_nonnegative(list[i], "observedGeneration", conditions.index(i), errors);
  }
  check_nonnegative(object["status"], "currentReplicas", path, errors);
  check_nonnegative(object["status"], "desiredReplicas", path, errors);
}

/// Where the gate is off, only an object that has tolerances already keeps them.
void drop_tolerances(Value& object, const Value* old) {
  const auto has = [](const Value& one) {
    const Value& behavior = one["spec"]["behavior"];
    return is_set(behavior["scaleUp"], "tolerance") || is_set(behavior["scaleDown"], "tolerance");
  };
  if (!has(object) || (old != nullptr && has(*old))) return;
  for (std::string_view direction : {"scaleUp", "scaleDown"}) {
    if (is_set(object["spec"]["behavior"], direction))
      object.mut("spec").mut("behavior").mut(direction).erase("tolerance");
  }
}

}  // namespace

KindRules make_autoscaler_rules(const Features& features) {
  const bool to_zero = features.on("HPAScaleToZero");
  const bool tolerances = features.on("HPAConfigurableTolerance");
  const bool declared = features.minor() >= 37;
  KindRules rules;
  rules.has_status = true;
  rules.tracks_generation = features.on("HPAGeneration");
  rules.judged_as_sent = true;
  rules.set_defaults = set_autoscaler_defaults;
  rules.prepare_create = [tolerances](Value& object, const RuleContext&) {
    object.set("status", Value::object({{"desiredReplicas", 0}, {"currentMetrics", nullptr}}));
    if (!tolerances) drop_tolerances(object, nullptr);
  };
  rules.prepare_update = [tolerances](Value& object, const Value& old, const RuleContext&) {
    if (!tolerances) drop_tolerances(object, &old);
  };
  rules.validate = [to_zero, declared](const Value& object, FieldErrors& errors) {
    check_spec(object["spec"], options_for(object, nullptr, to_zero, declared), errors);
  };
  rules.validate_update = [to_zero, declared](const Value& object, const Value& old,
                                              FieldErrors& errors) {
    check_spec(object["spec"], options_for(object, &old, to_zero, declared), errors);
  };
  rules.validate_status = validate_autoscaler_status;
  return rules;
}

}  // namespace dibs::api
