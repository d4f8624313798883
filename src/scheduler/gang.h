#pragma once
// One attempt to place the pods of a group, or of a tree of groups, together, without writing
// anything.
//
// The pods are one problem: which node each goes to, and which devices its claims get. First each
// takes the best node that is left, as single pods do, group by group; a group that has too few
// then gives back what it took. Where that places too few, the search goes back on choices of nodes
// and, on each node, on the devices of all the pods there, until a placement is found or none is
// left. Pods that ask for the same are not told apart, and what can be known beforehand is: a pod
// that no node takes even when it is alone, a kind of pods for which the cluster has too few
// places. Work is counted, and beyond a number of tries the search says that it does not know.
//
// The state and the devices are as before when it returns.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/cluster_state.h"
#include "scheduler/devices.h"
#include "scheduler/profiles.h"
#include "scheduler/reasons.h"

namespace dibs::scheduler {

struct GangMember {
  PodPtr pod;
  std::size_t group = 0;  // its place in GangOrder::groups
  DeviceRun run;
  NodeInfo* node = nullptr;  // null: not placed
  /// Of pods whose devices are not searched for together with those of others.
  NodeDevices devices;
  VolumePlan volumes = {};  // with those of the others in mind
  /// Why not, where `node` is null.
  Failure failure;
  std::vector<std::size_t> unavailable;  // as Decision::unavailable

  /// The pod as a node counts it: with what its claims take of the node.
  PodPtr counted() const;
};

/// What became of a group.
struct GangGroup {
  bool holds = false;       // it has what it needs, and so has every group above it
  std::size_t most = 0;     // pods, or groups, that were placed in it at once
  std::size_t domains = 0;  // places that its topology constraint knows; 0: it has none
};

struct GangDecision {
  std::vector<GangMember> members;
  std::vector<GangGroup> groups;  // as in the order
  std::size_t placed = 0;
  bool enough = false;   // what is placed can be bound
  bool waits = false;    // a claim is missing, or being allocated for another pod
  bool limited = false;  // not everything was tried
  std::string error;     // nothing is tried until it is put right
  /// Devices for the claims of all of them, by key.
  std::map<std::string, json::Value> allocations;

  bool success() const { return error.empty() && !waits && enough; }
};

/// A tree of groups. A group has enough when `needed` of its pods, or of the groups below it, are
/// placed; no pod is placed of a group that has not, or that is below one that has not. At least
/// one pod is placed.
struct GangOrder {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Group {
    std::size_t parent = kNone;  // an earlier one; none: it is the first, the root
    bool of_groups = false;
    std::size_t needed = 1;           // more than there are already
    std::string topology_key = {};    // all pods in it on nodes with one value of this; "": none
    std::string topology_value = {};  // it has pods there already; "" where it has none
    std::vector<PodPtr> pods = {};
  };
  std::vector<Group> groups;

  std::vector<PodPtr> pods() const;
};

class GangPlacer {
 public:
  struct Limits {
    /// Pods put to nodes, as a measure of time; nodes that were only looked at count a little.
    std::uint64_t tries = 10'000;
    /// Choices that stand on each other. Whoever comes after that many takes what is left.
    std::size_t depth = 1'000;
  };

  GangPlacer(ClusterState& state, Devices& devices) : GangPlacer(state, devices, Limits()) {}
  GangPlacer(ClusterState& state, Devices& devices, Limits limits)
      : state_(state), devices_(devices), limits_(limits) {}

  GangDecision place(const GangOrder& order, const Profile& profile, Time now);

 private:
  struct Search;

  /// `counting`: what pods with claims for resources of their node ask for; what is found out about
  /// that is added, and then the decision is of no use.
  GangDecision try_once(const GangOrder& order, const Profile& profile, Time now,
                        std::set<std::string>& counting);

  ClusterState& state_;
  Devices& devices_;
  const Limits limits_;
  std::size_t start_ = 0;
};

}  // namespace dibs::scheduler
