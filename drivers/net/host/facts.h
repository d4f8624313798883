#pragma once
// What this node has: links (links.h), and what /sys and /dev say of the hardware behind
// them: SR-IOV functions, RDMA devices, GPUs that are near, NUMA nodes.
//
// Every path stands below a root that is given; symbolic links are followed inside of it and never
// lead out. A file that is missing, unreadable or malformed means "unknown": a scan fails only
// where the links cannot be read at all.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/net/host/links.h"
#include "drivers/net/host/pools_config.h"
#include "drivers/net/model/node_state.h"
#include "runtime/runtime.h"

namespace dibs::drivers::net {

struct HostRoots {
  std::string sysfs = "/sys";
  std::string dev = "/dev";
};

struct FactsOptions {
  std::string node_name = {};
  HostRoots roots = {};
  /// Patterns (`*`, `?`, `[...]`) of interfaces that count though their names are those of pods'
  /// plumbing: cni…, flannel…, veth…, docker…, br-…, virbr…, tun…, tap…, dibs-….
  std::vector<std::string> include_interfaces = {};
  std::vector<std::string> exclude_interfaces = {};
  PoolsConfig pools = {};
};

class HostFacts {
 public:
  HostFacts(std::unique_ptr<Links> links, runtime::Clock& clock, FactsOptions options);

  /// Everything anew. One owner calls one after the other.
  Result<NodeState> read();
  /// As Links::changed().
  bool changed();
  /// How often to look though nothing changed.
  Duration rescan() const { return options_.pools.rescan; }

 private:
  std::unique_ptr<Links> links_;
  runtime::Clock& clock_;
  FactsOptions options_;
};

/// Files below the dev root that give access to an RDMA device, "/dev/infiniband/uverbs0"; the
/// paths are those that a container is to see. `rdma_cm` is the last one, where it is there.
std::vector<std::string> rdma_char_devices(const HostRoots& roots, std::string_view rdma_device);

}  // namespace dibs::drivers::net
