#pragma once
// Which nodes a pod may go to, as far as devices have no say: the filters of Kubernetes, in its
// order, each with its words.
//
// A FilterRun holds what can be computed once for a pod (places that affinity allows, counts of the
// spread constraints) and then judges nodes one at a time. It is valid until the state changes.
// Most nodes are judged by their row alone (node_row.h), and a refusal is a few numbers: words are
// made of it by whoever wants to read them.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "scheduler/cluster_state.h"
#include "scheduler/profiles.h"

namespace dibs::scheduler {

/// What a node can have against a pod.
enum class Cause : std::uint8_t {
  not_among_named,
  unschedulable,
  other_name,
  taints,
  added_affinity,
  affinity,
  ports,
  resources,  // which: see Refused
  volume_in_use,
  volume_limit,
  volume_elsewhere,
  no_volume,
  no_storage,
  volume_lost,
  volume_zone,
  volumes,  // the same for every node: see VolumeRun
  no_topology_label,
  spread,
  pod_affinity,
  pod_anti_affinity,
  existing_anti_affinity,
  features,
};
inline constexpr std::size_t kCauses = 22;
/// The words of a cause other than `resources`.
const char* words_of(Cause cause);

/// Why a node cannot take a pod.
struct Refused {
  Plugin plugin = Plugin::node_name;
  Cause cause = Cause::other_name;
  /// Taking pods away from the node could help.
  bool resolvable = false;
  /// What there is too little of, as bits: see kShort; and further ones by their place among the
  /// scalars of the pod's requests.
  std::uint8_t lacks = 0;
  std::vector<std::uint32_t> lacks_scalars;

  static constexpr std::uint8_t kPods = 1;
  static constexpr std::uint8_t kCpu = 2;
  static constexpr std::uint8_t kMemory = 4;
  static constexpr std::uint8_t kStorage = 8;
};
inline constexpr std::size_t kShort = 4;
/// The words for the bit of that number in Refused::lacks.
const char* words_of_lack(std::size_t number);
std::string words_of_scalar(const Pod& pod, std::uint32_t place);

/// All that a refusal says, in words.
std::vector<std::string> words_of(const Refused& refused, const Pod& pod);

inline constexpr const char* kNoVictims = "No preemption victims found for incoming pod";
inline constexpr const char* kNotHelpful = "Preemption is not helpful for scheduling";

/// Those of the pod's features that the node has not declared.
std::vector<std::string> missing_features(const Pod& pod, const NodeInfo& node);
/// Whether the required node affinity and the node selector hold.
bool matches_node(const Pod& pod, const NodeInfo& node);

class FilterRun {
 public:
  /// Whether a class of devices serves the extended resource.
  using ServedByDevices = std::function<bool(std::string_view resource)>;

  /// `only`: of the profile's filters, those that are asked. `profile` must outlive it.
  FilterRun(ClusterState& state, const Pod& pod, const Profile& profile,
            ServedByDevices served_by_devices, PluginSet only = ~PluginSet{0});

  /// Null when the node is fine. The result is valid until the next call. Requires a node that
  /// exists.
  const Refused* check(const NodeInfo& node) { return check_at(node.index); }
  /// The same by its place among the nodes.
  const Refused* check_at(std::size_t index);

  /// Null for a pod without claims as volumes.
  const VolumeRun* volumes() const { return volumes_ ? &*volumes_ : nullptr; }

  /// Pods matching a constraint by domain, and what the smallest domain has; for scores too.
  struct SpreadCounts {
    const SpreadConstraint* constraint = nullptr;
    std::unordered_map<std::string, std::int64_t> domains;
    std::int64_t smallest = 0;
    bool self = false;
  };

 private:
  const Refused* refuse(Plugin plugin, Cause cause, bool resolvable);
  bool fits(std::size_t index, const NodeRow& row);
  /// Where more than the row counts: what nominated pods want, and other resources.
  bool fits_closely(const NodeInfo& node);
  const Refused* against_volumes(const NodeInfo& node);
  const Refused* against_spread(const NodeInfo& node);
  const Refused* against_pods(const NodeInfo& node);
  void count_spread(const std::vector<SpreadConstraint>& constraints);
  void find_forbidden();

  ClusterState& state_;
  const Pod& pod_;
  const PodShape& shape_;
  const Profile& profile_;
  const FitArgs& fit_;
  PluginSet enabled_ = 0;
  ServedByDevices served_by_devices_;
  Refused refused_;
  bool tolerates_cordon_ = false;
  /// The pod names its nodes, and that counts.
  bool names_nodes_ = false;
  /// Of a pod that has claims as volumes.
  std::optional<VolumeRun> volumes_;
  /// The pod wants something of the node's name, labels or features, its ports, or the pods around
  /// it.
  bool is_particular_ = false;
  std::vector<SpreadConstraint> default_spread_;
  std::vector<SpreadCounts> spread_;
  /// Places where assigned pods do not want this one: label key and values.
  std::unordered_map<std::string, std::unordered_set<std::string>> forbidden_;
  bool first_of_its_kind_ = false;
};

}  // namespace dibs::scheduler
