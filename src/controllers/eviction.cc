#include "controllers/eviction.h"

namespace dibs::controllers {
namespace {

/// The pod with its condition DisruptionTarget set.
Value disrupted(Value pod, const Eviction& eviction, Time now) {
  Value condition = Value::object({{"type", "DisruptionTarget"},
                                   {"status", "True"},
                                   {"lastTransitionTime", format_rfc3339(now)},
                                   {"reason", eviction.reason},
                                   {"message", eviction.message}});
  if (!pod["metadata"]["generation"].is_null()) {
    condition.set("observedGeneration", pod["metadata"]["generation"]);
  }
  Value& conditions = pod.mut("status").mut("conditions");
  std::size_t index = 0;
  while (index < conditions.size() && !(conditions[index]["type"] == condition["type"])) ++index;
  if (index < conditions.size()) {
    conditions.mut(index) = condition;
  } else {
    conditions.push(condition);
  }
  if (eviction.fail && !is_pod_terminal(pod)) pod.mut("status").set("phase", "Failed");
  return pod;
}

}  // namespace

Result<bool> evict(Environment& environment, const Value& pod, const Eviction& eviction) {
  auto live = environment.client.get(kPods, namespace_of(pod), name_of(pod));
  if (!live) {
    if (is_gone(live.error())) return false;
    return live.error();
  }
  if (uid_of(*live) != uid_of(pod)) return false;
  if (is_deleting(*live) && eviction.grace_period_seconds != 0) return false;
  auto marked = environment.client.update_status(
      kPods, namespace_of(pod), disrupted(*live, eviction, environment.runtime.clock.now()));
  if (!marked) {
    if (is_gone(marked.error())) return false;
    return marked.error();
  }
  if (!eviction.component.empty()) {
    environment.events.event(eviction.component, *live, false, eviction.event_reason,
                             eviction.event_note);
  }
  client::DeleteOptions options;
  options.uid = uid_of(pod);
  options.grace_period_seconds = eviction.grace_period_seconds;
  auto removed = environment.client.remove(kPods, namespace_of(pod), name_of(pod), options);
  if (!removed) {
    if (is_gone(removed.error())) return false;
    return removed.error();
  }
  return true;
}

bool tolerates_taint(const Value& toleration, const Value& taint) {
  const auto effect = toleration["effect"].as_string();
  if (!effect.empty() && effect != taint["effect"].as_string()) return false;
  const auto key = toleration["key"].as_string();
  if (!key.empty() && key != taint["key"].as_string()) return false;
  const auto op = toleration["operator"].as_string();
  if (op == "Exists") return true;
  return (op.empty() || op == "Equal") &&
         toleration["value"].as_string() == taint["value"].as_string();
}

}  // namespace dibs::controllers
