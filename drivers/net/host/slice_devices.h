#pragma once
// A node's NICs as devices of ResourceSlices (driver dra.spidernet.io, pool named as the node).
//
// Which devices there are:
// - a NIC that carries links of many pods (macvlan, ipvlan, VLAN) is one device that may be
//   allocated many times (`allowMultipleAllocations`). Its `vfs` capacity only tells how many
//   functions the hardware has; none of it is consumed.
// - a virtual function is a device of its own. It must never be given twice, and a device that is
//   allocated once is just that, on servers without consumable capacity as well; the allocation
//   names the function, so nobody has to choose one later, and its own PCI address and RDMA device
//   can be selected by. Had the PF a capacity `vfs` to take one from, a request that forgets to
//   name the amount would get none, or one that only wants a macvlan would use one up.
// - a pool of RDMA shares is one device with a capacity `shares`, of which a request takes one.
//
// What claims of the classic generation hold (`Used`, model/grant.h) is not offered: functions are
// left out, shares are fewer. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/pool.h"
#include "drivers/net/model/grant.h"
#include "drivers/net/model/multus_config.h"
#include "drivers/net/model/node_state.h"

namespace dibs::drivers::net {

struct SliceOptions {
  /// Of whose SpiderMultusConfigs `cniConfigs` has the names.
  std::string install_namespace = "kube-system";
  /// Virtual links that are offered beside VLANs, bonds and masters of configs; patterns.
  std::vector<std::string> include_virtual = {};
  /// Devices are bound only when their addresses are assigned. Needs a server that knows binding
  /// conditions.
  bool binding_conditions = false;
};

inline constexpr std::string_view kAddressesAssigned = "ipam.spidernet.io/AddressesAssigned";
inline constexpr std::string_view kAddressesRefused = "ipam.spidernet.io/AddressesRefused";

/// `taken`: what classic claims hold of this node.
std::vector<driver::Device> slice_devices(const NodeState& state,
                                          const std::vector<MultusConfig>& configs,
                                          const Used& taken = {}, const SliceOptions& options = {});

/// A DNS label for any interface: itself where it is one.
std::string device_name(std::string_view interface);
/// "vf-0000-81-00-2", and back.
std::string vf_device_name(std::string_view pci_address);
std::optional<std::string> vf_of_device(std::string_view device);
/// "rdma-spidernet-io-hca".
std::string share_device_name(std::string_view resource_name);

}  // namespace dibs::drivers::net
