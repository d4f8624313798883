#pragma once
// Drivers in processes of their own, beside any agent that speaks the kubelet's plugin protocol:
// `dibs driver gpu` is the example driver, `dibs driver net` a half of the network driver.

#include <string>

#include "driver/process.h"
#include "drivers/gpu/gpu_driver.h"
#include "drivers/net/control/control_half.h"
#include "drivers/net/node/node_half.h"

namespace dibs::cli {

struct DriverFlags {
  driver::ProcessOptions process = {};
  drivers::GpuDriverOptions driver = {};
  /// For those who start upstream's driver with them: nothing here is limited by rate.
  double api_qps = 5;
  int api_burst = 10;
};

struct NetDriverFlags {
  driver::ProcessOptions process = {};
  /// The half for the whole cluster, not that of a node.
  bool controller = false;
  /// Of both.
  drivers::net::IpamOptions ipam = {};
  std::string subnet_match = "auto";
  drivers::net::NodeHalfOptions node = {};
  drivers::net::ControlHalfOptions control = {};
};

/// Both return the exit status.
int run_gpu_driver(DriverFlags flags);
int run_net_driver(NetDriverFlags flags);

}  // namespace dibs::cli
