#include "scheduler/gang_devices.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::scheduler {
namespace {

using json::Value;

/// What is written of an allocation that is usable on one node alone.
bool is_of_one_node(const Value& allocation) {
  const Value& terms = allocation["nodeSelector"]["nodeSelectorTerms"];
  return terms.size() == 1 && terms[0]["matchFields"].size() == 1 &&
         terms[0]["matchExpressions"].empty();
}

/// An allocation that does nothing but hold a device.
Value hold_on(const Value& result) {
  return Value::object(
      {{"devices",
        Value::object(
            {{"results", Value::array({Value::object({{"request", "excluded"},
                                                      {"driver", result["driver"]},
                                                      {"pool", result["pool"]},
                                                      {"device", result["device"]}})})}})}});
}

std::string id_of(const Value& result) {
  return cat("excluded ", result["driver"].as_string(), "/", result["pool"].as_string(), "/",
             result["device"].as_string());
}

void note_unavailable(GangMember& one, std::size_t claim) {
  auto& all = one.unavailable;
  if (std::find(all.begin(), all.end(), claim) == all.end()) all.push_back(claim);
}

}  // namespace

std::string GangDevices::add(const GangMember& member) {
  const DeviceRun& run = member.run;
  Member made;
  made.wish = cat(member.pod->signature(), run.signature);
  for (const std::size_t place : run.open) {
    const std::string& key = run.claims[place].key;
    // A claim that others share is more than what it asks for.
    if (++wanted_[key] > 1 || !run.claims[place].own) append(made.wish, '\n', key);
  }
  const bool counts = counting_.contains(made.wish) ||
                      std::any_of(run.claims.begin(), run.claims.end(), [&](const PodClaim& one) {
                        return devices_.takes_of_node(one.object["status"]["allocation"]);
                      });
  made.plain = run.extended_resources.empty() && run.named.empty() && !counts;
  made.fixed = run;
  made.fixed.open.clear();
  made.fixed.demand = {};
  made.fixed.refused = nullptr;
  members_.push_back(std::move(made));
  return members_.back().wish;
}

std::string GangDevices::fault() const {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const DeviceRun& run = made_.members[i].run;
    for (const std::size_t place : run.open) {
      const std::string& key = run.claims[place].key;
      if (members_[i].plain || wanted_.at(key) == 1) continue;
      return cat("claim ", key,
                 " is shared in the group, which does not go together with claims for extended "
                 "resources or for resources of the node");
    }
  }
  return {};
}

std::string GangDevices::take(std::size_t i, NodeInfo& node) {
  members_[i].trail = Trail();
  std::string refused = try_node(i, node);
  if (!refused.empty()) return refused;
  const DeviceRun& run = made_.members[i].run;
  for (const std::size_t place : run.open) use(run.claims[place].key, node, 1);
  return {};
}

void GangDevices::give_back(std::size_t i, const NodeInfo& node) {
  const DeviceRun& run = made_.members[i].run;
  for (const std::size_t place : run.open) use(run.claims[place].key, node, -1);
  Trail& trail = members_[i].trail;
  // All go before one comes back: they may have changed places.
  for (const auto& [key, before] : trail.before) devices_.unreserve(key);
  for (const auto& [key, before] : trail.before) restore(key, before);
  for (const std::string& key : trail.own) devices_.unreserve(key);
  trail = Trail();
}

std::string GangDevices::try_node(std::size_t i, NodeInfo& node) {
  GangMember& one = made_.members[i];
  Trail& trail = members_[i].trail;
  if (one.run.ready != DeviceRun::Ready::go) return {};
  if (!members_[i].plain) return try_alone(one, trail, node);
  const NodeDevices still = devices_.check(members_[i].fixed, node);
  steps_ += still.steps;
  if (still.kind != NodeDevices::Kind::fits) {
    for (const std::size_t claim : still.unavailable) note_unavailable(one, claim);
    return refusal(still);
  }
  std::vector<std::string> fresh;
  for (const std::size_t place : one.run.open) {
    const std::string& key = one.run.claims[place].key;
    const auto known = pending_.find(key);
    if (known == pending_.end()) {
      fresh.push_back(key);
    } else if (!known->second.anywhere && !known->second.places.matches(node.place)) {
      return "resourceclaim not available on the node";
    }
  }
  if (fresh.empty()) return {};
  alloc::Outcome outcome = allocate(fresh, node);
  if (outcome.answer == alloc::Answer::allocated) {
    if (takes_of_node(fresh, outcome)) return made_.error;
    keep(trail, fresh, outcome, node);
    return {};
  }
  const std::string refused = refusal(outcome);
  if (outcome.answer != alloc::Answer::unavailable) return refused;
  // Perhaps the pods that are there already can do with other devices.
  std::vector<std::string> together;
  for (const auto& [key, one_claim] : pending_) {
    if (one_claim.home == &node && one_claim.away == 0) together.push_back(key);
  }
  if (together.empty()) return refused;
  std::vector<Value> before;
  for (const std::string& key : together) {
    before.push_back(pending_[key].allocation);
    devices_.unreserve(key);
  }
  const std::size_t others = together.size();
  together.insert(together.end(), fresh.begin(), fresh.end());
  outcome = allocate(together, node);
  if (outcome.answer == alloc::Answer::allocated && !takes_of_node(together, outcome)) {
    for (std::size_t k = 0; k < others; ++k) pending_[together[k]].allocation = before[k];
    keep(trail, together, outcome, node);
    return {};
  }
  for (std::size_t k = 0; k < others; ++k) devices_.reserve(together[k], before[k]);
  return made_.error.empty() ? refusal(outcome) : made_.error;
}

