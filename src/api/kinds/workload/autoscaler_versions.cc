// Between autoscaling/v2 and v1.
#include <algorithm>
#include <cctype>

#include "api/kinds/checks.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/workload/autoscaler.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

constexpr std::string_view kMetrics = "autoscaling.alpha.kubernetes.io/metrics";
constexpr std::string_view kCurrentMetrics = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr std::string_view kConditions = "autoscaling.alpha.kubernetes.io/conditions";
constexpr std::string_view kBehavior = "autoscaling.alpha.kubernetes.io/behavior";
constexpr std::string_view kCarried[] = {kMetrics,
                                         kCurrentMetrics,
                                         kConditions,
                                         kBehavior,
                                         "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
                                         "autoscaling.alpha.kubernetes.io/scale-up-tolerance"};

constexpr std::string_view kSources[] = {"object", "pods", "resource", "containerResource",
                                         "external"};

/// Sets the member where there is something to set.
void put(Value& out, std::string_view key, const Value& value) {
  if (!value.is_null()) out.set(key, value);
}

/// As Go writes a structure with these fields, whichever way it was sent.
Value in_order(const Value& value, std::initializer_list<std::string_view> fields) {
  Value out = Value::object();
  for (std::string_view field : fields) put(out, field, value[field]);
  return out;
}

Value reference(const Value& to) { return in_order(to, {"kind", "name", "apiVersion"}); }

/// A quantity that the older form always has.
Value amount(const Value& value) { return value.is_null() ? Value("0") : value; }

bool is_processor_target(const Value& metric) {
  return metric["type"].as_string() == "Resource" &&
         metric["resource"]["name"].as_string() == "cpu" &&
         is_set(metric["resource"]["target"], "averageUtilization");
}

Value processor_metric(const Value& utilization) {
  const Value target =
      Value::object({{"type", "Utilization"}, {"averageUtilization", utilization}});
  return Value::object(
      {{"type", "Resource"}, {"resource", Value::object({{"name", "cpu"}, {"target", target}})}});
}

// --- What annotations say of metrics ---

Value source_to_v1(std::string_view field, const Value& source) {
  const Value& metric = source["metric"];
  const Value& target = source["target"];
  Value out = Value::object();
  if (field == "object") {
    out.set("target", reference(source["describedObject"]));
    out.set("metricName", metric["name"]);
    out.set("targetValue", amount(target["value"]));
    put(out, "selector", metric["selector"]);
    put(out, "averageValue", target["averageValue"]);
  } else if (field == "pods") {
    out.set("metricName", metric["name"]);
    out.set("targetAverageValue", amount(target["averageValue"]));
    put(out, "selector", metric["selector"]);
  } else if (field == "external") {
    out.set("metricName", metric["name"]);
    put(out, "metricSelector", metric["selector"]);
    put(out, "targetValue", target["value"]);
    put(out, "targetAverageValue", target["averageValue"]);
  } else {
    out.set("name", source["name"]);
    put(out, "targetAverageUtilization", target["averageUtilization"]);
    put(out, "targetAverageValue", target["averageValue"]);
    put(out, "container", source["container"]);
  }
  return out;
}

Value identifier(const Value& name, const Value& selector) {
  Value out = Value::object({{"name", name}});
  put(out, "selector", selector);
  return out;
}

Value source_from_v1(std::string_view field, const Value& source) {
  Value target = Value::object();
  Value out = Value::object();
  if (field == "object") {
    const Value& average = source["averageValue"];
    target.set("type", average.is_null() ? "Value" : "AverageValue");
    // A value beside an average is one that the older form could not leave out.
    if (average.is_null() || !quantity_of(source["targetValue"]).is_zero())
      target.set("value", amount(source["targetValue"]));
    put(target, "averageValue", average);
    out.set("describedObject", source["target"]);
    out.set("metric", identifier(source["metricName"], source["selector"]));
  } else if (field == "pods") {
    target.set("type", "AverageValue");
    target.set("averageValue", amount(source["targetAverageValue"]));
    out.set("metric", identifier(source["metricName"], source["selector"]));
  } else if (field == "external") {
    target.set("type", source["targetValue"].is_null() ? "AverageValue" : "Value");
    put(target, "value", source["targetValue"]);
    put(target, "averageValue", source["targetAverageValue"]);
    out.set("metric", identifier(source["metricName"], source["metricSelector"]));
  } else {
    const Value& share = source["targetAverageUtilization"];
    target.set("type", share.is_null() ? "AverageValue" : "Utilization");
    put(target, "averageValue", source["targetAverageValue"]);
    put(target, "averageUtilization", share);
    out.set("name", source["name"]);
    put(out, "container", source["container"]);
  }
  out.set("target", std::move(target));
  return out;
}

