#pragma once
// The drivers that are part of dibs and can run in the process of a node: a folder here and a line
// in the table of drivers.cc each.

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "driver/plugin.h"

namespace dibs::drivers {

/// Where a driver runs.
struct Place {
  std::string node_name = {};
  /// The root folder of the node's agent.
  std::string folder = {};
  /// The node's agent publishes what the driver has, as in release 1.30.
  bool named_resources = false;
};

struct DriverKind {
  std::string_view name;    // in --drivers
  std::string_view driver;  // in the API
  std::string_view description;
  /// For this node. Does not wait for the API server. Errors name the folder.
  Result<driver::Running> (*start)(driver::Environment environment, const Place& place);
};

std::span<const DriverKind> driver_kinds();

}  // namespace dibs::drivers
