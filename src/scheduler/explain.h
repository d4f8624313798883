#pragma once
// Why a pod finds no node, or which nodes could take it, node by node and as data.
//
// An attempt (attempt.h) stops at the first thing that speaks against a node; an explanation asks
// every filter and the devices about every node, so that whoever mends one thing does not find the
// next behind it. Nodes that say the same form a group. What would help is taken from the groups
// that lack the least.
//
// Nothing here changes the state or writes anything. Owner: that of the state.

#include <optional>
#include <string>
#include <vector>

#include "alloc/failure.h"
#include "scheduler/cluster_state.h"
#include "scheduler/devices.h"
#include "scheduler/filters.h"
#include "scheduler/profiles.h"

namespace dibs::scheduler {

/// One thing that speaks against a node.
struct Obstacle {
  Plugin plugin = Plugin::node_name;
  std::string reason;       // in the words of Kubernetes
  std::string subject;      // what it is about: a taint, a label, a port, a resource, a claim
  std::string detail = {};  // of a claim: what is the matter with it
  /// Of a resource: asked for, and the most that a node of the group has left and has at all.
  std::int64_t wanted = 0;
  std::int64_t left = 0;
  std::int64_t there = 0;
};

/// Nodes that say the same.
struct NodeGroup {
  std::vector<std::string> nodes;  // by name
  std::vector<Obstacle> obstacles;
  /// Of the first node, when devices are missing there.
  std::optional<alloc::NodeFailure> devices;
  int extended = -1;   // which demand of the run that is about
  bool named = false;  // it is that for named resources
};

/// Changes after which some nodes could take the pod; one of them alone would not do.
struct Fix {
  std::vector<std::string> changes;
  std::vector<std::string> nodes;
  int cost = 0;
  /// Of fixes that differ in an amount only, the cheapest is kept. Empty: there are none.
  std::string family = {};

  std::string text() const;
};

/// A node that could take the pod, as things are.
struct AbleNode {
  std::string name;
  std::int64_t score = 0;
  NodeDevices devices;
};

struct Explanation {
  std::size_t nodes = 0;  // in the cluster
  std::size_t nodes_looked_at = 0;
  DeviceRun run;                  // of the pod's claims: what they are and what they ask for
  std::vector<AbleNode> able;     // best first
  std::vector<NodeGroup> groups;  // the largest first
  std::vector<Fix> fixes;         // cheapest first
  /// Classes that some request names and no device in the cluster is of.
  std::vector<std::string> empty_classes;
  /// Of the claims that drivers are asked about, in the order of run.asked.
  std::vector<std::string> drivers;
  /// What the pod's volumes wait for, whatever the node. Empty: nothing.
  std::string volumes;
  /// False: the profile leaves DynamicResources out, and the pod has claims.
  bool devices_enabled = true;

  /// Requests made of extended resources are named after these.
  std::string in_plain_words(const NodeGroup& group, std::string text) const;
  /// The demand that the devices of a group are about.
  const alloc::Demand& demand(const NodeGroup& group) const;
  /// The same for every node: a claim or a class is missing. Empty: nothing of the kind.
  const std::string& obstacle() const { return volumes.empty() ? run.reason : volumes; }
};

struct ExplainScope {
  /// A large cluster is not looked at as a whole by someone who decides every pod.
  std::size_t most_nodes = static_cast<std::size_t>(-1);
  /// Searching for fixes takes several searches per group.
  std::size_t most_groups = 64;
  /// Of the claims that have devices only those of the pod's own namespace are named: for what is
  /// read there, by people who may not see others.
  bool names_own_only = false;
};

Explanation explain_placement(ClusterState& state, Devices& devices, const PodPtr& pod,
                              const Profile& profile, Time now, const ExplainScope& scope = {});

/// Lines of a group, without the names of its nodes.
std::vector<std::string> describe(const NodeGroup& group, const Explanation& explanation);
/// All in one text, for an event.
std::string summary(const Explanation& explanation);

json::Value to_json(const Explanation& explanation);

/// "3 nodes: a, b and c", at most a few by name.
std::string name_nodes(const std::vector<std::string>& nodes);
/// "1500m", "2Gi": an amount of a resource as people write it.
std::string show_amount(std::string_view resource, std::int64_t amount);

}  // namespace dibs::scheduler
