#pragma once
// The driver's half for the whole cluster: it allocates classic claims, assigns addresses to pods
// whose claims have devices, and keeps pools and what is made from the driver's objects.

#include "base/result.h"
#include "driver/controller.h"
#include "driver/plugin.h"

namespace dibs::drivers::net {

struct ControlHalfOptions {
  /// Allocate classic claims that wait for no pod, too.
  bool allow_immediate = false;
  driver::ControllerOptions election = {};
};

/// Runs until what it returns is dropped. Does not wait for the API server. Errors name the option.
Result<driver::Running> start_control_half(driver::Environment environment,
                                           ControlHalfOptions options);

}  // namespace dibs::drivers::net
