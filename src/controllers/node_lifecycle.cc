// Watches over nodes: one that has gone silent becomes unknown, and its conditions become taints,
// by which the scheduler avoids it and taint_eviction.cc empties it.
//
// A node is alive while its Lease or its status changes. Times are those of this process's clock
// from the moment it saw the change, so clocks of nodes need not agree with it.
#include <algorithm>

#include "base/mutex.h"
#include "base/strings.h"
#include "controllers/controllers.h"

namespace dibs::controllers {
namespace {

const Gvr kLeases = {"coordination.k8s.io", "v1", "leases"};
constexpr const char* kLeaseNamespace = "kube-node-lease";
constexpr const char* kComponent = "node-controller";
constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";
constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";
/// How long a node may keep copies of secrets and configMaps. Nodes here watch them, so it is
/// always what a small cluster says.
constexpr const char* kTtl = "node.alpha.kubernetes.io/ttl";

struct ConditionTaint {
  std::string_view condition;
  std::string_view status;
  std::string_view key;
};
constexpr ConditionTaint kTaints[] = {
    {"Ready", "False", kNotReady},
    {"Ready", "Unknown", kUnreachable},
    {"MemoryPressure", "True", "node.kubernetes.io/memory-pressure"},
    {"DiskPressure", "True", "node.kubernetes.io/disk-pressure"},
    {"NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"},
    {"PIDPressure", "True", "node.kubernetes.io/pid-pressure"},
};

bool is_ours(const Value& taint) {
  const auto key = taint["key"].as_string();
  const auto effect = taint["effect"].as_string();
  if (effect == "NoExecute") return key == kNotReady || key == kUnreachable;
  if (effect != "NoSchedule") return false;
  return key == kUnschedulable || std::any_of(std::begin(kTaints), std::end(kTaints),
                                              [&](const auto& known) { return known.key == key; });
}

class NodeLifecycle : public Controller {
 public:
  explicit NodeLifecycle(Environment& environment)
      : environment_(environment),
        nodes_(environment.informers.of(kNodes)),
        leases_(environment.informers.of(kLeases)),
        pods_(environment.informers.of(kPods, kByNode, index_by_node)),
        loop_(environment, "node-lifecycle",
              [this](const std::string& key) { return reconcile(key); }) {
    loop_.follow(nodes_);
    loop_.follow(leases_, [this](const Value& lease) {
      if (namespace_of(lease) == kLeaseNamespace) loop_.add(std::string(name_of(lease)));
    });
  }

  void stop() override { loop_.stop(); }

 private:
  struct Sign {
    std::string lease;
    std::string heartbeat;
    Duration at{0};
  };

  Result<WorkOutcome> reconcile(const std::string& name) {
    const auto found = nodes_.get(name);
    if (!found) {
      const MutexLock lock(mutex_);
      signs_.erase(name);
      return done();
    }
    Value node = *found;
    greet(node);
    const Duration left = environment_.options.node_monitor_grace_period - silence(name, node);
    if (left.count() <= 0) DIBS_CHECK(declare_unknown(node));
    DIBS_CHECK(taint(node));
    DIBS_CHECK(mark_pods(node));
    return left.count() > 0 ? WorkOutcome::again_after(left) : WorkOutcome::done();
  }

  /// Once for every node that this controller gets to know.
  void greet(const Value& node) {
    const std::string name(name_of(node));
    {
      const MutexLock lock(mutex_);
      if (signs_.count(name) != 0) return;
    }
    environment_.events.event(
        kComponent, node, false, "RegisteredNode",
        cat("Node ", name, " event: Registered Node ", name, " in Controller"));
  }

  /// How long nothing has been heard.
  Duration silence(const std::string& name, const Value& node) {
    const auto lease = leases_.get(client::key_of(kLeaseNamespace, name));
    const std::string renewed = lease ? (*lease)["spec"]["renewTime"].str() : std::string();
    const std::string heartbeat = find_condition(node, "Ready")["lastHeartbeatTime"].str();
    const Duration now = environment_.runtime.clock.steady();
    const MutexLock lock(mutex_);
    const auto [at, fresh] = signs_.try_emplace(name);
    Sign& sign = at->second;
    if (fresh || sign.lease != renewed || sign.heartbeat != heartbeat) {
      sign = {renewed, heartbeat, now};
    }
    return now - sign.at;
  }

