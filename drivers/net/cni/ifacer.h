#pragma once
// The configuration of the plugin `ifacer`.

#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/net/cni/netlink.h"
#include "json/value.h"

namespace dibs::drivers::net {

struct IfacerConfig {
  std::vector<std::string> interfaces = {};
  int vlan_id = 0;             // 0: no VLAN device
  std::string bond_name = {};  // "": one interface, no bond
  BondOptions bond = {};
};

/// Errors name the field.
Result<IfacerConfig> read_ifacer_config(const json::Value& config);

}  // namespace dibs::drivers::net
