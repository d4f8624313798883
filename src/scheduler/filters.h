#pragma once
// Which nodes a pod may go to, as far as devices have no say: the filters of Kubernetes, in its
// order, each with its words.
//
// A FilterRun holds what can be computed once for a pod (places that affinity allows, counts of the
// spread constraints) and then judges nodes one at a time. It is valid until the state changes.

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "scheduler/cluster_state.h"
#include "scheduler/profiles.h"

namespace dibs::scheduler {

/// The parts of the scheduler that can refuse a pod; bits of a PluginSet.
enum class Plugin : std::uint8_t {
  node_unschedulable,
  node_name,
  taint_toleration,
  node_affinity,
  node_ports,
  resources_fit,
  topology_spread,
  inter_pod_affinity,
  dynamic_resources,
};
using PluginSet = std::uint32_t;
constexpr PluginSet bit(Plugin plugin) { return 1U << static_cast<unsigned>(plugin); }
/// The name in KubeSchedulerConfiguration and in messages.
const char* plugin_name(Plugin plugin);

/// Why a node cannot take a pod.
struct Refused {
  Plugin plugin = Plugin::node_name;
  /// Taking pods away from the node could help.
  bool resolvable = false;
  std::vector<std::string> reasons;
};

inline constexpr const char* kNoVictims = "No preemption victims found for incoming pod";
inline constexpr const char* kNotHelpful = "Preemption is not helpful for scheduling";

/// Whether the required node affinity and the node selector hold.
bool matches_node(const Pod& pod, const NodeInfo& node);

class FilterRun {
 public:
  /// Whether a class of devices serves the extended resource.
  using ServedByDevices = std::function<bool(std::string_view resource)>;

  FilterRun(ClusterState& state, const Pod& pod, const Profile& profile,
            ServedByDevices served_by_devices);

  /// Null when the node is fine. The result is valid until the next call.
  const Refused* check(const NodeInfo& node);

  /// Pods matching a constraint by domain, and what the smallest domain has; for scores too.
  struct SpreadCounts {
    const SpreadConstraint* constraint = nullptr;
    std::unordered_map<std::string, std::int64_t> domains;
    std::int64_t smallest = 0;
    bool self = false;
  };

 private:
  bool refuse(Plugin plugin, bool resolvable, std::string reason);
  bool fits(const NodeInfo& node);
  bool spreads(const NodeInfo& node);
  bool agrees_with_pods(const NodeInfo& node);
  void count_spread();
  void find_forbidden();

  ClusterState& state_;
  const Pod& pod_;
  PluginSet enabled_ = 0;
  ServedByDevices served_by_devices_;
  Refused refused_;
  std::vector<SpreadCounts> spread_;
  /// Places where assigned pods do not want this one: label key and values.
  std::unordered_map<std::string, std::unordered_set<std::string>> forbidden_;
  bool first_of_its_kind_ = false;
};

}  // namespace dibs::scheduler
