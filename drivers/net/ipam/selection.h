#pragma once
// Which pools an interface of a pod may take its addresses from, and in which order. Pure.
//
// The first rule that applies names the pools, all lower ones are ignored:
//   1. annotations of the pod that name subnets (the pools made for its application)
//   2. annotations of the pod that name pools; then the pools that its claim names
//   3. annotations of its namespace
//   4. the configuration of the interface
//   5. pools with spec.default
//   6. pools whose multusName names the interface's configuration
// Then pools that do not fit the pod, its node or the interface are dropped, and what is left is
// ranked: the more particular pool first. Each is tried in turn by the caller.

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/ipam/applications.h"
#include "drivers/net/model/ip_pool.h"
#include "drivers/net/model/pod_networks.h"
#include "json/value.h"

namespace dibs::drivers::net {

enum class SubnetMatch : std::uint8_t {
  automatic,  // a device that has addresses of the family must have one in the pool's subnet
  strict,     // it must have one
  off,
};
/// "auto", "strict", "off".
Result<SubnetMatch> parse_subnet_match(std::string_view text);

struct SelectionOptions {
  bool ipv4 = true;
  bool ipv6 = true;
  bool subnets = true;              // rule 1
  bool multus_name_selects = true;  // rule 6
  SubnetMatch subnet_match = SubnetMatch::automatic;
  std::string install_namespace = "kube-system";
  std::string cluster_network = {};  // "ns/name" of eth0 where the pod does not say
};

/// What is known when a pool is chosen. Pools that were refused stand in `refused` with the reason,
/// which errors print.
using Pools = std::map<std::string, std::shared_ptr<const IpPool>, std::less<>>;
struct Setting {
  const Pools* pools = nullptr;
  std::map<std::string, std::string, std::less<>> refused = {};
  json::Value pod = {};
  json::Value name_space = {};  // the object; null is one without labels and annotations
  std::string node = {};
  json::Value node_labels = {};
  Application application = {};  // of the pod: what auto-created pools are compared with
  SelectionOptions options = {};
};

/// What an interface brings along.
struct NicAsk {
  std::string interface = {};
  std::string multus = {};                                    // "ns/name"
  std::vector<std::string> ipv4_pools = {}, ipv6_pools = {};  // of the configuration: rule 4
  std::vector<Subnet> host_subnets = {};  // of the device that carries it on this node
  bool host_known = false;           // false: nothing is known of the device, subnets do not count
  bool match_master_subnet = false;  // of the configuration: as SubnetMatch::strict
  std::vector<std::string> only_pools = {};  // spec.ippools of the claim
  bool clean_gateway = false;
};

/// Pools to try in turn. An empty list: no address of that family is asked for.
struct Candidates {
  std::vector<std::string> v4, v6;
  bool clean_gateway = false;  // the pod's annotation, or the interface's
};

/// `index` is that of the interface among the pod's. Errors name the interface, the pools and why
/// each was dropped.
Result<Candidates> select_pools(const Setting& setting, const NicAsk& nic, std::size_t index);

/// Why the pool cannot serve the interface; "" where it can.
std::string filter_reason(const Setting& setting, const NicAsk& nic, const IpPool& pool,
                          int version);
/// Does spec.multusName of the pool name the configuration of the interface?
bool names_multus(const Setting& setting, const NicAsk& nic, const IpPool& pool);
/// Stable: pools that are as particular stay in their order.
void rank_pools(std::vector<std::shared_ptr<const IpPool>>& pools);

/// Shell patterns: *, ? and [...] as path.Match of Go knows them; an error where the pattern is
/// none, or longer than a name can be.
Result<bool> matches_pattern(std::string_view pattern, std::string_view name);

}  // namespace dibs::drivers::net
