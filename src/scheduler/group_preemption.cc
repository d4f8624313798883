#include "scheduler/group_preemption.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "scheduler/filters.h"

namespace dibs::scheduler {
namespace {

/// Pods that go or stay together.
struct Unit {
  std::vector<std::pair<PodPtr, std::string>> pods;  // with their nodes
  std::int64_t priority = 0;
  int rank = 0;       // a pod, one of a group, a group of groups
  std::string start;  // the earliest of them
  bool is_protected = false;
};

bool comes_first(const Unit& a, const Unit& b) {
  if (a.is_protected != b.is_protected) return a.is_protected;
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.rank != b.rank) return a.rank > b.rank;
  if (a.pods.size() != b.pods.size()) return a.pods.size() > b.pods.size();
  return a.start < b.start;
}

class Trial {
 public:
  Trial(ClusterState& state, Devices& devices, const Profile& profile)
      : state_(state), devices_(devices), profile_(profile) {}

  void find_units(const PodGroups& groups, std::int64_t priority) {
    std::map<GroupId, Unit> whole;
    for (const NodeInfo* node : state_.nodes()) {
      for (const PodPtr& pod : node->pods) {
        const std::int64_t own = groups.priority_of(*pod);
        if (own >= priority) continue;
        const bool grouped = !pod->group.empty() && !groups.empty();
        const std::optional<GroupId> as_one =
            grouped ? groups.whole_of(pod->group) : std::optional<GroupId>();
        if (!as_one) units_.emplace_back();
        Unit& unit = as_one ? whole[*as_one] : units_.back();
        unit.priority = own;
        unit.rank = as_one && as_one->composite ? 2 : grouped ? 1 : 0;
        unit.pods.emplace_back(pod, node->name);
        const std::string at = pod->object["status"]["startTime"].str();
        if (unit.start.empty() || at < unit.start) unit.start = at;
      }
    }
    for (auto& [key, unit] : whole) units_.push_back(std::move(unit));
  }

  void mark_protected(const std::map<std::string, DisruptionBudget>& budgets) {
    std::sort(units_.begin(), units_.end(), comes_first);
    for (const auto& [key, budget] : budgets) {
      std::int64_t left = budget.allowed;
      for (Unit& unit : units_) {
        for (const auto& [pod, node] : unit.pods) {
          if (budget.name_space != pod->name_space || !budget.selector.matches(pod->labels)) {
            continue;
          }
          if (--left < 0) unit.is_protected = true;
        }
      }
    }
    std::sort(units_.begin(), units_.end(), comes_first);
  }

  bool empty() const { return units_.empty(); }
  void take_all() {
    for (const Unit& unit : units_) take(unit);
  }
  void put_all() {
    for (const Unit& unit : units_) put(unit);
  }

  /// Those that cannot stay beside the group. Requires that all are taken.
  std::vector<PodPtr> victims_of(const GangDecision& decision) {
    for (const GangMember& member : decision.members) {
      if (member.node != nullptr) state_.add_pod(member.counted(), member.node->name);
    }
    std::vector<PodPtr> made;
    std::vector<const Unit*> gone;
    for (const Unit& unit : units_) {
      put(unit);
      if (holds(decision, unit)) continue;
      take(unit);
      gone.push_back(&unit);
      for (const auto& [pod, node] : unit.pods) made.push_back(pod);
    }
    for (const GangMember& member : decision.members) {
      if (member.node != nullptr) state_.remove_pod(member.pod->key);
    }
    for (const Unit* unit : gone) put(*unit);
    return made;
  }

 private:
  void take(const Unit& unit) {
    for (const auto& [pod, node] : unit.pods) state_.remove_pod(pod->key);
  }
  void put(const Unit& unit) {
    for (const auto& [pod, node] : unit.pods) state_.add_pod(pod, node);
  }

  /// The group's pods are still welcome where the unit has come back.
  bool holds(const GangDecision& decision, const Unit& unit) {
    const auto& carried = state_.carried_terms();
    const bool avoided = std::any_of(carried.begin(), carried.end(), [](const auto& one) {
      return one.second.kind == TermKind::required_anti_affinity;
    });
    for (const GangMember& member : decision.members) {
      if (member.node == nullptr) continue;
      const PodShape& shape = *member.pod->shape;
      const bool near = std::any_of(unit.pods.begin(), unit.pods.end(), [&](const auto& one) {
        return one.second == member.node->name;
      });
      const bool far = !shape.affinity.empty() || !shape.anti_affinity.empty() ||
                       !shape.spread.empty() || avoided;
      if (!near && !far) continue;
      state_.remove_pod(member.pod->key);
      const PodPtr counted = member.counted();
      FilterRun filters(state_, *counted, profile_,
                        [this](std::string_view name) { return devices_.serves(name); });
      const bool fits = filters.check(*member.node) == nullptr;
      state_.add_pod(counted, member.node->name);
      if (!fits) return false;
    }
    return true;
  }

  ClusterState& state_;
  Devices& devices_;
  const Profile& profile_;
  std::vector<Unit> units_;
};

}  // namespace

GroupPreemption find_group_victims(ClusterState& state, Devices& devices, GangPlacer& placer,
                                   const PodGroups& groups, std::int64_t priority,
                                   const GangOrder& order, const Profile& profile, Time now,
                                   const std::map<std::string, DisruptionBudget>& budgets) {
  GroupPreemption made;
  const auto say = [&](std::string_view text) {
    made.message = cat("pod group preemption: ", text);
  };
  const std::vector<PodPtr> pods = order.pods();
  for (const PodPtr& pod : pods) {
    if (!pod->may_preempt) {
      say("not eligible due to preemptionPolicy=Never.");
      return made;
    }
    // What was decided here last; the API may not know it yet.
    std::string name = state.nominated_node(pod->key);
    if (name.empty()) name = pod->nominated_node();
    const NodeInfo* nominated = state.find(name);
    if (nominated == nullptr) continue;
    for (const PodPtr& other : nominated->pods) {
      if (other->priority >= priority || !other->terminating) continue;
      say("ongoing preemption on nominated nodes");
      made.underway = true;
      return made;
    }
  }
  for (const PodPtr& pod : pods) state.drop_nomination(pod->key);
  Trial trial(state, devices, profile);
  trial.find_units(groups, priority);
  if (trial.empty()) {
    say("No preemption victims found for incoming preemptor");
    return made;
  }
  trial.mark_protected(budgets);
  trial.take_all();
  const GangDecision decision = placer.place(order, profile, now);
  if (!decision.success()) {
    trial.put_all();
    say("the group would not fit without pods of lower priority either");
    return made;
  }
  made.victims = trial.victims_of(decision);
  for (const GangMember& member : decision.members) {
    if (member.node != nullptr) made.nodes[member.pod->key] = member.node->name;
  }
  made.underway = !made.victims.empty();
  say(cat("found a placement for podgroup, preempting ", made.victims.size(), " victims"));
  return made;
}

}  // namespace dibs::scheduler
