#include "scheduler/gang_quorum.h"

#include <algorithm>

namespace dibs::scheduler {

using json::Value;

GangQuorum::GangQuorum(const GangOrder& order) {
  for (const GangOrder::Group& one : order.groups) {
    Group made;
    made.parent = one.parent;
    made.of_groups = one.of_groups;
    made.needed = one.needed;
    made.key = one.topology_key;
    made.value = one.topology_value;
    made.has_value = made.fixed = !one.topology_value.empty();
    made.own = one.pods.size();
    const std::size_t place = groups_.size();
    groups_.push_back(std::move(made));
    if (one.parent != GangOrder::kNone) groups_[one.parent].children.push_back(place);
    for (std::size_t at = place; at != GangOrder::kNone; at = groups_[at].parent) {
      groups_[at].pods += one.pods.size();
    }
  }
}

void GangQuorum::add(std::size_t group, const NodeInfo& node) {
  for (std::size_t at = group; at != GangOrder::kNone; at = groups_[at].parent) {
    Group& one = groups_[at];
    if (one.placed++ > 0 || one.key.empty() || one.has_value) continue;
    const Value* label = node.label(one.key);
    one.value = label != nullptr ? label->str() : std::string();
    one.has_value = true;
  }
}

void GangQuorum::remove(std::size_t group) {
  for (std::size_t at = group; at != GangOrder::kNone; at = groups_[at].parent) {
    Group& one = groups_[at];
    if (--one.placed > 0 || one.pinned || one.fixed) continue;
    one.has_value = false;
  }
}

template <typename More>
std::vector<char> GangQuorum::holding_with(const More& more) const {
  std::vector<char> made(groups_.size());
  std::vector<std::size_t> below(groups_.size());
  // Children come after their parents.
  for (std::size_t at = groups_.size(); at-- > 0;) {
    const Group& one = groups_[at];
    const std::size_t have = one.of_groups ? below[at] : one.placed + more(one);
    made[at] = have >= one.needed ? 1 : 0;
    if (made[at] && one.parent != GangOrder::kNone) ++below[one.parent];
  }
  return made;
}

bool GangQuorum::holds(std::size_t group) const {
  const Group& one = groups_[group];
  return (one.of_groups ? holding(group) : one.placed) >= one.needed;
}

std::size_t GangQuorum::holding(std::size_t group) const {
  const auto& list = groups_[group].children;
  return static_cast<std::size_t>(
      std::count_if(list.begin(), list.end(), [this](std::size_t child) { return holds(child); }));
}

bool GangQuorum::enough() const {
  if (groups_[0].placed == 0) return false;
  const std::vector<char> held = holding_with([](const Group&) { return std::size_t{0}; });
  if (!held[0]) return false;
  for (std::size_t at = 1; at < groups_.size(); ++at) {
    if (groups_[at].placed > 0 && !held[at]) return false;
  }
  return true;
}

void GangQuorum::leave_all_open() {
  for (Group& one : groups_) one.open = one.own;
}

bool GangQuorum::possible() const {
  const std::vector<char> held = holding_with([](const Group& one) { return one.open; });
  if (!held[0]) return false;
  for (std::size_t at = 1; at < groups_.size(); ++at) {
    if (groups_[at].placed > 0 && !held[at]) return false;
  }
  return true;
}

bool GangQuorum::can_hold(std::size_t group) const {
  const std::vector<char> held = holding_with([](const Group& one) { return one.open; });
  for (std::size_t at = group; at != GangOrder::kNone; at = groups_[at].parent) {
    if (!held[at]) return false;
  }
  return true;
}

std::size_t GangQuorum::least(const std::vector<std::size_t>& counts) const {
  std::vector<std::vector<std::size_t>> below(groups_.size());
  for (std::size_t at = groups_.size(); at-- > 0;) {
    const Group& one = groups_[at];
    std::size_t wanted = 0;
    if (one.of_groups) {
      std::sort(below[at].begin(), below[at].end());
      if (below[at].size() < one.needed) wanted = GangOrder::kNone;
      for (std::size_t i = 0; i < one.needed && wanted != GangOrder::kNone; ++i) {
        wanted = below[at][i] == GangOrder::kNone ? GangOrder::kNone : wanted + below[at][i];
      }
    } else {
      const std::size_t others = one.own - counts[at];
      wanted = one.needed > others ? one.needed - others : 0;
      if (wanted > counts[at]) wanted = GangOrder::kNone;
    }
    if (at == 0) return wanted;
    below[one.parent].push_back(wanted);
  }
  return 0;
}

bool GangQuorum::allows(std::size_t group, const NodeInfo& node, bool alone) const {
  for (std::size_t at = group; at != GangOrder::kNone; at = groups_[at].parent) {
    const Group& one = groups_[at];
    if (one.key.empty() || (alone && at != 0)) continue;
    const Value* label = node.label(one.key);
    if (label == nullptr || (one.has_value && label->as_string() != one.value)) return false;
  }
  return true;
}

bool GangQuorum::is_open(std::size_t group) const {
  return !groups_[group].key.empty() && !groups_[group].has_value;
}

void GangQuorum::pin(std::size_t group, const std::string& value) {
  Group& one = groups_[group];
  one.value = value;
  one.has_value = one.pinned = true;
}

void GangQuorum::unpin(std::size_t group) {
  Group& one = groups_[group];
  one.pinned = false;
  one.has_value = one.placed > 0 || one.fixed;
}

}  // namespace dibs::scheduler
