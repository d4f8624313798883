#pragma once
// Which routes and rules let each interface of a pod answer by the way that the question came.
// Pure.
//
// Each interface has a table of its own, and a rule that leads there whatever has its address:
//
//     1000:  from 172.18.30.131 lookup 100        eth0
//     1000:  from 10.6.0.7      lookup 101        net1
//
// A table has the routes of its interface and those to the host, and a default route by its own
// gateway. The main table, for packets that have no address yet, has the one default route of the
// pod: by eth0, or by the interface that is asked for.

#include <string>
#include <string_view>
#include <vector>

#include "drivers/net/address/ip.h"
#include "drivers/net/cni/netlink.h"

namespace dibs::drivers::net {

inline constexpr int kFirstTable = 100;
inline constexpr int kRulePriority = 1000;

/// One interface of the pod. `gateways`: of its addresses, where known.
struct PodInterface {
  std::string name = {};
  int device = 0;
  std::vector<Ip> ips = {};
  std::vector<Ip> gateways = {};
};

/// eth0 has 100, net1 101, …; any other the first that no rule uses, or what it has already.
int table_of(const PodInterface& interface, const std::vector<KernelRule>& rules);

struct PodRouting {
  std::vector<KernelRoute> routes = {};  // to be set, in this order
  std::vector<KernelRule> rules = {};
};

/// The table of one interface. `present`: all routes of the namespace. `to_host`: the device by
/// which the host is reached; its routes are in every table, but for a default route.
PodRouting routing_of(const PodInterface& interface, int table, int to_host,
                      const std::vector<KernelRoute>& present);

/// Default routes of the main table by this interface.
std::vector<KernelRoute> default_routes(const PodInterface& interface);

/// What has to become of them, since plugins add one for each interface: the main table keeps those
/// by the interface that is `wanted` there, else those that were there before it.
struct DefaultChange {
  std::vector<KernelRoute> set = {};
  std::vector<KernelRoute> remove = {};
};
DefaultChange change_defaults(const PodInterface& interface, bool wanted,
                              const std::vector<KernelRoute>& present);

}  // namespace dibs::drivers::net