alloc::Outcome GangDevices::allocate(const std::vector<std::string>& keys, const NodeInfo& node) {
  alloc::Outcome outcome = devices_.allocate(keys, node);
  steps_ += outcome.stats.steps;
  return outcome;
}

std::string GangDevices::try_alone(GangMember& one, Trail& trail, NodeInfo& node) {
  one.devices = devices_.check(one.run, node);
  steps_ += one.devices.steps;
  if (one.devices.kind != NodeDevices::Kind::fits) {
    for (const std::size_t claim : one.devices.unavailable) note_unavailable(one, claim);
    return refusal(one.devices);
  }
  for (std::size_t k = 0; k < one.devices.allocations.size(); ++k) {
    // The last may be that of a claim that does not exist yet, for extended resources.
    const bool exists = k < one.run.open.size();
    trail.own.push_back(exists ? one.run.claims[one.run.open[k]].key
                               : cat("extended of ", one.pod->uid));
    devices_.reserve(trail.own.back(), one.devices.allocations[k]);
  }
  return {};
}

bool GangDevices::takes_of_node(const std::vector<std::string>& keys,
                                const alloc::Outcome& outcome) {
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (!devices_.takes_of_node(outcome.allocations[k])) continue;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const auto& claims = made_.members[i].run.claims;
      const bool uses = std::any_of(claims.begin(), claims.end(),
                                    [&](const PodClaim& claim) { return claim.key == keys[k]; });
      if (uses) counting_.insert(members_[i].wish);
    }
    made_.error = "devices are resources of the node";
  }
  return !made_.error.empty();
}

void GangDevices::keep(Trail& trail, const std::vector<std::string>& keys,
                       const alloc::Outcome& outcome, NodeInfo& node) {
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const auto known = pending_.find(keys[k]);
    trail.before.emplace_back(keys[k],
                              known != pending_.end() ? known->second.allocation : Value());
    set_allocation(keys[k], outcome.allocations[k], node);
  }
}

void GangDevices::set_allocation(const std::string& key, const Value& allocation, NodeInfo& node) {
  Pending& one = pending_[key];
  one.allocation = allocation;
  one.home = &node;
  one.anywhere = !allocation["nodeSelector"].is_object();
  if (!one.anywhere) one.places = alloc::NodeSelector::read(allocation["nodeSelector"]);
  devices_.reserve(key, allocation);
}

void GangDevices::restore(const std::string& key, const Value& allocation) {
  if (allocation.is_null()) {
    devices_.unreserve(key);
    pending_.erase(key);
    return;
  }
  set_allocation(key, allocation, *pending_[key].home);
}

void GangDevices::use(const std::string& key, const NodeInfo& node, int sign) {
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;
  found->second.users += static_cast<std::size_t>(sign);
  if (found->second.home != &node) found->second.away += static_cast<std::size_t>(sign);
}

std::string GangDevices::refusal(const NodeDevices& said) {
  if (said.kind == NodeDevices::Kind::failed && made_.error.empty()) {
    if (said.holds) made_.error = said.reason;
    made_.limited = made_.limited || !said.holds;
  }
  return said.reason;
}

std::string GangDevices::refusal(const alloc::Outcome& outcome) {
  switch (outcome.answer) {
    case alloc::Answer::failed:
      if (made_.error.empty()) made_.error = outcome.error;
      return outcome.error;
    case alloc::Answer::undecided:
      made_.limited = true;
      return kNoDevices;
    case alloc::Answer::node_invalid:
      return outcome.error;
    case alloc::Answer::allocated:
    case alloc::Answer::unavailable:
      break;
  }
  return kNoDevices;
}

bool GangDevices::is_local(std::size_t i) const {
  const DeviceRun& run = made_.members[i].run;
  if (!members_[i].plain) return made_.members[i].devices.allocations.empty();
  return std::all_of(run.open.begin(), run.open.end(), [&](std::size_t place) {
    const std::string& key = run.claims[place].key;
    const auto found = pending_.find(key);
    return found != pending_.end() && wanted_.at(key) == 1 &&
           is_of_one_node(found->second.allocation);
  });
}

std::vector<Value> GangDevices::contested(std::size_t i) const {
  std::vector<Value> found;
  for (const auto& [key, before] : members_[i].trail.before) {
    if (!before.is_null()) continue;
    const Value& allocation = pending_.at(key).allocation;
    if (is_of_one_node(allocation) && wanted_.at(key) == 1) continue;
    for (const Value& result : allocation["devices"]["results"].items()) found.push_back(result);
  }
  return found;
}

void GangDevices::exclude(const Value& device) { devices_.reserve(id_of(device), hold_on(device)); }

void GangDevices::include(const Value& device) { devices_.unreserve(id_of(device)); }

std::map<std::string, Value> GangDevices::allocations() const {
  std::map<std::string, Value> made;
  for (const auto& [key, one] : pending_) made[key] = one.allocation;
  return made;
}

}  // namespace dibs::scheduler
