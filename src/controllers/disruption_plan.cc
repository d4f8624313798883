#include "controllers/disruption_plan.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "controllers/controller.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

/// The list with the condition in place of the one of its type, whose time stays while its status
/// does.
Value with_condition(const Value& conditions, Value wanted, Time now) {
  const Value& before = condition_in(conditions, wanted["type"].as_string());
  const bool same = !before.is_null() && before["status"] == wanted["status"];
  wanted.set("lastTransitionTime",
             same ? before["lastTransitionTime"] : Value(format_rfc3339(now)));
  Value out = Value::array();
  for (const Value& condition : conditions.items())
    out.push(condition["type"] == wanted["type"] ? wanted : condition);
  if (before.is_null()) out.push(std::move(wanted));
  return out;
}

Value allowed_condition(const char* status, const char* reason, const std::string& message,
                        std::int64_t generation) {
  Value condition = Value::object({{"type", "DisruptionAllowed"}, {"status", status}});
  if (generation != 0) condition.set("observedGeneration", generation);
  condition.set("lastTransitionTime", nullptr);  // its place
  condition.set("reason", reason);
  condition.set("message", message);
  return condition;
}

/// "25%" of `total`, rounded up, or the number itself.
Result<std::int64_t> scaled(const Value& bound, std::int64_t total) {
  if (!bound.is_string()) return bound.as_int();
  const std::string_view text = bound.as_string();
  int percent = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (fault != std::errc() || std::string_view(end, text.size() - (end - text.data())) != "%")
    return Error::invalid(
        cat("invalid value for IntOrString: invalid type: string is not a "
            "percentage"));
  return scaled_value(bound, total, true);
}

}  // namespace

bool needs_scale(const Value& budget) {
  const Value& spec = budget["spec"];
  return !spec["maxUnavailable"].is_null() || spec["minAvailable"].is_string();
}

Result<Demand> demand_of(const Value& budget, std::int64_t expected) {
  const Value& spec = budget["spec"];
  Demand demand{expected, 0};
  if (!spec["maxUnavailable"].is_null()) {
    DIBS_TRY(const std::int64_t may_miss, scaled(spec["maxUnavailable"], expected));
    demand.healthy = std::max<std::int64_t>(0, expected - may_miss);
  } else if (!spec["minAvailable"].is_null()) {
    DIBS_TRY(demand.healthy, scaled(spec["minAvailable"], expected));
  } else {
    demand.expected = 0;  // a budget that says nothing allows nothing
  }
  return demand;
}

Disrupted still_disrupted(const Value& budget, const std::vector<Value>& pods, Time now) {
  Disrupted out;
  const Value& noted = budget["status"]["disruptedPods"];
  if (noted.empty()) return out;
  for (const Value& pod : pods) {
    const Value& since = noted[name_of(pod)];
    if (since.is_null() || is_deleting(pod)) continue;
    const Time end = time_at(since) + kDisruptionTimeout;
    if (end < now) {
      out.stayed.push_back(pod);
      continue;
    }
    // A moment later, when it is surely over.
    const Duration wait = end - now + std::chrono::milliseconds(1);
    if (!out.recheck || wait < *out.recheck) out.recheck = wait;
    out.pods.set(name_of(pod), since);
  }
  return out;
}

std::int64_t count_healthy(const std::vector<Value>& pods, const Value& disrupted) {
  return std::count_if(pods.begin(), pods.end(), [&](const Value& pod) {
    return !is_deleting(pod) && disrupted[name_of(pod)].is_null() && pod_ready(pod);
  });
}

Value budget_status(const Value& budget, const Demand& demand, std::int64_t healthy,
                    const Value& disrupted, Time now) {
  const std::int64_t generation = budget["metadata"]["generation"].as_int();
  // A budget without pods allows nothing: its first ones are safe before they are counted.
  const std::int64_t allowed =
      demand.expected <= 0 ? 0 : std::max<std::int64_t>(0, healthy - demand.healthy);
  Value status = Value::object();
  if (generation != 0) status.set("observedGeneration", generation);
  if (!disrupted.empty()) status.set("disruptedPods", disrupted);
  status.set("disruptionsAllowed", allowed);
  status.set("currentHealthy", healthy);
  status.set("desiredHealthy", demand.healthy);
  status.set("expectedPods", demand.expected);
  status.set(
      "conditions",
      with_condition(budget["status"]["conditions"],
                     allowed > 0 ? allowed_condition("True", "SufficientPods", "", generation)
                                 : allowed_condition("False", "InsufficientPods", "", generation),
                     now));
  return status;
}

Value failed_budget_status(const Value& budget, const std::string& why, Time now) {
  Value status = budget["status"];
  status.set("disruptionsAllowed", 0);
  status.set("conditions", with_condition(status["conditions"],
                                          allowed_condition("False", "SyncFailed", why,
                                                            status["observedGeneration"].as_int()),
                                          now));
  return status;
}

std::optional<Duration> until_disruption_is_stale(const Value& pod, Time now) {
  if (is_deleting(pod) || is_pod_terminal(pod)) return std::nullopt;
  const Value& condition = condition_in(pod["status"]["conditions"], "DisruptionTarget");
  // A node that ends a pod may take its time.
  if (condition["status"].as_string() != "True" ||
      condition["reason"].as_string() == "TerminationByKubelet")
    return std::nullopt;
  const Duration wait = time_at(condition["lastTransitionTime"]) + kDisruptionTimeout - now;
  return std::max(wait, Duration(0));
}

std::string selector_words(const Value& selector) {
  if (selector.is_null()) return "nil";
  const Value labels = sorted_members(selector["matchLabels"]);
  std::string out = "&LabelSelector{MatchLabels:map[string]string{";
  for (const auto& [key, value] : labels.members()) append(out, key, ": ", value.as_string(), ",");
  out += "},MatchExpressions:[]LabelSelectorRequirement{";
  for (const Value& expression : selector["matchExpressions"].items()) {
    std::string values;
    for (const Value& value : expression["values"].items())
      append(values, values.empty() ? "" : " ", value.as_string());
    append(out, "LabelSelectorRequirement{Key:", expression["key"].as_string(),
           ",Operator:", expression["operator"].as_string(), ",Values:[", values, "],},");
  }
  return out + "},}";
}

}  // namespace dibs::controllers