Value status_to_v1(std::string_view field, const Value& status) {
  const Value& metric = status["metric"];
  const Value& current = status["current"];
  Value out = Value::object();
  if (field == "object") {
    out.set("target", reference(status["describedObject"]));
    out.set("metricName", metric["name"]);
    out.set("currentValue", amount(current["value"]));
    put(out, "selector", metric["selector"]);
    put(out, "averageValue", current["averageValue"]);
  } else if (field == "pods") {
    out.set("metricName", metric["name"]);
    out.set("currentAverageValue", amount(current["averageValue"]));
    put(out, "selector", metric["selector"]);
  } else if (field == "external") {
    out.set("metricName", metric["name"]);
    put(out, "metricSelector", metric["selector"]);
    out.set("currentValue", amount(current["value"]));
    put(out, "currentAverageValue", current["averageValue"]);
  } else {
    out.set("name", status["name"]);
    put(out, "currentAverageUtilization", current["averageUtilization"]);
    out.set("currentAverageValue", amount(current["averageValue"]));
    put(out, "container", status["container"]);
  }
  return out;
}

Value status_from_v1(std::string_view field, const Value& status) {
  Value current = Value::object();
  Value out = Value::object();
  if (field == "object") {
    current.set("value", amount(status["currentValue"]));
    put(current, "averageValue", status["averageValue"]);
    out.set("describedObject", status["target"]);
    out.set("metric", identifier(status["metricName"], status["selector"]));
  } else if (field == "pods") {
    current.set("averageValue", amount(status["currentAverageValue"]));
    out.set("metric", identifier(status["metricName"], status["selector"]));
  } else if (field == "external") {
    current.set("value", amount(status["currentValue"]));
    put(current, "averageValue", status["currentAverageValue"]);
    out.set("metric", identifier(status["metricName"], status["metricSelector"]));
  } else {
    current.set("averageValue", amount(status["currentAverageValue"]));
    put(current, "averageUtilization", status["currentAverageUtilization"]);
    out.set("name", status["name"]);
    put(out, "container", status["container"]);
  }
  out.set("current", std::move(current));
  return out;
}

/// A list of metrics, each member that is set turned by `turn`.
Value turned(const Value& list, Value (*turn)(std::string_view field, const Value& source),
             bool (*left_out)(const Value& metric) = nullptr) {
  Value out = Value::array();
  for (const Value& metric : list.items()) {
    if (left_out != nullptr && left_out(metric)) continue;
    Value one = Value::object({{"type", metric["type"]}});
    for (std::string_view field : kSources) {
      if (is_set(metric, field)) one.set(field, turn(field, metric[field]));
    }
    out.push(std::move(one));
  }
  return out;
}

// --- Behavior, which is carried with the names of Go's fields ---

std::string go_name(std::string_view name) {
  std::string out(name);
  if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

std::string field_name(std::string_view name) {
  std::string out(name);
  if (!out.empty()) out[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(out[0])));
  return out;
}

Value renamed(const Value& value, std::string (*rename)(std::string_view)) {
  if (value.is_array()) {
    Value out = Value::array();
    for (const Value& item : value.items()) out.push(renamed(item, rename));
    return out;
  }
  if (!value.is_object()) return value;
  Value out = Value::object();
  for (const auto& [key, member] : value.members()) out.set(rename(key), renamed(member, rename));
  return out;
}

/// Every field of Go's structure, in its order.
Value whole_rules(const Value& rules) {
  if (rules.is_null()) return {};
  Value policies = rules["policies"];
  for (std::size_t i = 0; i < policies.size(); ++i) {
    policies.mut(i) = in_order(policies[i], {"type", "value", "periodSeconds"});
  }
  return Value::object({{"stabilizationWindowSeconds", rules["stabilizationWindowSeconds"]},
                        {"selectPolicy", rules["selectPolicy"]},
                        {"policies", std::move(policies)},
                        {"tolerance", rules["tolerance"]}});
}

// --- Annotations ---

/// What an annotation adds to the object, in normal form; null where it is absent or cannot be
/// read.
Value carried(const Value& object, std::string_view annotation, std::string_view part,
              std::string_view field, Value (*read)(const Value& list)) {
  const Value& text = object["metadata"]["annotations"][annotation];
  if (!text.is_string()) return {};
  const auto parsed = json::parse(text.as_string());
  if (!parsed.ok()) return {};
  const Value probe =
      Value::object({{part, Value::object({{field, read ? read(*parsed) : *parsed}})}});
  std::vector<std::string> unknown;
  const Schema* schema = builtin_schema("autoscaling", "v2", "HorizontalPodAutoscaler");
  auto decoded = decode(probe, *schema, Strictness::ignore, unknown);
  return decoded.ok() ? (*decoded)[part][field] : Value();
}

void carry(Value& object, std::string_view annotation, const Value& value) {
  object.mut("metadata").mut("annotations").set(annotation, json::write(value));
}

Value condition_to_v1(const Value& condition) {
  Value out = Value::object({{"type", condition["type"]},
                             {"status", condition["status"]},
                             {"lastTransitionTime", condition["lastTransitionTime"]}});
  for (std::string_view key : {"reason", "message", "observedGeneration"})
    put(out, key, condition[key]);
  return out;
}

