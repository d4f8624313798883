#pragma once
// Which interfaces a pod is to have, which of its claims each belongs to, and what has to be asked
// of a node and of the pools for them. Both models come to the same here.

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/net/control/networks.h"
#include "drivers/net/fit/fit.h"
#include "drivers/net/ipam/selection.h"
#include "drivers/net/model/pod_networks.h"
#include "json/value.h"

namespace dibs::drivers::net {

struct PlannedNic {
  Need need = {};
  std::size_t claim = 0;  // whose it is: an index of those that were given
};

struct PodPlan {
  std::vector<PlannedNic> nics = {};  // eth0 first
  /// What the pod lacks so that its annotations say the same; null: nothing.
  json::Value annotations = {};
};

/// `claims` in the order of the pod's; they name SpiderMultusConfigs. Interfaces that no claim
/// names belong to `rest`. Errors: conflict, the pod's annotations and claims do not agree;
/// not_found, a network is not there; invalid.
Result<PodPlan> plan_pod(const json::Value& pod, const std::vector<AskedNics>& claims,
                         std::size_t rest, const Networks& networks,
                         const SelectionOptions& options);

/// Whether addresses of such an interface are this driver's to give.
bool uses_ipam(const MultusConfig& config);

/// What the pools are asked on a node for these interfaces; `state` null: nothing is known of it.
/// `vfs`: the virtual function of each interface, or "".
NicAsk ask_of(const Need& need, const NodeState* state, std::string_view vf,
              const std::vector<std::string>& only_pools);

}  // namespace dibs::drivers::net
