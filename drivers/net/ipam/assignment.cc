#include "drivers/net/ipam/assignment.h"

#include <algorithm>
#include <map>

#include "base/log.h"
#include "base/strings.h"

namespace dibs::drivers::net {
namespace {

constexpr int kTries = 20;

/// Was it refused for good, so that nothing can have been written?
bool is_definite(const Error& error) {
  switch (error.code()) {
    case Code::invalid:
    case Code::forbidden:
    case Code::bad_request:
    case Code::not_found:
    case Code::conflict:
    case Code::too_large:
      return true;
    default:
      return false;
  }
}

bool serves(const std::vector<std::string>& pools, const std::string& pool) {
  if (pool.empty()) return pools.empty();
  return std::find(pools.begin(), pools.end(), pool) != pools.end();
}

std::vector<Taken> records_of(Ledger& ledger, const std::string& key,
                              const std::vector<Assigned>& nics) {
  std::vector<Taken> out;
  for (const auto& held : held_by(nics)) {
    // What has settled, the collector frees: it sees all endpoints.
    auto record = ledger.record(held);
    if (record && record->pod == key) out.push_back({held, *record});
  }
  return out;
}

void drop_all(Ledger& ledger, const std::vector<Taken>& taken) {
  for (const auto& one : taken) {
    if (auto dropped = ledger.drop(one); !dropped) {
      // The collector does it.
      log::info("address not given back yet",
                {{"pool", one.held.pool}, {"error", dropped.error().message()}});
    }
  }
}

}  // namespace

Result<bool> give_up(const Tools& tools, const Endpoint& endpoint) {
  const std::string key = client::key_of(endpoint.name_space, endpoint.name);
  // Known before the endpoint goes: a record that has changed after that is another attempt's.
  const auto records = records_of(tools.ledger, key, endpoint.nics);
  DIBS_TRY(const bool removed, tools.endpoints.remove(endpoint));
  if (removed) drop_all(tools.ledger, records);
  return removed;
}

Result<std::vector<Assigned>> Assignment::run() {
  for (int i = 0; i < kTries; ++i) {
    auto result = once();
    if (!result) {
      if (is_definite(result.error())) tidy(nullptr);
      return result.error();
    }
    if (*result) return std::move(**result);
  }
  return Error::unavailable(cat("SpiderEndpoint ", job_.key, ": exhaust all retries"));
}

Result<std::optional<std::vector<Assigned>>> Assignment::once() {
  DIBS_TRY(Endpoint endpoint, tools_.endpoints.read(job_.name_space, job_.name));
  const bool current = is_current(endpoint);
  if (current && has_all(endpoint)) {
    tidy(&endpoint);
    return std::optional(asked_of(endpoint));
  }
  DIBS_TRY(auto plans, plan(endpoint, !current));
  if (!current) {
    DIBS_TRY(const bool claimed, claim(endpoint, plans));
    if (!claimed) return std::optional<std::vector<Assigned>>();
    if (plans.empty()) return std::optional(asked_of(endpoint));
  } else {
    if (!check_room(plans, endpoint, false)) DIBS_CHECK(check_room(plans, endpoint, true));
  }
  Endpoint next = endpoint;
  for (const auto& plan : plans) {
    DIBS_TRY(Assigned nic, take(plan, next));
    next.nics.push_back(std::move(nic));
  }
  DIBS_TRY(auto written, tools_.endpoints.write(next, job_.pod, job_.application));
  made_ = false;
  if (!written) return std::optional<std::vector<Assigned>>();
  for (const auto& one : taken_) tools_.ledger.endpoint_written(one);
  tidy(&*written);
  return std::optional(asked_of(*written));
}

/// Is it this pod's, on this node? What was assigned for a node that the pod did not get to is
/// looked at again.
bool Assignment::is_current(const Endpoint& endpoint) const {
  return is_mine(endpoint) && endpoint.node == job_.node;
}

bool Assignment::is_mine(const Endpoint& endpoint) const {
  return endpoint.object.is_object() && endpoint.pod_uid == job_.uid;
}

/// Pools for the interfaces that have no addresses; for all of them when the endpoint is not
/// current.
Result<std::vector<Assignment::Plan>> Assignment::plan(const Endpoint& endpoint, bool all) {
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < nics_.size(); ++i) {
    if (!all && endpoint.nic(nics_[i].interface) != nullptr) continue;
    DIBS_TRY(auto candidates, select_pools(job_.setting, nics_[i], i));
    plans.push_back({&nics_[i], std::move(candidates)});
  }
  return plans;
}

