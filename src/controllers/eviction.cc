#include "controllers/eviction.h"

namespace dibs::controllers {
namespace {

/// Sets the condition DisruptionTarget of the pod as it is known, and of no other.
Value disruption(const Value& pod, const Eviction& eviction, Time now) {
  Value condition = Value::object({{"type", "DisruptionTarget"},
                                   {"status", "True"},
                                   {"lastTransitionTime", format_rfc3339(now)},
                                   {"reason", eviction.reason},
                                   {"message", eviction.message}});
  if (!pod["metadata"]["generation"].is_null()) {
    condition.set("observedGeneration", pod["metadata"]["generation"]);
  }
  Value status = Value::object({{"conditions", Value::array({condition})}});
  if (eviction.fail && !is_pod_terminal(pod)) status.set("phase", "Failed");
  return Value::object(
      {{"metadata", Value::object({{"uid", pod["metadata"]["uid"]},
                                   {"resourceVersion", pod["metadata"]["resourceVersion"]}})},
       {"status", std::move(status)}});
}

}  // namespace

Result<bool> evict(Environment& environment, const Value& pod, const Eviction& eviction) {
  if (is_deleting(pod) && eviction.grace_period_seconds != 0) return false;
  // Who collects pods may neither read one nor write more of its status than a patch.
  client::WriteOptions status;
  status.subresource = "status";
  auto marked =
      environment.client.patch(kPods, namespace_of(pod), name_of(pod), client::PatchType::strategic,
                               disruption(pod, eviction, environment.runtime.clock.now()), status);
  if (!marked) {
    if (is_gone(marked.error())) return false;
    return marked.error();
  }
  if (!eviction.component.empty()) {
    environment.events.event(eviction.component, pod, false, eviction.event_reason,
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
