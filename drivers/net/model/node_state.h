#pragma once
// SpiderNodeState: what a node has of the network, as its driver reports it.
//
// One object per node, named as the node. Numbers that could not be found out are absent (a veth
// has no speed, a virtual link no NUMA node); nothing here is made up. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::drivers::net {

struct VirtualFunction {
  int index = 0;
  std::string pci_address = {};
  std::string netdev = {};  // "": it is in some pod, or bound to a driver without netdevs
  std::string rdma_device = {};
  std::string vendor = {};
  std::string device = {};
  std::string driver = {};
  /// It has a netdev on the host: nobody uses it.
  bool available = false;
  /// Its netdev is in another network namespace. Neither: its driver makes none (vfio).
  bool in_use = false;

  friend bool operator==(const VirtualFunction&, const VirtualFunction&) = default;
};

struct Sriov {
  int total_vfs = 0;
  int num_vfs = 0;
  std::vector<VirtualFunction> vfs = {};  // by index

  friend bool operator==(const Sriov&, const Sriov&) = default;
};

struct Rdma {
  std::string device = {};                     // "mlx5_0"
  std::vector<std::string> char_devices = {};  // "/dev/infiniband/uverbs0"

  friend bool operator==(const Rdma&, const Rdma&) = default;
};

struct Interface {
  std::string name = {};
  int index = 0;
  std::string kind = {};  // "device", "vlan", "bond", "veth", …
  std::string mac = {};
  int mtu = 0;
  bool admin_up = false;
  std::string oper_state = {};  // "up", "down", "unknown", …
  std::optional<std::int64_t> speed_mbps = {};
  std::string link_layer = {};              // "ethernet", "infiniband", or ""
  std::vector<std::string> addresses = {};  // "172.18.0.11/16"; none of link-local or multicast
  std::vector<std::string> subnets = {};    // "172.18.0.0/16"; each once
  std::string parent = {};                  // of a VLAN, macvlan, …
  int vlan_id = 0;
  std::vector<std::string> bond_members = {};
  /// It hangs on no hardware.
  bool is_virtual = false;
  std::string pci_address = {};
  std::string pcie_root = {};  // "pci0000:80"
  std::string vendor = {};     // "15b3"
  std::string device = {};
  std::string driver = {};
  std::optional<int> numa_node = {};
  std::optional<Sriov> sriov = {};  // of a physical function
  std::optional<Rdma> rdma = {};
  /// PCI addresses of GPUs that are near: same PCIe root and NUMA node.
  std::vector<std::string> gpus = {};

  friend bool operator==(const Interface&, const Interface&) = default;
};

enum class PoolKind : std::uint8_t { sriov_vf, rdma_shared, master_nic };
std::string_view pool_kind_name(PoolKind kind);  // "sriovVF", "rdmaShared", "masterNIC"

/// What a SpiderMultusConfig's resourceName or rdmaResourceName refers to on this node.
struct ResourcePool {
  std::string resource_name = {};  // "spidernet.io/sriov_a"
  PoolKind kind = PoolKind::sriov_vf;
  std::int64_t capacity = 0;
  /// PCI addresses of members that are exclusive (sriovVF), names of interfaces otherwise.
  std::vector<std::string> devices = {};

  friend bool operator==(const ResourcePool&, const ResourcePool&) = default;
};

struct NodeState {
  std::string node = {};
  std::vector<Interface> interfaces = {};  // by name
  std::vector<std::string> ovs_bridges = {};
  std::string rdma_netns_mode = {};  // "shared", "exclusive", or "" where the kernel does not say
  std::vector<ResourcePool> pools = {};  // in the order of the configuration
  /// Why the facts are not those of now; "": they are.
  std::string problem = {};
  /// When the facts were looked at last; not a fact itself.
  Time observed = {};

  const Interface* find(std::string_view interface) const;
  const ResourcePool* pool(std::string_view resource_name) const;
  /// By PCI address, with the function it belongs to.
  struct FoundVf {
    const Interface* pf = nullptr;
    const VirtualFunction* vf = nullptr;
  };
  std::optional<FoundVf> vf(std::string_view pci_address) const;
};

/// The same facts; when they were seen does not count.
bool same_facts(const NodeState& a, const NodeState& b);

/// Errors (invalid) name the field.
Result<NodeState> parse_node_state(const json::Value& object);

/// The whole object, with the status: counts for the columns of `kubectl get` stand beside the
/// lists. `node_uid` "": no ownerReference.
json::Value to_object(const NodeState& state, std::string_view node_uid);

}  // namespace dibs::drivers::net