  Result<> declare_unknown(Value& node) {
    const std::string now = format_rfc3339(environment_.runtime.clock.now());
    Value next = node;
    Value& conditions = next.mut("status").mut("conditions");
    const bool was_ready = find_condition(node, "Ready")["status"].as_string() == "True";
    bool changed = false;
    for (const char* type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}) {
      std::size_t index = 0;
      while (index < conditions.size() && conditions[index]["type"].as_string() != type) ++index;
      if (index == conditions.size()) {
        conditions.push(Value::object({{"type", type},
                                       {"status", "Unknown"},
                                       {"lastHeartbeatTime", node["metadata"]["creationTimestamp"]},
                                       {"lastTransitionTime", now},
                                       {"reason", "NodeStatusNeverUpdated"},
                                       {"message", "Kubelet never posted node status."}}));
        changed = true;
      } else if (conditions[index]["status"].as_string() != "Unknown") {
        Value& condition = conditions.mut(index);
        condition.set("status", "Unknown");
        condition.set("reason", "NodeStatusUnknown");
        condition.set("message", "Kubelet stopped posting node status.");
        condition.set("lastTransitionTime", now);
        changed = true;
      }
    }
    if (!changed) return success();
    DIBS_TRY(node, environment_.client.update_status(kNodes, "", next));
    {
      // This write is no sign of life.
      const MutexLock lock(mutex_);
      signs_[std::string(name_of(node))].heartbeat =
          find_condition(node, "Ready")["lastHeartbeatTime"].str();
    }
    if (was_ready) {
      environment_.events.event(kComponent, node, false, "NodeNotReady",
                                cat("Node ", name_of(node), " status is now: NodeNotReady"));
    }
    return success();
  }

  Result<> taint(Value& node) {
    const Value& before = node["spec"]["taints"];
    std::vector<Value> wanted;
    const auto want = [&](std::string_view key, std::string_view effect) {
      for (const auto& taint : before.items()) {
        if (taint["key"].as_string() == key && taint["effect"].as_string() == effect) {
          wanted.push_back(taint);
          return;
        }
      }
      wanted.push_back(
          Value::object({{"key", key},
                         {"effect", effect},
                         {"timeAdded", format_rfc3339(environment_.runtime.clock.now())}}));
    };
    for (const auto& known : kTaints) {
      if (find_condition(node, known.condition)["status"].as_string() != known.status) continue;
      want(known.key, "NoSchedule");
      if (known.condition == "Ready") want(known.key, "NoExecute");
    }
    if (node["spec"]["unschedulable"].as_bool()) want(kUnschedulable, "NoSchedule");

    Value after = Value::array();
    for (const auto& taint : before.items()) {
      if (!is_ours(taint) || std::find(wanted.begin(), wanted.end(), taint) != wanted.end()) {
        after.push(taint);
      }
    }
    for (const auto& taint : wanted) {
      const auto items = before.items();
      if (std::find(items.begin(), items.end(), taint) == items.end()) after.push(taint);
    }
    const bool unmarked = !node["metadata"]["annotations"].contains(kTtl);
    const bool tainted = !(after == before || (after.empty() && before.empty()));
    if (!tainted && !unmarked) return success();
    Value patch = Value::object(
        {{"metadata", Value::object({{"resourceVersion", node["metadata"]["resourceVersion"]}})}});
    if (unmarked) patch.mut("metadata").set("annotations", Value::object({{kTtl, "0"}}));
    if (tainted) {
      patch.set("spec", Value::object({{"taints", after.empty() ? Value() : after}}));
    }
    auto written =
        environment_.client.patch(kNodes, "", name_of(node), client::PatchType::merge, patch);
    if (!written) {
      if (is_gone(written.error())) return success();
      return written.error();
    }
    node = std::move(written).value();
    return success();
  }

  /// Nobody else says that pods of a node that does not answer are not ready.
  Result<> mark_pods(const Value& node) {
    const auto ready = find_condition(node, "Ready")["status"].as_string();
    if (ready == "True" || ready.empty()) return success();
    for (const auto& pod : pods_.by_index(kByNode, std::string(name_of(node)))) {
      if (find_condition(pod, "Ready")["status"].as_string() != "True") continue;
      Value next = pod;
      Value& conditions = next.mut("status").mut("conditions");
      for (std::size_t i = 0; i < conditions.size(); ++i) {
        if (conditions[i]["type"].as_string() != "Ready") continue;
        conditions.mut(i).set("status", "False");
        conditions.mut(i).set("lastTransitionTime",
                              format_rfc3339(environment_.runtime.clock.now()));
      }
      auto written = environment_.client.update_status(kPods, namespace_of(pod), next);
      if (!written) {
        if (is_gone(written.error())) continue;
        return written.error();
      }
      environment_.events.event(kComponent, pod, true, "NodeNotReady", "Node is not ready");
    }
    return success();
  }

  Environment& environment_;
  client::Informer& nodes_;
  client::Informer& leases_;
  client::Informer& pods_;
  Mutex mutex_;
  std::map<std::string, Sign> signs_ DIBS_GUARDED_BY(mutex_);
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_node_lifecycle_controller(Environment& environment) {
  return std::make_unique<NodeLifecycle>(environment);
}

}  // namespace dibs::controllers
