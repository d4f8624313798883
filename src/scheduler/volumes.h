#pragma once
// The volumes of pods: which nodes reach them, and what is still to be bound or provisioned there.
//
// A VolumeRun holds what can be found out once for a pod: what its bound volumes ask of nodes, and
// for claims that wait for their first consumer the volumes that would do, best first. A node is
// then asked alone. On the node that was chosen, the claims that are not bound yet get a
// VolumePlan: volumes that are there, or the wish that one be provisioned for this node. A plan
// that is being written (volume_binding.h) counts for all other pods as if it were true.
//
// Pods without claims as volumes never come here. Owner: that of the state.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/value.h"
#include "scheduler/plugins.h"

namespace dibs::scheduler {

struct NodeInfo;
struct Pod;
enum class Cause : std::uint8_t;

inline constexpr PluginSet kVolumePlugins = bit(Plugin::volume_restrictions) |
                                            bit(Plugin::node_volume_limits) |
                                            bit(Plugin::volume_binding) | bit(Plugin::volume_zone);

/// A claim that waits for its first consumer.
struct OpenClaim {
  json::Value claim;
  std::vector<json::Value> volumes;  // that would do, best first
  std::string selected_node;         // where it is being provisioned; ""
};

struct VolumeRun {
  /// The same for every node: "persistentvolumeclaim \"x\" not found". Empty: nodes are to be
  /// asked.
  std::string reason;
  Plugin plugin = Plugin::volume_binding;  // who says so
  PluginSet enabled = 0;
  bool lost = false;                // a claim is bound to a volume that is not there
  std::vector<json::Value> bound;   // volumes
  std::vector<OpenClaim> open;      // the smallest first
  std::vector<std::string> single;  // keys of claims for one pod alone
  /// Labels that a node's zone and region must be among.
  std::vector<std::pair<std::string, std::set<std::string>>> zones;
  /// Volumes of CSI drivers: the driver by a name that is the volume's alone.
  std::map<std::string, std::string> attached;
};

struct VolumePlan {
  struct Binding {
    json::Value claim;
    json::Value volume;  // as it is to be written
  };
  std::vector<Binding> bindings;
  std::vector<json::Value> provisions;  // claims as they are to be written

  bool empty() const { return bindings.empty() && provisions.empty(); }
};

/// Sizes in bytes, whose sums may be larger than an integer: what a pod's claims of a storage class
/// ask for, and what there is for them.
struct VolumeUse {
  double wanted = 0;
  double there = 0;
};

class Volumes {
 public:
  // What informers say. An object that is older than the one known does not count.
  void put_claim(const json::Value& object) { put(claims_, object); }
  void remove_claim(const json::Value& object);
  void put_volume(const json::Value& object);
  void remove_volume(const json::Value& object);
  void put_class(const json::Value& object) { put(classes_, object); }
  void remove_class(const json::Value& object);
  /// CSINodes, CSIDrivers, CSIStorageCapacities, VolumeAttachments, by what `kind` says.
  void put_other(const json::Value& object);
  void remove_other(const json::Value& object);

  /// As the API has it; null when there is none.
  const json::Value& claim(std::string_view key) const { return find(claims_, key); }
  const json::Value& volume(std::string_view name) const { return find(volumes_, name); }

  /// `enabled`: the plugins that have a say.
  VolumeRun prepare(const Pod& pod, PluginSet enabled) const;
  /// What the node has against the pod, and which plugin says so; claims for one pod alone are the
  /// caller's to check.
  struct Against {
    Plugin plugin;
    Cause cause;
    bool resolvable;
  };
  std::optional<Against> check(const VolumeRun& run, const NodeInfo& node) const;
  /// What is to be written for the pod on the node; why that does not go, where it does not.
  std::optional<Cause> plan(const VolumeRun& run, const NodeInfo& node, VolumePlan& made) const;

  /// By storage class, what would be taken of the volumes that the pod gets on the node; where none
  /// is there already, of what the drivers can provision. Empty: nobody says.
  std::map<std::string, VolumeUse> use_on(const VolumeRun& run, const NodeInfo& node) const;

  /// The plan counts from now on, until release(). Plans of pods that share a claim count each.
  void reserve(const VolumePlan& plan);
  void release(const VolumePlan& plan);

  /// The volume, which is free, could help the pod.
  bool may_help(const json::Value& volume, const Pod& pod) const;

 private:
  using Objects = std::unordered_map<std::string, json::Value>;
  static void put(Objects& objects, const json::Value& object);
  static const json::Value& find(const Objects& objects, std::string_view key);
  Objects* others_of(const json::Value& object);

  /// With what is being written.
  const json::Value& claim_soon(const std::string& key) const;
  void add_open(const json::Value& claim, VolumeRun& run) const;
  void add_bound(const json::Value& claim, VolumeRun& run) const;
  void add_attached(const json::Value& claim, std::map<std::string, std::string>& to) const;
  bool exceeds_limits(const VolumeRun& run, const NodeInfo& node) const;
  std::optional<Cause> find_places(const VolumeRun& run, const NodeInfo& node,
                                   VolumePlan* plan) const;
  std::optional<Cause> against_provisioning(const json::Value& claim, const NodeInfo& node) const;
  bool tells_capacity(const json::Value& storage_class) const;
  /// Of the driver for the node, large enough for the claim; null where there is none.
  const json::Value& capacity_for(const json::Value& claim, const json::Value& storage_class,
                                  const NodeInfo& node) const;

  Objects claims_;   // by key
  Objects volumes_;  // by name, and so are the rest
  Objects classes_;
  Objects nodes_;       // CSINodes
  Objects drivers_;     // CSIDrivers
  Objects capacities_;  // by key
  Objects attachments_;
  std::map<std::string, std::set<std::string>> free_;      // volumes without a claimRef, by class
  std::map<std::string, std::set<std::string>> reserved_;  // volumes by the claim they name
  Objects claims_soon_;                                    // being written, by key
  Objects volumes_soon_;                                   // by name
  std::unordered_map<std::string, std::size_t> plans_;     // that have the claim or volume
};

}  // namespace dibs::scheduler
