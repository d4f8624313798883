#include "scheduler/gang.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/strings.h"
#include "scheduler/gang_devices.h"
#include "scheduler/gang_quorum.h"
#include "scheduler/scores/scores.h"

namespace dibs::scheduler {
namespace {

using json::Value;

/// As many nodes that can take a pod are compared; further ones come after them.
constexpr std::size_t kEnough = 100;

/// As many nodes can be looked at in the time that it takes to put a pod to one.
constexpr std::uint64_t kLooksPerTry = 250;

/// The same of steps of a search for devices.
constexpr std::uint64_t kStepsPerTry = 7'500;

/// Nodes, by their places among all; null: all of them.
using Places = const std::vector<std::size_t>*;

}  // namespace

PodPtr GangMember::counted() const {
  if (devices.node_allocatable.is_null()) return pod;
  return Pod::read(with_claim_statuses(pod->object, devices.node_allocatable));
}

std::vector<PodPtr> GangOrder::pods() const {
  std::vector<PodPtr> made;
  for (const Group& group : groups) {
    made.insert(made.end(), group.pods.begin(), group.pods.end());
  }
  return made;
}

struct GangPlacer::Search {
  /// A walk over nodes, in parts.
  struct Walk {
    Places places = nullptr;
    std::size_t count = 0;
    std::size_t first = 0;
    std::size_t done = 0;

    bool is_over() const { return done == count; }
    std::size_t next() {
      const std::size_t at = (first + done++) % count;
      return places != nullptr ? (*places)[at] : at;
    }
  };

  GangPlacer& owner;
  ClusterState& state;
  Devices& devices;
  const Profile& profile;
  GangDecision made = {};
  GangDevices claims;
  GangQuorum quorum;
  std::vector<std::size_t> like = {};   // the first member that asks for the same
  std::vector<std::size_t> kind = {};   // the same of its group alone: equals for the search
  std::vector<std::size_t> order = {};  // of members
  std::vector<std::vector<std::size_t>> turns = {};  // the same, by group
  std::vector<std::size_t> stack = {};               // placed members, the last one first to go
  /// Nodes by the values of labels that constraints name: most are in another domain than the one
  /// that is tried.
  std::map<std::string, std::map<std::string, std::vector<std::size_t>>> by_label = {};
  std::uint64_t tries = 0;
  std::uint64_t looks = 0;
  std::size_t depth = 0;     // choices that stand on each other
  bool interacting = false;  // where one pod is may be in favour of another
  bool apart = false;        // pods keep away from each other
  bool alone = false;        // where groups below the root may be does not matter

  Search(GangPlacer& owner_in, const GangOrder& wanted, const Profile& profile_in,
         std::set<std::string>& counting)
      : owner(owner_in),
        state(owner_in.state_),
        devices(owner_in.devices_),
        profile(profile_in),
        claims(devices, made, counting),
        quorum(wanted) {
    made.groups.resize(wanted.groups.size());
  }

  GangMember& member(std::size_t i) { return made.members[i]; }

  // --- pods ---

  /// Puts the member on the node; what is against it, "" for nothing.
  std::string put(std::size_t i, NodeInfo& node) {
    ++tries;
    GangMember& one = member(i);
    VolumePlan volumes;
    if (one.pod->claims_volumes) {
      const VolumeRun run = state.volumes().prepare(*one.pod, profile.filters());
      if (const auto cause = state.volumes().plan(run, node, volumes)) return words_of(*cause);
    }
    std::string refused = claims.take(i, node);
    if (!refused.empty()) return refused;
    state.volumes().reserve(volumes);
    one.volumes = std::move(volumes);
    one.node = &node;
    state.add_pod(one.counted(), node.name);
    quorum.add(one.group, node);
    stack.push_back(i);
    ++made.placed;
    return {};
  }

  /// The last one that was put goes back.
  void take_back() {
    GangMember& one = member(stack.back());
    NodeInfo& node = *one.node;
    state.remove_pod(one.pod->key);
    quorum.remove(one.group);
    claims.give_back(stack.back(), node);
    state.volumes().release(one.volumes);
    one.node = nullptr;
    stack.pop_back();
    --made.placed;
  }

  void take_back_to(std::size_t size) {
    while (stack.size() > size) take_back();
  }