/// The fields that both versions have.
Value copied(const Value& object, std::string_view version,
             std::initializer_list<std::string_view> status) {
  Value out = object;
  out.set("apiVersion", version);
  Value spec = Value::object();
  for (std::string_view key : {"scaleTargetRef", "minReplicas", "maxReplicas"}) {
    if (const Value* value = object["spec"].find(key)) spec.set(key, *value);
  }
  out.set("spec", std::move(spec));
  if (!object.contains("status")) return out;
  Value shown = Value::object();
  for (std::string_view key : status) {
    if (const Value* value = object["status"].find(key)) shown.set(key, *value);
  }
  out.set("status", std::move(shown));
  return out;
}

}  // namespace

void drop_autoscaler_annotations(Value& object) {
  const Value& annotations = object["metadata"]["annotations"];
  const bool any = std::any_of(std::begin(kCarried), std::end(kCarried),
                               [&](std::string_view key) { return annotations.contains(key); });
  if (!any) return;
  Value& changed = object.mut("metadata").mut("annotations");
  for (std::string_view key : kCarried) changed.erase(key);
  if (changed.empty()) object.mut("metadata").erase("annotations");
}

Value autoscaler_from_v1(const Value& object) {
  Value out = copied(object, "autoscaling/v2",
                     {"observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"});
  const Value& spec = object["spec"];
  Value metrics = carried(object, kMetrics, "spec", "metrics",
                          [](const Value& list) { return turned(list, source_from_v1); });
  if (!metrics.is_array()) metrics = Value::array();
  if (is_set(spec, "targetCPUUtilizationPercentage"))
    metrics.push(processor_metric(spec["targetCPUUtilizationPercentage"]));
  if (metrics.empty()) metrics.push(processor_metric(80));
  out.mut("spec").set("metrics", std::move(metrics));
  const Value behavior = carried(object, kBehavior, "spec", "behavior",
                                 [](const Value& whole) { return renamed(whole, field_name); });
  if (!behavior.empty()) out.mut("spec").set("behavior", behavior);

  if (out.contains("status")) {
    Value current = carried(object, kCurrentMetrics, "status", "currentMetrics",
                            [](const Value& list) { return turned(list, status_from_v1); });
    const Value& share = object["status"]["currentCPUUtilizationPercentage"];
    if (!current.is_array() && !share.is_null()) {
      const Value processor = Value::object(
          {{"name", "cpu"}, {"current", Value::object({{"averageUtilization", share}})}});
      current = Value::array({Value::object({{"type", "Resource"}, {"resource", processor}})});
    }
    Value& status = out.mut("status");
    if (status["currentReplicas"].as_int() == 0) status.erase("currentReplicas");
    status.set("currentMetrics", std::move(current));
    const Value conditions = carried(object, kConditions, "status", "conditions", nullptr);
    if (!conditions.empty()) status.set("conditions", conditions);
  }
  drop_autoscaler_annotations(out);
  return out;
}

Value autoscaler_to_v1(const Value& object) {
  Value out = copied(object, "autoscaling/v1", {"observedGeneration", "lastScaleTime"});
  const Value& spec = object["spec"];
  const Value& status = object["status"];
  drop_autoscaler_annotations(out);
  for (const Value& metric : spec["metrics"].items()) {
    if (!is_processor_target(metric)) continue;
    out.mut("spec").set("targetCPUUtilizationPercentage",
                        metric["resource"]["target"]["averageUtilization"]);
    break;
  }
  if (const Value others = turned(spec["metrics"], source_to_v1, is_processor_target);
      !others.empty()) {
    carry(out, kMetrics, others);
  }
  if (is_set(spec, "behavior")) {
    const Value& behavior = spec["behavior"];
    carry(out, kBehavior,
          renamed(Value::object({{"scaleUp", whole_rules(behavior["scaleUp"])},
                                 {"scaleDown", whole_rules(behavior["scaleDown"])}}),
                  go_name));
  }
  if (!out.contains("status")) return out;
  Value& shown = out.mut("status");
  shown.set("currentReplicas", status["currentReplicas"].as_int());
  shown.set("desiredReplicas", status["desiredReplicas"].as_int());
  for (const Value& metric : status["currentMetrics"].items()) {
    const Value& share = metric["resource"]["current"]["averageUtilization"];
    if (metric["resource"]["name"].as_string() == "cpu" && !share.is_null())
      shown.set("currentCPUUtilizationPercentage", share);
  }
  if (!status["currentMetrics"].empty())
    carry(out, kCurrentMetrics, turned(status["currentMetrics"], status_to_v1));
  if (!status["conditions"].empty()) {
    Value conditions = Value::array();
    for (const Value& one : status["conditions"].items()) conditions.push(condition_to_v1(one));
    carry(out, kConditions, conditions);
  }
  return out;
}

}  // namespace dibs::api
