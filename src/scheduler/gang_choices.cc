// A gang for which what is left was too little: choices of nodes and, on each node, of devices,
// gone back on until a placement is found, none is left, or the work is too much.
#include <algorithm>
#include <tuple>

#include "scheduler/gang_search.h"

namespace dibs::scheduler {
namespace {

using json::Value;

/// As many nodes can be looked at in the time that it takes to put a pod to one.
constexpr std::uint64_t kLooksPerTry = 250;

/// The same of steps of a search for devices.
constexpr std::uint64_t kStepsPerTry = 7'500;

}  // namespace

bool GangPlacer::Search::is_hopeless() {
  if (interacting || apart) return false;
  const std::set<std::size_t> kinds(like.begin(), like.end());
  for (const std::size_t one : kinds) {
    std::vector<std::size_t> equals;
    std::vector<std::size_t> counts(quorum.size());
    bool failed = false;
    for (const std::size_t i : order) {
      if (like[i] != one) continue;
      equals.push_back(i);
      ++counts[member(i).group];
      failed = failed || !member(i).failure.message.empty();
    }
    if (!failed) continue;
    std::size_t wanted = quorum.least(counts);
    if (equals.size() == order.size()) wanted = std::max<std::size_t>(1, wanted);
    // What the first takes must not be what another node would need.
    std::size_t found = 0;
    bool local = true;
    alone = true;
    for (const std::size_t i : equals) {
      if (!put_anywhere(i)) break;
      ++found;
      local = local && claims.is_local(i);
    }
    alone = false;
    take_back_to(0);
    if (!made.error.empty()) return true;
    // The first refusal of a kind that was alone is final: devices of one node were searched for
    // together, and other nodes have nothing to do with it.
    if ((local || found == 0) && found < wanted) return true;
  }
  return false;
}

bool GangPlacer::Search::has_cost(std::uint64_t most) {
  const std::uint64_t cost = tries + looks / kLooksPerTry + claims.steps() / kStepsPerTry;
  if (cost < most) return false;
  made.limited = true;
  return true;
}

bool GangPlacer::Search::spent() { return !made.error.empty() || has_cost(owner.limits_.tries); }

bool GangPlacer::Search::is_exhausted() {
  return has_cost(owner.limits_.tries + 2 * made.members.size());
}

bool GangPlacer::Search::explore(std::size_t at, NodeInfo& node, std::vector<Value>& excluded) {
  if (spent()) return false;
  const std::size_t i = order[at];
  for (const Value& device : excluded) claims.exclude(device);
  const bool there = put(i, node).empty();
  for (const Value& device : excluded) claims.include(device);
  if (!there) return false;
  if (place_from(at + 1)) return true;
  const std::vector<Value> others = claims.contested(i);
  take_back();
  if (depth >= owner.limits_.depth) {
    made.limited = made.limited || !others.empty();
    return false;
  }
  ++depth;
  bool found = false;
  for (const Value& device : others) {
    excluded.push_back(device);
    found = explore(at, node, excluded);
    if (found) break;
    excluded.pop_back();
  }
  --depth;
  return found;
}

bool GangPlacer::Search::place_rest() {
  const std::size_t before = stack.size();
  if (place_inside(0) && quorum.enough()) return true;
  take_back_to(before);
  made.limited = true;
  return false;
}

bool GangPlacer::Search::place_from(std::size_t at) {
  if (quorum.enough()) return true;
  if (at == order.size() || !quorum.possible() || spent()) return false;
  // Each choice is some frames of the stack.
  if (depth >= owner.limits_.depth) return place_rest();
  ++depth;
  const bool found = choose_at(at);
  --depth;
  return found;
}

bool GangPlacer::Search::choose_at(std::size_t at) {
  const std::size_t i = order[at];
  const std::size_t group = member(i).group;
  const bool worth_it = quorum.can_hold(group);
  quorum.decide(group);
  // Equals stand in the order of the nodes: another order is the same placement. One that was
  // left out is followed by none of its kind.
  const bool follows = at > 0 && kind[order[at - 1]] == kind[i] && !interacting;
  const NodeInfo* before = follows ? member(order[at - 1]).node : nullptr;
  const bool possible = worth_it && (!follows || before != nullptr);
  if (possible && explore_all(at, before)) return true;
  if (place_from(at + 1)) return true;
  quorum.leave_open(group);
  return false;
}

bool GangPlacer::Search::explore_all(std::size_t at, const NodeInfo* from) {
  const std::size_t i = order[at];
  Reasons ignored(*member(i).pod);
  Walk walk = walk_over(member(i).group);
  for (auto next = candidates(i, walk, ignored); !next.empty();
       next = candidates(i, walk, ignored)) {
    for (const Candidate& candidate : next) {
      NodeInfo& node = *state.nodes()[candidate.index];
      if (from != nullptr && node.index < from->index) continue;
      std::vector<Value> excluded;
      if (explore(at, node, excluded)) return true;
      if (spent()) return false;
    }
  }
  return false;
}

void GangPlacer::Search::take_turns() {
  turns.assign(quorum.size(), {});
  for (const std::size_t i : order) turns[member(i).group].push_back(i);
}

bool GangPlacer::Search::find() {
  for (GangMember& one : made.members) one.failure = Failure();
  if (place_inside(0) && made.placed > 0) return true;
  const std::vector<GangMember> greedy = made.members;
  take_back_to(0);
  if (!made.error.empty() || is_hopeless() || !made.error.empty()) return false;
  // Groups whose pods found nothing come first, and in them those pods; equals stay together.
  std::set<std::size_t> stuck;
  for (const GangMember& one : greedy) {
    if (!one.failure.message.empty()) stuck.insert(one.group);
  }
  const auto place_of = [&](std::size_t i) {
    return std::tuple(!stuck.contains(greedy[i].group), greedy[i].group,
                      greedy[kind[i]].failure.message.empty(), kind[i]);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return place_of(a) < place_of(b); });
  take_turns();
  quorum.leave_all_open();
  if (!place_from(0)) return false;
  // The search ends when it has enough: the rest joins as there is room.
  place_inside(0);
  return made.error.empty();
}

}  // namespace dibs::scheduler
