#pragma once
// The driver's half on every node: it tells what interfaces there are, prepares claims of both
// models, and answers the CNI plugins that run there.
//
//   netresources.spidernet.io   claims of the classic model, with a SpiderClaimParameter
//   dra.spidernet.io            devices in ResourceSlices: the interfaces of the node

#include <string>
#include <vector>

#include "base/result.h"
#include "driver/plugin.h"
#include "drivers/net/host/facts.h"
#include "drivers/net/ipam/ipam.h"

namespace dibs::drivers::net {

struct NodeHalfOptions {
  std::string node_name = {};
  std::string registry_dir = "/var/lib/kubelet/plugins_registry";
  std::string plugins_dir = "/var/lib/kubelet/plugins";
  std::string cdi_root = "/var/run/cdi";
  std::string pod_uid = {};
  /// The library that containers get for `rdmaAcc`; "": there is none.
  std::string host_device_path = {};
  /// Where CNI plugins ask; "": nowhere.
  std::string ipam_socket = "/var/run/spidernet/spiderpool.sock";
  /// Where the node's agent looks for the devices of interfaces.
  std::string network_devices = "/var/lib/kubelet/network-devices";
  IpamOptions ipam = {};
  HostRoots roots = {};
  /// Links as `ip -j -d address show` prints them, in a file; "": those of the kernel.
  std::string recorded_links = {};
  /// A file that says which devices make up which resources (pools_config.h); "": there are none.
  std::string resource_pools = {};
  /// Patterns of interfaces that count although they look like those of pods, and of such that do
  /// not count.
  std::vector<std::string> include_interfaces = {};
  std::vector<std::string> exclude_interfaces = {};
  /// The server has claims of the classic model alone (up to release 1.30).
  bool only_classic = false;
};

/// `folder` is the root folder of a node's agent: all sockets and files are below it.
NodeHalfOptions options_for_node(std::string node_name, const std::string& folder);

/// Runs until what it returns is dropped; slices and prepared claims stay. Does not wait for the
/// API server. Errors name the folder or option.
Result<driver::Running> start_node_half(driver::Environment environment,
                                        const NodeHalfOptions& options);

}  // namespace dibs::drivers::net
