#pragma once
// The driver's half for the whole cluster: it installs the driver's kinds, makes what follows from
// its objects, keeps the pools, allocates classic claims, and assigns addresses to pods whose
// claims have devices.
//
// Several instances may run: one of them works, all of it, while it leads.

#include "base/result.h"
#include "driver/controller.h"
#include "driver/plugin.h"
#include "drivers/net/ipam/collector.h"
#include "drivers/net/ipam/ipam.h"

namespace dibs::drivers::net {

struct ControlHalfOptions {
  IpamOptions ipam = {};
  CollectorOptions collector = {};
  /// Allocate classic claims that wait for no pod, too.
  bool allow_immediate = false;
  driver::ControllerOptions election = {};
};

/// Runs until what it returns is dropped. Does not wait for the API server. Errors name the option.
Result<driver::Running> start_control_half(driver::Environment environment,
                                           ControlHalfOptions options);

}  // namespace dibs::drivers::net
