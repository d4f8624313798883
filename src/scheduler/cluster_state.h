#pragma once
// Nodes and the pods on them, kept up to date by each change alone.
//
// A pod counts on its node from the moment it is assumed there (before the API knows) until it is
// removed or has finished. Per node the requested amounts and ports are sums that grow and shrink;
// for pod affinity, per distinct term the pods that it selects, and those that carry it, are
// counted by value of the topology label. So a pod with affinity costs as much as there are
// distinct terms, not as much as there are pods.
//
// One owner: the scheduler's serial executor.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "alloc/node.h"
#include "scheduler/node_row.h"
#include "scheduler/owners.h"
#include "scheduler/pod.h"
#include "scheduler/volumes.h"

namespace dibs::scheduler {

struct NodeInfo {
  std::string name;
  bool exists = false;  // false: pods name it, but there is no such Node
  json::Value object;
  alloc::Node place;
  bool unschedulable = false;
  std::vector<Taint> taints;
  Resources allocatable;
  Resources requested;
  ScoreRequests scored;
  std::vector<HostPort> ports;
  std::vector<PodPtr> pods;  // sorted by key
  /// Grows with every change that a filter could notice.
  std::uint64_t version = 0;
  std::size_t index = 0;  // among nodes()

  /// The value of a label, or nullptr.
  const json::Value* label(std::string_view key) const { return place.labels.find(key); }
};

/// An image as nodes report it, by one of its names.
struct NodeImage {
  std::int64_t size = 0;
  std::unordered_set<const NodeInfo*> nodes;  // that have it; never empty
};

/// How a node changed, as far as waiting pods may care.
struct NodeChange {
  bool added = false;
  bool labels = false;
  bool taints = false;  // or cordoned or opened
  bool allocatable = false;
  bool features = false;
  bool any() const { return added || labels || taints || allocatable || features; }
};

/// Pods counted by the value of a node label.
using Tally = std::unordered_map<std::string, std::int64_t>;

/// What kind of term an assigned pod carries.
enum class TermKind : std::uint8_t { required_affinity, required_anti_affinity, preferred };

/// An equal term of any number of assigned pods.
struct CarriedTerm {
  PodTerm term;
  TermKind kind = TermKind::preferred;
  Tally carriers;
};

class ClusterState {
 public:
  ClusterState();

  NodeChange put_node(const json::Value& object);
  void remove_node(std::string_view name);
  /// Null when there is none.
  NodeInfo* find(std::string_view name);
  /// Those that exist, in no particular order.
  const std::vector<NodeInfo*>& nodes() const { return nodes_; }
  /// The same nodes in the same order, as far as most pods need to know them.
  const std::vector<NodeRow>& rows() const { return rows_; }

  bool knows_images() const { return !images_.empty(); }
  /// By a name with its tag or digest; null when no node has it.
  const NodeImage* image(const std::string& name) const;

  void put_namespace(const json::Value& object);
  void remove_namespace(std::string_view name);
  const json::Value& namespace_labels(std::string_view name) const;

  /// Counts the pod on the node; replaces what is known under its key.
  void add_pod(const PodPtr& pod, std::string_view node);
  /// False when the pod is not counted anywhere.
  bool remove_pod(std::string_view key);
  /// The node that a pod is counted on, or null.
  NodeInfo* node_of(std::string_view key) const;
  /// The pod that is counted under the key, or null.
  PodPtr counted(std::string_view key) const;
  std::size_t pod_count() const { return where_.size(); }

  Volumes& volumes() { return volumes_; }
  Owners& owners() { return owners_; }
  /// Assigned pods that have the claim ("namespace/name") as a volume.
  std::size_t volume_users(const std::string& claim) const;

  /// Room that is kept for pods that wait for their victims to go.
  void nominate(const PodPtr& pod, std::string_view node);
  void drop_nomination(std::string_view key);
  const std::vector<PodPtr>& nominated(std::string_view node) const;
  std::string nominated_node(std::string_view key) const;

  /// Whether a term's namespaces and selector hold for a pod.
  bool selects(const PodTerm& term, const Pod& pod) const;
  /// Assigned pods that the term selects, by topology value. Valid until the next change.
  const Tally& selected_by(const PodTerm& term);
  const std::map<std::string, CarriedTerm>& carried_terms() const { return carried_; }
  /// Assigned pods of a namespace that a selector holds for, by node. Valid until the next change.
  const std::unordered_map<const NodeInfo*, std::int64_t>& selected_by_node(
      std::string_view name_space, const api::LabelSelector& selector);

 private:
  struct Selected {
    PodTerm term;
    Tally tally;
  };
  struct Counted {
    PodPtr pod;
    NodeInfo* node = nullptr;
  };
  struct SelectedByNode {
    std::string name_space;
    api::LabelSelector selector;
    std::unordered_map<const NodeInfo*, std::int64_t> counts;
  };

  NodeInfo& node(std::string_view name);
  void replace(std::unordered_map<std::string_view, Counted>::iterator found, const PodPtr& pod);
  void forget_if_empty(NodeInfo& node);
  void refresh_row(const NodeInfo& node);
  /// Of status.images.
  void replace_images(const NodeInfo& node, const json::Value& before, const json::Value& after);
  void count(const Pod& pod, NodeInfo& node, int sign);
  void count_volumes(const Pod& pod, int sign);
  void count_terms(const Pod& pod, const NodeInfo& node, int sign);
  void carry(const Pod& pod, const NodeInfo& node, int sign);
  void rebuild_tallies();

  std::unordered_map<std::string, std::unique_ptr<NodeInfo>> by_name_;
  std::vector<NodeInfo*> nodes_;
  std::vector<NodeRow> rows_;
  std::unordered_map<std::string, NodeImage> images_;    // by name
  std::unordered_map<std::string_view, Counted> where_;  // by the pod's own key
  Volumes volumes_;
  Owners owners_;
  std::unordered_map<std::string, std::size_t> volume_users_;       // by claim
  std::unordered_map<std::string, json::Value> namespaces_;         // labels
  std::unordered_map<std::string, std::vector<PodPtr>> nominated_;  // by node
  std::unordered_map<std::string, std::string> nominations_;        // node by pod
  std::map<std::string, CarriedTerm> carried_;
  std::unordered_map<std::string, Selected> selected_;
  std::unordered_map<std::string, SelectedByNode> selected_by_node_;
};

}  // namespace dibs::scheduler
