#pragma once
// Which functions and devices of nodes make up a resource pool, in the keys of the two device
// plugins that this replaces: a file may have the `resourceList` of sriov-network-device-plugin,
// the `configList` of k8s-rdma-shared-dev-plugin, or both; JSON or YAML.
//
//   resourceList:
//   - resourceName: sriov_a
//     selectors: {vendors: ["15b3"], pfNames: ["ens1f0np0#0-3"]}
//   configList:
//   - resourceName: hca_shared_devices
//     rdmaHcaMax: 500
//     selectors: {ifNames: [ens1f0np0]}
//   masterNIC: {includeInterfaces: ["eth*"]}
//
// Between selectors all must hold, in one list any. The first pool that matches a function owns it.
// A physical function without virtual ones may be a member as a whole, but not one that the host
// has addresses on: giving it away would cut the node off. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "drivers/net/model/node_state.h"

namespace dibs::drivers::net {

inline constexpr std::string_view kDefaultResourcePrefix = "spidernet.io";
inline constexpr std::int64_t kDefaultRdmaShares = 500;
inline constexpr std::int64_t kDefaultMasterCount = 10'000;

/// "ens1f0np0#0-3,6": no functions named means all.
struct PfName {
  std::string name = {};
  std::vector<std::pair<int, int>> functions = {};
};

/// An empty list allows everything.
struct DeviceSelectors {
  std::vector<std::string> vendors = {};
  std::vector<std::string> devices = {};  // deviceIDs of the RDMA plugin
  std::vector<std::string> drivers = {};
  std::vector<std::string> pci_addresses = {};
  std::vector<PfName> pf_names = {};
  std::vector<std::string> root_devices = {};  // PCI addresses of physical functions
  std::vector<std::string> link_types = {};    // "ether", "infiniband"
  std::vector<std::string> if_names = {};      // of the RDMA plugin
  bool is_rdma = false;
};

struct PoolRule {
  PoolKind kind = PoolKind::sriov_vf;
  std::string resource_name = {};  // with its prefix; of masterNIC the prefix alone
  /// Any of them.
  std::vector<DeviceSelectors> selectors = {};
  std::int64_t count = 0;                 // shares, or pods per master
  std::vector<std::string> include = {};  // masterNIC: patterns of interfaces
  std::vector<std::string> exclude = {};
};

struct PoolsConfig {
  std::vector<PoolRule> rules = {};
  /// How often hardware is looked at: every 60 seconds, or `periodicUpdateInterval` where that is
  /// less.
  Duration rescan = std::chrono::seconds(60);
};

/// Errors (invalid) name the key: "resourceList[0].selectors.vendor: unknown key".
Result<PoolsConfig> parse_pools_config(std::string_view text);

/// Shell patterns.
bool matches_any(const std::vector<std::string>& patterns, const std::string& name);

/// The pools of a node with these interfaces.
std::vector<ResourcePool> pools_of(const PoolsConfig& config,
                                   const std::vector<Interface>& interfaces);

}  // namespace dibs::drivers::net
