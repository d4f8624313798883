#include "scheduler/gang.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/strings.h"
#include "scheduler/gang_search.h"

namespace dibs::scheduler {

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

bool GangPlacer::Search::place_inside(std::size_t group) {
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
  most = std::max(most, quorum.of_groups(group) ? quorum.holding(group) : quorum.placed_in(group));
  if (quorum.holds(group)) return true;
  take_back_to(before);
  return false;
}

void GangPlacer::Search::place_pods(std::size_t group) {
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

bool GangPlacer::Search::place_group(std::size_t group) {
  if (!quorum.is_open(group)) return place_inside(group);
  const std::set<std::string> values = domains_of(group);
  std::size_t& domains = made.groups[group].domains;
  domains = std::max(domains, values.size());
  return values.empty() ? place_inside(group) : place_in_best(group, values);
}

bool GangPlacer::Search::place_in_best(std::size_t group, const std::set<std::string>& values) {
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

bool GangPlacer::Search::prepare(const GangOrder& wanted, Time now) {
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

GangDecision GangPlacer::Search::finish(bool found) {
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

GangDecision GangPlacer::Search::find_among(const std::set<std::string>& values) {
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
