#pragma once
// What the coordinator is told: its configuration, and what SpiderCoordinator `default` says where
// that is silent. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/cni/local_api.h"
#include "json/value.h"

namespace dibs::drivers::net {

enum class CoordinatorMode : std::uint8_t { automatic, underlay, overlay, disabled };

struct CoordinatorConfig {
  CoordinatorMode mode = CoordinatorMode::automatic;
  /// Reached through the host: pods and services of the cluster, and hijackCIDR.
  std::vector<Subnet> by_host = {};
  std::string mac_prefix = {};  // "0a:1b"; "": the interface keeps its address
  bool tune_routes = true;
  std::string default_route_nic = {};  // "": eth0 keeps the default route
  int host_table = 500;
  std::optional<int> host_rp_filter = 0;  // none: left as it is
  std::optional<int> pod_rp_filter = 0;
  int tx_queue = 0;  // 0: left as it is
  bool detect_conflict = false;
  bool detect_gateway = false;
  int veth_mtu = 0;  // 0: that of the interface
};

/// Errors name the field; a field that is not known is one, too.
Result<CoordinatorConfig> read_coordinator_config(const json::Value& config,
                                                  const CoordinatorFacts& facts);

/// "0a:1b" and the address: of IPv4 its four bytes, of IPv6 the last four.
std::string mac_with_prefix(std::string_view prefix, const Ip& ip);

/// The host's end of the pair whose other end is veth0 in that sandbox.
std::string host_veth_name(std::string_view container);

}  // namespace dibs::drivers::net