  const std::map<std::string, std::vector<std::size_t>>& values_of(const std::string& key) {
    const auto [at, fresh] = by_label.try_emplace(key);
    if (!fresh) return at->second;
    for (const NodeInfo* node : state.nodes()) {
      if (const Value* label = node->label(key)) at->second[label->str()].push_back(node->index);
    }
    return at->second;
  }

  /// All nodes that a group below and including this may use are among them.
  Places places_of(std::size_t group) {
    static const std::vector<std::size_t> kNowhere;
    Places least = nullptr;
    for (std::size_t at = group; at != GangOrder::kNone; at = quorum.parent(at)) {
      const std::string* value = quorum.value(at);
      if (quorum.key(at).empty() || value == nullptr || (alone && at != 0)) continue;
      const auto& values = values_of(quorum.key(at));
      const auto found = values.find(*value);
      const auto& list = found != values.end() ? found->second : kNowhere;
      if (least == nullptr || list.size() < least->size()) least = &list;
    }
    return least;
  }

  /// All that the group may use, from where the last one was found.
  Walk walk_over(std::size_t group) {
    Walk walk;
    walk.places = places_of(group);
    walk.count = walk.places != nullptr ? walk.places->size() : state.nodes().size();
    walk.first = owner.start_;
    if (walk.places != nullptr) {
      const auto at =
          std::lower_bound(walk.places->begin(), walk.places->end(),
                           owner.start_ % std::max<std::size_t>(1, state.nodes().size()));
      walk.first = static_cast<std::size_t>(at - walk.places->begin());
    }
    return walk;
  }

  /// Values that the group could have by nodes that those above it allow.
  std::set<std::string> domains_of(std::size_t group) {
    std::set<std::string> out;
    for (Walk walk = walk_over(group); !walk.is_over();) {
      const NodeInfo& node = *state.nodes()[walk.next()];
      ++looks;
      if (quorum.allows(group, node, false)) out.insert(node.label(quorum.key(group))->str());
    }
    return out;
  }

