#pragma once
// SpiderMultusConfig: how a pod's NIC is made, in terms of a node's interfaces; and the
// NetworkAttachmentDefinition that CNI reads instead.
//
// Reading one judges it as a whole, in the words of the original's admission webhook: the server's
// own check (the CRD) knows only what a schema and its rules can say, and may be an older one.
// Pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::drivers::net {

struct Bond {
  std::string name = {};
  int mode = 0;
  std::string options = {};
};

struct MultusConfig {
  std::string name = {};
  std::string name_space = {};
  /// Of the NetworkAttachmentDefinition made from it, in the same namespace.
  std::string definition = {};
  std::string cni_version = "0.3.1";
  /// macvlan, ipvlan, vlan, sriov, ib-sriov, ipoib, ovs or custom.
  std::string cni_type = "custom";

  // macvlan, ipvlan, vlan; ipoib has one master and nothing else of these.
  std::vector<std::string> masters = {};
  int vlan_id = 0;  // of sriov and ovs as well
  std::optional<Bond> bond = {};
  int mtu = 0;  // 0: the kernel's choice; of sriov as well

  /// A device pool of the node: "spidernet.io/sriov_a". Of sriov and ib-sriov.
  std::string resource_name = {};
  /// A pool of RDMA shares, of macvlan, ipvlan and vlan; "" with `enable_rdma`: the only one that
  /// has the master.
  std::string rdma_resource_name = {};
  bool enable_rdma = false;
  /// The RDMA device goes into the pod's namespace, which the node must be set to. sriov, ib-sriov.
  bool rdma_isolation = false;

  int min_tx_rate = 0;
  int max_tx_rate = 0;
  std::string pkey = {};
  std::string link_state = "enable";
  bool ib_kubernetes = false;
  std::string bridge = {};
  std::string device_id = {};
  json::Value trunk = {};  // of ovs, as given

  std::vector<std::string> ipv4_pools = {};
  std::vector<std::string> ipv6_pools = {};
  /// Only pools of a subnet that the device on the host has, too. Of sriov.
  bool match_master_subnet = false;
  bool disable_ipam = false;

  bool enable_coordinator = true;
  json::Value coordinator = {};         // as given; null: none
  std::vector<std::string> chain = {};  // JSON of further plugins
  std::string custom_cni = {};          // JSON of the whole configuration

  /// "namespace/name".
  std::string key() const { return name_space + "/" + name; }
};

/// Errors (invalid) are those of the original: "spec.cniType: Forbidden: the cniType macvlan only
/// supports macvlan, please remove other CNI configs".
Result<MultusConfig> parse_multus_config(const json::Value& object);

/// The host's device that carries the pod's traffic: "eth0", "bond0", "bond0.100"; "" where the
/// config names none (a virtual function, a bridge).
std::string traffic_device(const MultusConfig& config);

/// What is made from it; `object` is what the config was read from. Keys of the configuration stand
/// in the original's order.
json::Value net_attach_def_of(const MultusConfig& config, const json::Value& object);

/// A NetworkAttachmentDefinition that no SpiderMultusConfig made counts as a custom one.
Result<MultusConfig> config_of_definition(const json::Value& definition);

inline constexpr std::string_view kDefinitionName = "multus.spidernet.io/cr-name";
inline constexpr std::string_view kCniVersion = "multus.spidernet.io/cni-version";

}  // namespace dibs::drivers::net
