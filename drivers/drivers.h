#pragma once
// The drivers that are part of dibs and can run in the process of a node: a folder here and a line
// in the table of drivers.cc each.

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "driver/plugin.h"
#include "json/value.h"

namespace dibs::drivers {

struct GpuDriverOptions;
namespace net {
struct NodeHalfOptions;
struct ControlHalfOptions;
}  // namespace net
namespace nvidia {
struct NvidiaDriverOptions;
}  // namespace nvidia

/// What somebody wants otherwise, laid over what a driver's place says. Empty: nothing.
struct Tuning {
  std::function<void(GpuDriverOptions&)> gpu = {};
  std::function<void(net::NodeHalfOptions&)> net_node = {};
  std::function<void(net::ControlHalfOptions&)> net_control = {};
  std::function<void(nvidia::NvidiaDriverOptions&)> nvidia = {};
};

/// Where a driver runs.
struct Place {
  std::string node_name = {};
  /// The root folder of the node's agent.
  std::string folder = {};
  /// The node's agent publishes what the driver has, as in release 1.30.
  bool named_resources = false;
  /// The node's agent knows drivers by a number: release 1.31 and before.
  bool old_agent = false;
  /// The server has the classic model alone: release 1.30 and before.
  bool only_classic = false;
  /// Null: as it comes.
  const Tuning* tuning = nullptr;
};

/// Of a driver that has something to do beside its nodes, once in a cluster.
struct ClusterHalf {
  /// Does not wait for the API server. `elect`: others may run beside it, in processes of their
  /// own; one of them works.
  Result<driver::Running> (*start)(driver::Environment environment, bool elect,
                                   const Tuning& tuning);
  /// `rules` of the ClusterRoles of its account, and of the account of the half on nodes, which has
  /// the rights of any driver besides.
  json::Value (*rules)();
  json::Value (*node_rules)();
};

struct DriverKind {
  std::string_view name;    // in --drivers
  std::string_view driver;  // in the API
  std::string_view description;
  /// For this node. Does not wait for the API server. Errors name the folder.
  Result<driver::Running> (*start)(driver::Environment environment, const Place& place);
  /// Such a driver can allocate claims of the classic model. Null: it has none.
  const ClusterHalf* cluster = nullptr;
  /// Offers what the machine has: of its nodes only one can have the driver.
  bool once_on_machine = false;
};

std::span<const DriverKind> driver_kinds();

}  // namespace dibs::drivers
