#pragma once
// What a claim holds of a node, and the text that keeps it: the handle of a classic claim.
//
// There is no other record: what is used of a node is what the handles of allocated claims say.
// Pure.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::drivers::net {

/// What a NIC gets of the node.
struct Given {
  std::string interface = {};
  std::string multus = {};  // "kube-system/macvlan-conf"
  std::string cni_type = {};
  std::string master = {};  // "eth0", "bond0.100"; "" where the config needs none
  std::string vf = {};      // PCI address
  std::string rdma_device = {};
  std::string resource_name = {};  // the pool of `vf`, or of the RDMA share

  friend bool operator==(const Given&, const Given&) = default;
};

/// All that a claim gets of a node; what its handle says (one JSON text).
struct Grant {
  std::string node = {};
  std::vector<Given> nics = {};
  /// By pool, those of NICs included: PCI addresses of functions; of shares one entry each.
  std::map<std::string, std::vector<std::string>> resources = {};
  bool rdma_acc = false;

  friend bool operator==(const Grant&, const Grant&) = default;
};

/// {"version": 1, "node": …, "nics": […], "resources": {…}, "rdmaAcc": …}
std::string handle_of(const Grant& grant);
/// Errors (invalid) name the field; a handle of another version is none.
Result<Grant> parse_handle(std::string_view handle);

/// What others hold of one node.
struct Used {
  std::set<std::string> vfs = {};                             // PCI addresses
  std::map<std::string, std::int64_t> shares = {};            // by pool
  std::map<std::string, std::set<std::string>> masters = {};  // interface -> cniTypes

  void add(const Grant& grant);
};

}  // namespace dibs::drivers::net
