#pragma once
// A node's NICs as devices of ResourceSlices (driver dra.spidernet.io, pool named as the node).
//
// Which devices there are (attribute `type`):
// - nic: a NIC that carries links of many pods (macvlan, ipvlan, VLAN) may be allocated many times
//   (`allowMultipleAllocations`). Its capacity `vfs` only tells how many functions the hardware
//   has, and none of it can be consumed: without a policy the first allocation would take all of
//   it. One that a pool gives away as a whole is exclusive.
// - vf: a virtual function is a device of its own. It must never be given twice, and a device that
//   is allocated once is just that, on servers without consumable capacity as well. The allocation
//   names the function, so nobody has to choose one later; its PCI address, pool and RDMA device
//   can be selected by. Were it one of the NIC's capacity, a request that does not say how many
//   would get none, or a macvlan would use one up.
// - rdmaShare: a pool of RDMA shares is one device with a capacity `shares`; a request takes one of
//   them unless it says more.
//
// Every device has every attribute of this driver, empty where there is nothing to say: a selector
// that asks for one that is absent fails, and with it the search for the whole pod. Attributes of
// the API's own domain (pciBusID, pcieRoot, numaNode) are absent where they are not known, as they
// must be. Texts longer than the API takes are cut after a whole item, and `…Truncated` says so.
//
// What claims of the classic generation hold (`Used`) is not offered: functions are left out,
// shares are fewer. Pure.

#include <optional>
#include <set>
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
  /// Functions that claims of this driver have on this node (PCI addresses): they stay offered
  /// while they are in pods. Others that are in pods are not offered.
  std::set<std::string> prepared = {};
};

inline constexpr std::string_view kAddressesAssigned = "ipam.spidernet.io/AddressesAssigned";
inline constexpr std::string_view kAddressesRefused = "ipam.spidernet.io/AddressesRefused";
inline constexpr std::string_view kSharesCapacity = "shares";

/// `taken`: what classic claims hold of this node.
std::vector<driver::Device> slice_devices(const NodeState& state,
                                          const std::vector<MultusConfig>& configs,
                                          const Used& taken = {}, const SliceOptions& options = {});

/// What a device of this node's pool is.
struct OfferedDevice {
  std::string interface = {};  // of a NIC; of a function the physical one
  std::string vf = {};         // PCI address of a function, or of a NIC that is given as a whole
  std::string resource_name = {};  // the pool that it belongs to
  bool is_share = false;
};
/// By the device's name; nothing where the node has no such device (any more).
std::optional<OfferedDevice> find_device(const NodeState& state, std::string_view device);

/// A DNS label for any interface: itself where it is one.
std::string device_name(std::string_view interface);
/// "vf-0000-81-00-2"
std::string vf_device_name(std::string_view pci_address);
/// "rdma-spidernet-io-hca"
std::string share_device_name(std::string_view resource_name);

}  // namespace dibs::drivers::net
