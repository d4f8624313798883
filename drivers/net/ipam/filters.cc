// Why a pool cannot serve an interface, in upstream's words and order.

#include <algorithm>

#include "base/strings.h"
#include "drivers/net/ipam/selection.h"
#include "drivers/net/model/fields.h"

namespace dibs::drivers::net {
namespace {

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string state_reason(const IpPool& pool, int version) {
  if (pool.terminating) return cat("terminating IPPool ", pool.name);
  if (pool.disabled) return cat("disabled IPPool ", pool.name);
  if (pool.version == version) return {};
  return cat("expect an IPv", version, " IPPool, but the version of the IPPool ", pool.name,
             " is IPv", pool.version);
}

std::string node_reason(const Setting& setting, const IpPool& pool) {
  if (!pool.node_names.empty()) {
    if (has(pool.node_names, setting.node)) return {};
    return cat("unmatched Node name of IPPool ", pool.name);
  }
  if (!pool.node_affinity || pool.node_affinity->matches(setting.node_labels)) return {};
  return cat("unmatched Node affinity of IPPool ", pool.name);
}

std::string namespace_reason(const Setting& setting, const IpPool& pool) {
  if (!pool.namespace_names.empty()) {
    if (has(pool.namespace_names, setting.pod["metadata"]["namespace"].as_string())) return {};
    return cat("unmatched Namespace name of IPPool ", pool.name);
  }
  if (!pool.namespace_affinity ||
      pool.namespace_affinity->matches(setting.name_space["metadata"]["labels"])) {
    return {};
  }
  return cat("unmatched Namespace affinity of IPPool ", pool.name);
}

std::string pod_reason(const Setting& setting, const IpPool& pool) {
  if (!pool.pod_affinity) return {};
  if (is_auto_pool(pool)) {
    if (is_pool_of(pool, setting.application)) return {};
    return cat("unmatched Pod affinity of auto-created IPPool ", pool.name);
  }
  if (pool.pod_affinity->matches(setting.pod["metadata"]["labels"])) return {};
  return cat("unmatched Pod affinity of IPPool ", pool.name);
}

std::string multus_reason(const Setting& setting, const NicAsk& nic, const IpPool& pool) {
  if (pool.multus_names.empty()) return {};
  if (nic.multus.empty()) {
    return cat("cluster-network multus isn't set, the IPPool ", pool.name, " specified multusName ",
               go_list(pool.multus_names), " unmatched");
  }
  if (names_multus(setting, nic, pool)) return {};
  return cat("the spec.multusName ", go_list(pool.multus_names), " in the IPPool ", pool.name,
             " used by the Pod interface ", nic.interface, " is not matched with the multusCR ",
             nic.multus, " specified by the Pod");
}

/// Does the device that carries the interface on the node lie in the pool's subnet?
std::string subnet_reason(const Setting& setting, const NicAsk& nic, const IpPool& pool) {
  SubnetMatch match = setting.options.subnet_match;
  if (nic.match_master_subnet) match = SubnetMatch::strict;
  if (match == SubnetMatch::off || !nic.host_known) return {};
  std::vector<std::string> others;
  for (const Subnet& subnet : nic.host_subnets) {
    if (subnet.version() != pool.version) continue;
    if (subnet.overlaps(pool.subnet)) return {};
    others.push_back(subnet.prefix == subnet.base.width() ? subnet.base.str() : subnet.str());
  }
  // Without an address of the family there is nothing to tell by.
  if (others.empty() && match == SubnetMatch::automatic) return {};
  return cat("unmatched subnet of IPPool ", pool.name, ": the device of ", nic.interface, " has ",
             others.empty() ? "no address" : go_list(others), ", not one of ", pool.subnet.str());
}

}  // namespace

bool names_multus(const Setting& setting, const NicAsk& nic, const IpPool& pool) {
  const std::string& home = setting.options.install_namespace;
  for (const std::string& name : pool.multus_names) {
    const bool whole = name.find('/') != std::string::npos;
    if ((whole ? name : cat(home, '/', name)) == nic.multus) return true;
  }
  return false;
}

std::string filter_reason(const Setting& setting, const NicAsk& nic, const IpPool& pool,
                          int version) {
  if (std::string why = state_reason(pool, version); !why.empty()) return why;
  if (std::string why = node_reason(setting, pool); !why.empty()) return why;
  if (std::string why = namespace_reason(setting, pool); !why.empty()) return why;
  if (std::string why = pod_reason(setting, pool); !why.empty()) return why;
  if (!is_auto_pool(pool)) {
    if (std::string why = multus_reason(setting, nic, pool); !why.empty()) return why;
  }
  return subnet_reason(setting, nic, pool);
}

}  // namespace dibs::drivers::net