  /// The next nodes that filters let the member go to, as many as are compared, the best first;
  /// none where there are no more.
  std::vector<Candidate> candidates(std::size_t i, Walk& walk, Reasons& reasons) {
    GangMember& one = member(i);
    std::vector<Candidate> found;
    if (walk.is_over()) return found;
    FilterRun filters(state, *one.pod, profile, [this](std::string_view name) {
      return profile.devices() && devices.serves(name);
    });
    if (const VolumeRun* volumes = filters.volumes();
        volumes != nullptr && !volumes->reason.empty()) {
      reasons.add(volumes->reason, volumes->plugin, walk.count);
      walk.done = walk.count;
      return found;
    }
    while (!walk.is_over() && found.size() < kEnough) {
      const std::size_t index = walk.next();
      ++looks;
      if (!quorum.allows(one.group, *state.nodes()[index], alone)) continue;
      if (const Refused* refused = filters.check_at(index)) {
        reasons.add(*refused);
      } else {
        found.push_back({index});
      }
    }
    if (found.size() > 1) score_nodes(state, *one.pod, profile, found);
    std::stable_sort(found.begin(), found.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    return found;
  }

  /// The best node that will do; false, and why, where there is none.
  bool put_anywhere(std::size_t i) {
    GangMember& one = member(i);
    Reasons reasons(*one.pod);
    one.unavailable.clear();
    if (is_exhausted()) {
      one.failure = Failure();
      one.failure.message = "not tried";
      return false;
    }
    Walk walk = walk_over(one.group);
    for (auto next = candidates(i, walk, reasons); !next.empty();
         next = candidates(i, walk, reasons)) {
      for (const Candidate& candidate : next) {
        NodeInfo& node = *state.nodes()[candidate.index];
        const std::string refused = put(i, node);
        if (refused.empty()) {
          owner.start_ = candidate.index + 1;
          return true;
        }
        if (!made.error.empty()) return false;
        reasons.add(refused, Plugin::dynamic_resources);
        if (is_exhausted()) break;
      }
      if (is_exhausted()) break;
    }
    one.failure = Failure();
    one.failure.plugins = reasons.plugins();
    one.failure.message = unavailable_message(nodes_asked(one.group), reasons.text());
    return false;
  }

  std::size_t nodes_asked(std::size_t group) {
    std::size_t asked = 0;
    for (Walk walk = walk_over(group); !walk.is_over();) {
      ++looks;
      if (quorum.allows(group, *state.nodes()[walk.next()], alone)) ++asked;
    }
    return asked;
  }

  // --- each takes what is left ---

  /// Pods of the group that have no node yet. True when the group holds; otherwise what it got
  /// here is given back.
  bool place_inside(std::size_t group) {
    const std::size_t before = stack.size();
    if (quorum.of_groups(group)) {
      for (const std::size_t child : quorum.children(group)) {
        place_group(child);
        if (!made.error.empty()) return false;
      }
    } else {
      place_pods(group);
      if (!made.error.empty()) return false;
    }
    std::size_t& most = made.groups[group].most;
    most =
        std::max(most, quorum.of_groups(group) ? quorum.holding(group) : quorum.placed_in(group));
    if (quorum.holds(group)) return true;
    take_back_to(before);
    return false;
  }

  void place_pods(std::size_t group) {
    std::set<std::size_t> hopeless;  // kinds
    for (const std::size_t i : turns[group]) {
      if (member(i).node != nullptr) continue;
      // Equals of one that found nothing find nothing, unless a pod in between is in their favour.
      if (!interacting && hopeless.contains(kind[i])) {
        member(i).failure = member(kind[i]).failure;
        continue;
      }
      if (put_anywhere(i)) continue;
      if (!made.error.empty()) return;
      hopeless.insert(kind[i]);
      member(kind[i]).failure = member(i).failure;
    }
  }

  /// The same, in the domain that takes most of them where the group has to choose one.
  bool place_group(std::size_t group) {
    if (!quorum.is_open(group)) return place_inside(group);
    const std::set<std::string> values = domains_of(group);
    std::size_t& domains = made.groups[group].domains;
    domains = std::max(domains, values.size());
    return values.empty() ? place_inside(group) : place_in_best(group, values);
  }

  /// Tries each value; the first that takes all pods is kept, or the one that takes most.
  bool place_in_best(std::size_t group, const std::set<std::string>& values) {
    const std::size_t before = stack.size();
    bool any = false;
    std::size_t best_start = 0;
    std::vector<std::pair<std::size_t, NodeInfo*>> best;
    std::vector<Failure> why;
    for (const std::string& value : values) {
      if (is_exhausted()) break;
      quorum.pin(group, value);
      const bool found = place_inside(group);
      const bool all = found && quorum.placed_in(group) == quorum.pods_in(group);
      if (found && !all && (!any || stack.size() - before > best.size())) {
        any = true;
        best_start = owner.start_;
        best.clear();
        for (std::size_t at = before; at < stack.size(); ++at) {
          best.emplace_back(stack[at], member(stack[at]).node);
        }
        why.clear();
        for (const GangMember& one : made.members) why.push_back(one.failure);
      }
      if (!all) take_back_to(before);
      quorum.unpin(group);
      if (!made.error.empty()) return false;
      if (all) return true;
    }
    if (!any) return false;
    // In the same order, so that devices are the same: not searched for again.
    for (const auto& [i, node] : best) {
      if (put(i, *node).empty()) continue;
      take_back_to(before);
      return false;
    }
    owner.start_ = best_start;
    for (std::size_t i = 0; i < why.size(); ++i) member(i).failure = why[i];
    return true;
  }

  // --- the search ---

  /// Whether it can be told without a search that there is no placement: a kind of pods has too few
  /// places even if it is alone. Only where pods never do each other good.
  bool is_hopeless() {
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

  bool has_cost(std::uint64_t most) {
    const std::uint64_t cost = tries + looks / kLooksPerTry + claims.steps() / kStepsPerTry;
    if (cost < most) return false;
    made.limited = true;
    return true;
  }

  bool spent() { return !made.error.empty() || has_cost(owner.limits_.tries); }

  /// Beyond what the search may take, where each takes what is left: a gang of any size has its
  /// pods put once.
  bool is_exhausted() { return has_cost(owner.limits_.tries + 2 * made.members.size()); }

  /// All choices of devices for the member at a place of the order, on a node.
  bool explore(std::size_t at, NodeInfo& node, std::vector<Value>& excluded) {
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

  /// Whoever has no node takes what is left beside those that were chosen for.
  bool place_rest() {
    const std::size_t before = stack.size();
    if (place_inside(0) && quorum.enough()) return true;
    take_back_to(before);
    made.limited = true;
    return false;
  }

  /// Pods from a place of the order on are open.
  bool place_from(std::size_t at) {
    if (quorum.enough()) return true;
    if (at == order.size() || !quorum.possible() || spent()) return false;
    // Each choice is some frames of the stack.
    if (depth >= owner.limits_.depth) return place_rest();
    ++depth;
    const bool found = choose_at(at);
    --depth;
    return found;
  }

  bool choose_at(std::size_t at) {
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

  /// All nodes for the member, those before a certain one left out.
  bool explore_all(std::size_t at, const NodeInfo* from) {
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

  void take_turns() {
    turns.assign(quorum.size(), {});
    for (const std::size_t i : order) turns[member(i).group].push_back(i);
  }

  bool find() {
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

  // --- before it begins ---

  bool prepare(const GangOrder& wanted, Time now) {
    std::map<std::string, std::size_t> alike;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> kinds;
    for (std::size_t group = 0; group < wanted.groups.size(); ++group) {
      for (const PodPtr& pod : wanted.groups[group].pods) {
        const std::size_t i = made.members.size();
        GangMember& one = made.members.emplace_back();
        one.pod = pod;
        one.group = group;
        if (profile.devices()) one.run = devices.prepare(*pod, now, profile.binding_timeout);
        const DeviceRun& run = one.run;
        if (run.ready == DeviceRun::Ready::wait) {
          made.waits = true;
          return false;
        }
        if (run.ready == DeviceRun::Ready::failed || run.ready == DeviceRun::Ready::rejected ||
            !run.asked.empty()) {
          made.error = run.asked.empty()
                           ? cat("pod ", pod->key, ": ", run.reason)
                           : cat("pod ", pod->key,
                                 " has a claim that a driver allocates, which pods of a group "
                                 "cannot have");
          return false;
        }
        like.push_back(alike.emplace(claims.add(one), i).first->second);
        kind.push_back(kinds.emplace(std::pair(group, like.back()), i).first->second);
        order.push_back(i);
        interacting = interacting || !pod->shape->affinity.empty() || !pod->shape->spread.empty();
        apart = apart || !pod->shape->anti_affinity.empty();
      }
    }
    take_turns();
    made.error = claims.fault();
    return made.error.empty();
  }

  /// What was found, with the state as it was before.
  GangDecision finish(bool found) {
    GangDecision out = made;
    out.enough = found && quorum.enough();
    if (out.enough) out.allocations = claims.allocations();
    for (std::size_t at = 0; at < quorum.size(); ++at) {
      const std::size_t parent = quorum.parent(at);
      const bool above = parent == GangOrder::kNone || out.groups[parent].holds;
      out.groups[at].holds = out.enough && above && quorum.holds(at);
    }
    take_back_to(0);
    return out;
  }

  /// Of the places that will do, the first that takes all pods, or the one that takes most. What is
  /// told, where none will do, is what is missing in the first.
  GangDecision find_among(const std::set<std::string>& values) {
    made.groups[0].domains = values.size();
    GangDecision best;
    std::vector<GangMember> first;
    for (const std::string& value : values) {
      if (is_exhausted()) break;
      quorum.pin(0, value);
      // Kept as it is: a second search might not come to the same.
      GangDecision here = finish(find());
      quorum.unpin(0);
      const bool all = here.enough && here.placed == here.members.size();
      if (all || !made.error.empty()) return here;
      if (!here.enough && first.empty()) first = made.members;
      if (here.enough && here.placed > best.placed) best = std::move(here);
    }
    if (best.enough) {
      best.limited = made.limited;
      return best;
    }
    if (!first.empty()) made.members = std::move(first);
    return made;
  }
};

GangDecision GangPlacer::place(const GangOrder& order, const Profile& profile, Time now) {
  std::set<std::string> counting;
  while (true) {
    const std::size_t known = counting.size();
    GangDecision made = try_once(order, profile, now, counting);
    if (counting.size() == known) return made;
  }
}

GangDecision GangPlacer::try_once(const GangOrder& order, const Profile& profile, Time now,
                                  std::set<std::string>& counting) {
  Search search(*this, order, profile, counting);
  if (!search.prepare(order, now)) return search.made;
  const GangOrder::Group& root = order.groups[0];
  if (root.topology_key.empty()) return search.finish(search.find());
  return search.find_among(root.topology_value.empty() ? search.domains_of(0)
                                                       : std::set{root.topology_value});
}

}  // namespace dibs::scheduler