bool Assignment::keeps(const Endpoint& endpoint) const {
  return tools_.options.stateful_sets && job_.application.kind == "StatefulSet" &&
         endpoint.owner_kind == "StatefulSet" && endpoint.owner_name == job_.application.name &&
         !endpoint.terminating();
}

Result<bool> Assignment::claim(Endpoint& endpoint, std::vector<Plan>& plans) {
  const bool there = endpoint.object.is_object();
  if (is_mine(endpoint) && job_.pod["spec"]["nodeName"].as_string() == endpoint.node) {
    return Error::conflict(
        cat("Pod ", job_.key, " runs on node ", endpoint.node, ", not on ", job_.node));
  }
  if (there && !is_mine(endpoint) && !keeps(endpoint)) {
    DIBS_CHECK(give_up(tools_, endpoint));
    return false;
  }
  // What the pod was to have on another node, or a pod of the same name had in a StatefulSet,
  // stays, interface by interface, where the pools are still those that may serve it.
  std::vector<Assigned> lost;
  std::vector<Plan> missing;
  for (const auto& plan : plans) {
    const Assigned* had = endpoint.nic(plan.nic->interface);
    if (had != nullptr && serves(plan.candidates.v4, had->ipv4_pool) &&
        serves(plan.candidates.v6, had->ipv6_pool)) {
      continue;
    }
    if (had != nullptr) lost.push_back(*had);
    missing.push_back(plan);
  }
  const auto records = records_of(tools_.ledger, job_.key, lost);
  std::erase_if(endpoint.nics, [&](const Assigned& nic) {
    return std::find(lost.begin(), lost.end(), nic) != lost.end();
  });
  if (!check_room(missing, endpoint, false)) DIBS_CHECK(check_room(missing, endpoint, true));
  endpoint.pod_uid = job_.uid;
  endpoint.node = job_.node;
  DIBS_TRY(auto written, tools_.endpoints.write(endpoint, job_.pod, job_.application));
  if (!written) return false;
  made_ = !there;
  endpoint = std::move(*written);
  drop_all(tools_.ledger, records);
  for (const auto& held : held_by(endpoint.nics)) {
    // The endpoint already says whose it is; the collector writes the uid where this does not.
    if (auto renamed = tools_.ledger.rename(held, job_.key, job_.uid); !renamed) {
      log::info("record not renamed yet",
                {{"pool", held.pool}, {"error", renamed.error().message()}});
    }
  }
  plans = std::move(missing);
  return true;
}

std::vector<Ip> Assignment::in_use(const Endpoint& endpoint, const std::string& pool) const {
  std::vector<Ip> out;
  for (const auto& held : held_by(endpoint.nics)) {
    if (held.pool == pool) out.push_back(held.ip);
  }
  return out;
}

Result<> Assignment::check(const Endpoint& endpoint) {
  DIBS_TRY(const auto plans, plan(endpoint, !is_current(endpoint)));
  return check_room(plans, endpoint, false);
}

Result<> Assignment::check_room(const std::vector<Plan>& plans, const Endpoint& endpoint,
                                bool fresh) {
  std::map<std::string, std::int64_t> used;
  for (const auto& plan : plans) {
    for (const int version : {4, 6}) {
      const auto& pools = version == 4 ? plan.candidates.v4 : plan.candidates.v6;
      std::string reasons;
      bool found = pools.empty();
      for (const auto& pool : pools) {
        const auto room = tools_.ledger.room(pool, job_.uid, in_use(endpoint, pool), fresh);
        found = room && *room > used[pool];
        if (found) {
          ++used[pool];
          break;
        }
        append(reasons, reasons.empty() ? "" : "; ", "IPPool ", pool, ": ",
               room ? std::string(kUsedOut) : room.error().message());
      }
      if (found) continue;
      return Error::conflict(
          cat("no IPv", version, " address for ", plan.nic->interface, ": ", reasons));
    }
  }
  return success();
}

