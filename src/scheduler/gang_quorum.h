#pragma once
// Who has to be placed for a tree of groups to be placed, and where its parts may be. Of the search
// (gang_search.h) alone, which counts its pods here.

#include <string>
#include <vector>

#include "scheduler/gang.h"

namespace dibs::scheduler {

class GangQuorum {
 public:
  explicit GangQuorum(const GangOrder& order);

  std::size_t size() const { return groups_.size(); }
  std::size_t parent(std::size_t group) const { return groups_[group].parent; }
  const std::vector<std::size_t>& children(std::size_t group) const {
    return groups_[group].children;
  }
  bool of_groups(std::size_t group) const { return groups_[group].of_groups; }
  /// Pods in the group and below it, and how many of them are placed.
  std::size_t pods_in(std::size_t group) const { return groups_[group].pods; }
  std::size_t placed_in(std::size_t group) const { return groups_[group].placed; }

  /// A pod of the group goes to the node, or leaves it. Pods leave in the opposite order.
  void add(std::size_t group, const NodeInfo& node);
  void remove(std::size_t group);

  // --- how many ---

  /// Has what it needs, without a look at the groups above it.
  bool holds(std::size_t group) const;
  /// Groups below it that hold.
  std::size_t holding(std::size_t group) const;
  /// What is placed can stay as it is.
  bool enough() const;
  /// Before a search: nothing is decided about any pod.
  void leave_all_open();
  /// A pod of the group that is not placed will be, or will not be; and the way back.
  void decide(std::size_t group) { --groups_[group].open; }
  void leave_open(std::size_t group) { ++groups_[group].open; }
  /// Whether enough() can become true by the pods that are open.
  bool possible() const;
  /// Whether pods of the group can become part of that.
  bool can_hold(std::size_t group) const;
  /// The smallest number of certain pods that has to be placed, however the rest is; `counts`: how
  /// many of them each group has. kNone: no number is enough.
  std::size_t least(const std::vector<std::size_t>& counts) const;

  // --- where ---

  /// As far as the constraints of the group and those above it say. `alone`: as far as the root
  /// says, which is the same for all pods.
  bool allows(std::size_t group, const NodeInfo& node, bool alone) const;
  /// The group has a constraint, and nobody has chosen yet.
  bool is_open(std::size_t group) const;
  const std::string& key(std::size_t group) const { return groups_[group].key; }
  /// The value that the constraint of the group asks for now, by whoever chose; null: none.
  const std::string* value(std::size_t group) const {
    return groups_[group].has_value ? &groups_[group].value : nullptr;
  }
  void pin(std::size_t group, const std::string& value);
  void unpin(std::size_t group);

 private:
  struct Group {
    std::size_t parent = GangOrder::kNone;
    bool of_groups = false;
    std::size_t needed = 0;
    std::string key = {};
    std::string value = {};  // by a pin or by the first pod that was placed
    bool has_value = false;
    bool pinned = false;
    bool fixed = false;  // by pods that were there before
    std::size_t pods = 0;
    std::size_t placed = 0;
    std::size_t own = 0;   // pods, those of groups below left out
    std::size_t open = 0;  // of its own
    std::vector<std::size_t> children = {};
  };

  /// Of each group whether it holds, where `more` of its own pods come beside those placed.
  template <typename More>
  std::vector<char> holding_with(const More& more) const;

  std::vector<Group> groups_;
};

}  // namespace dibs::scheduler
