#pragma once
// What the NICs of a pod need of a node, and whether it has that.
//
// A decision is made from the node's report (SpiderNodeState), from what other claims hold (`Used`)
// and from the pod's NICs; nothing else. The same inputs give the same functions: free ones are
// taken in ascending order of their PCI addresses. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/model/claim_parameter.h"
#include "drivers/net/model/grant.h"
#include "drivers/net/model/multus_config.h"
#include "drivers/net/model/node_state.h"

namespace dibs::drivers::net {

/// A NIC of a pod.
struct Need {
  MultusConfig config = {};
  std::string interface = {};  // in the pod: "eth0", "net1"
};

/// After such a time without a word the report of a node does not count.
inline constexpr Duration kStateLifetime = std::chrono::minutes(5);

/// Errors (unavailable) say what is missing, without the node: `no interface "eth1"
/// (kube-system/macvlan-conf)`, `no free VF in spidernet.io/sriov_a`. `state` null: the node has
/// not reported; that only matters where something is needed of it.
Result<Grant> fit(const NodeState* state, const std::vector<Need>& needs,
                  const ClaimParameter& parameter, const Used& used, Time now);

/// The addresses, each as a subnet of its own ("172.18.0.11/32"), of the node's device that carries
/// the traffic of such a NIC: the bond or VLAN where it exists, else the master where there is no
/// VLAN, else the physical function of `vf`. Nothing where nobody can tell.
std::optional<std::vector<Subnet>> host_subnets(const NodeState& state, const MultusConfig& config,
                                                std::string_view vf = {});

}  // namespace dibs::drivers::net