Result<Assigned> Assignment::take(const Plan& plan, const Endpoint& endpoint) {
  std::vector<Held> held;
  for (const int version : {4, 6}) {
    const auto& pools = version == 4 ? plan.candidates.v4 : plan.candidates.v6;
    if (pools.empty()) continue;
    DIBS_TRY(Held one, take_one(plan, version, pools, endpoint));
    held.push_back(std::move(one));
  }
  return describe(plan, held);
}

Result<Held> Assignment::take_one(const Plan& plan, int version,
                                  const std::vector<std::string>& pools, const Endpoint& endpoint) {
  std::string reasons;
  for (const auto& pool : pools) {
    auto taken = tools_.ledger.take(pool, job_.key, job_.uid, in_use(endpoint, pool));
    if (taken) {
      taken_.push_back(*taken);
      return taken->held;
    }
    const Code code = taken.error().code();
    if (code != Code::conflict && code != Code::not_found) return taken.error();
    append(reasons, reasons.empty() ? "" : "; ", "IPPool ", pool, ": ", taken.error().message());
  }
  return Error::conflict(
      cat("no IPv", version, " address for ", plan.nic->interface, ": ", reasons));
}

Assigned Assignment::describe(const Plan& plan, const std::vector<Held>& held) const {
  Assigned nic;
  nic.interface = plan.nic->interface;
  nic.clean_gateway = plan.candidates.clean_gateway;
  std::vector<Subnet> subnets;
  for (const auto& [name, ip] : held) {
    const auto found = job_.pools->pools.find(name);
    if (found == job_.pools->pools.end()) continue;
    const IpPool& pool = *found->second;
    subnets.push_back(pool.subnet);
    (ip.v6 ? nic.ipv6 : nic.ipv4) = pool.subnet.address(ip);
    (ip.v6 ? nic.ipv6_pool : nic.ipv4_pool) = name;
    if (pool.gateway) (ip.v6 ? nic.ipv6_gateway : nic.ipv4_gateway) = pool.gateway->str();
    nic.routes.insert(nic.routes.end(), pool.routes.begin(), pool.routes.end());
  }
  for (const auto& route : job_.routes) {
    // The others belong to another interface.
    const bool here = std::any_of(subnets.begin(), subnets.end(),
                                  [&](const Subnet& subnet) { return subnet.contains(route.gw); });
    if (here) nic.routes.push_back(route);
  }
  return nic;
}

bool Assignment::has_all(const Endpoint& endpoint) const {
  return std::all_of(nics_.begin(), nics_.end(),
                     [&](const NicAsk& nic) { return endpoint.nic(nic.interface) != nullptr; });
}

std::vector<Assigned> Assignment::asked_of(const Endpoint& endpoint) const {
  std::vector<Assigned> out;
  for (const auto& nic : nics_) out.push_back(*endpoint.nic(nic.interface));
  return out;
}

void Assignment::tidy(const Endpoint* endpoint) {
  std::vector<Taken> extra = std::move(taken_);
  taken_.clear();
  if (endpoint != nullptr) {
    const auto named = held_by(endpoint->nics);
    std::erase_if(extra, [&](const Taken& one) {
      return std::find(named.begin(), named.end(), one.held) != named.end();
    });
  }
  drop_all(tools_.ledger, extra);
  if (endpoint != nullptr || !made_) return;
  // Nobody else has used it meanwhile, or else it is not empty or another pod's.
  auto left = tools_.endpoints.read(job_.name_space, job_.name);
  if (left && left->object.is_object() && left->pod_uid == job_.uid && left->nics.empty()) {
    (void)tools_.endpoints.remove(*left);
  }
}

}  // namespace dibs::drivers::net
