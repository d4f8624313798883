#pragma once
// PodGroups and CompositePodGroups with their pods, as scheduling sees them.
//
// A pod of a group waits here, not in the queue: the tree that its group is part of is tried as a
// whole when enough of its pods are there. A group without a parent is a tree of its own. Groups
// come and go in any order, so a child is known by the name of its parent, whether that is there or
// not. Pods without a group have nothing to do with this.
//
// One owner: the scheduler's serial executor.

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/value.h"
#include "scheduler/pod.h"

namespace dibs::scheduler {

/// What groups of pods and groups of groups have in common.
struct AnyGroup {
  std::string key;     // namespace/name
  json::Value object;  // null: others name it, but there is none
  /// What the group waits for, or why its last attempt failed; for whoever asks.
  std::string problem;
  std::string told;  // a fault of its tree that was written since it changed last

  bool exists() const { return object.is_object(); }
  bool is_gang() const { return object["spec"]["schedulingPolicy"]["gang"].is_object(); }
  /// Pods, or groups, that have to be placed at once; 1 for groups that are no gangs.
  std::size_t min_count() const;
  std::int64_t priority() const { return object["spec"]["priority"].as_int(); }
  std::string_view uid() const { return object["metadata"]["uid"].as_string(); }
  /// The label whose value all nodes of its pods share; "" for none.
  std::string_view topology_key() const;
  /// What is in it is driven out together or not at all.
  bool goes_as_one() const;
  /// namespace/name of the CompositePodGroup that it is a child of; "" for none.
  std::string parent() const;
};

struct PodGroup : AnyGroup {
  std::map<std::string, PodPtr> waiting;  // pods without a node, by key
  std::set<std::string> able;             // of them, those that nothing but a node is missing to
  std::set<std::string> placed;           // pods on nodes, those decided about included, by key
};

struct CompositeGroup : AnyGroup {};

struct GroupId {
  std::string key;
  bool composite = false;

  friend auto operator<=>(const GroupId&, const GroupId&) = default;
};

/// Groups above and below each other, the root first, each after its parent.
struct GroupTree {
  struct Node {
    GroupId id;
    AnyGroup* group = nullptr;
    PodGroup* pods = nullptr;  // null: its children are groups
    std::size_t parent = 0;    // its own place: none
  };
  std::vector<Node> nodes;
  /// What makes it no tree that could be scheduled, in words; "" for nothing.
  std::string fault;

  bool empty() const { return nodes.empty(); }
  AnyGroup& root() const { return *nodes.front().group; }
};

class PodGroups {
 public:
  /// How many groups may stand above each other, that of the pods included.
  static constexpr std::size_t kDeepest = 4;
  /// How far up is looked for a root. Anybody may put thousands above each other, and each pod and
  /// group that comes looks.
  static constexpr std::size_t kFarthest = 64;

  /// Whether parents count. Where the server has no CompositePodGroups, they do not.
  void follow_parents(bool follow) { parents_ = follow; }

  /// Null when neither the group nor a pod of it is known.
  PodGroup* find(const std::string& key);
  const PodGroup* find(const std::string& key) const;
  /// Null where it does not exist.
  AnyGroup* any(const GroupId& id);
  PodGroup& at(const std::string& key);
  void put(const json::Value& object);
  void put_composite(const json::Value& object);
  /// The group stays while pods name it.
  void remove(const std::string& key);
  void remove_composite(const std::string& key);
  /// Pods of the group came or went: one without object and pods is forgotten.
  void forget_if_empty(const std::string& key);
  bool empty() const { return groups_.empty(); }

  /// The group that a pod shares this claim with; null where the claim is the pod's own.
  const PodGroup* sharing(const Pod& pod, const PodClaimRef& claim) const;

  // --- trees ---

  struct Root {
    std::optional<GroupId> id;
    std::string problem;         // why there is none
    bool invalid = false;        // and nothing that is still to come mends it
    std::vector<GroupId> chain;  // the group itself, and those above it that are there
  };
  Root root_of(const GroupId& group) const;
  /// The groups in and below one; empty where it is not there. They are this object's.
  GroupTree tree(const GroupId& root);
  /// PodGroups in and below one, those without an object left out.
  std::vector<const PodGroup*> leaves(const GroupId& group) const;

  /// The highest group above the pods of a group that is driven out as one, itself included.
  std::optional<GroupId> whole_of(const std::string& group) const;
  /// Of a pod, when others would drive it out: that of its tree.
  std::int64_t priority_of(const Pod& pod) const;

 private:
  const AnyGroup* any(const GroupId& id) const;
  void link(const GroupId& child, const std::string& from, const std::string& to);
  std::string parent_of(const AnyGroup& group) const { return parents_ ? group.parent() : ""; }
  void add_below(const GroupId& id, std::size_t parent, std::size_t depth, GroupTree& made);

  std::unordered_map<std::string, PodGroup> groups_;
  std::unordered_map<std::string, CompositeGroup> composites_;
  std::unordered_map<std::string, std::set<GroupId>> children_;  // by the key of their parent
  bool parents_ = false;
};

/// An entry of status.reservedFor for the group.
json::Value group_consumer(const PodGroup& group);

/// The name under which the condition of a group is known to a release.
const char* group_condition(bool composite, int release);

}  // namespace dibs::scheduler
