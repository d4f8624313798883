#pragma once
// The drivers that are part of dibs and can run in the process of a node: a folder here and a line
// in the table of drivers.cc each.

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "driver/plugin.h"

namespace dibs::drivers {

struct DriverKind {
  std::string_view name;    // in --drivers
  std::string_view driver;  // in the API
  std::string_view description;
  /// For this node, below the root folder of its agent. Does not wait for the API server. Errors
  /// name the folder.
  Result<driver::Running> (*start)(driver::Environment environment, const std::string& node_name,
                                   const std::string& folder);
};

std::span<const DriverKind> driver_kinds();

}  // namespace dibs::drivers
