#pragma once
// Drivers in processes of their own, beside any agent that speaks the kubelet's plugin protocol:
// `dibs driver gpu` is the example driver, `dibs driver net` a half of the network driver, `dibs
// driver nvidia` that of NVIDIA's GPUs.

#include <string>

#include "driver/process.h"
#include "drivers/gpu/gpu_driver.h"
#include "drivers/net/control/control_half.h"
#include "drivers/net/node/node_half.h"
#include "drivers/nvidia/nvidia_driver.h"

namespace dibs::cli {

struct DriverFlags {
  driver::ProcessOptions process = {};
  drivers::GpuDriverOptions driver = {};
  /// For those who start upstream's driver with them: nothing here is limited by rate. 0: not
  /// given.
  double api_qps = 0;
  int api_burst = 0;
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

struct NvidiaDriverFlags {
  driver::ProcessOptions process = {};
  drivers::nvidia::NvidiaDriverOptions driver = {};
};

/// What can be wrong with values that do not depend on where the driver runs. Errors name the flag.
Result<> check_values(const drivers::GpuDriverOptions& options);
Result<> check_values(const drivers::net::NodeHalfOptions& options);
Result<> check_values(const drivers::nvidia::NvidiaDriverOptions& options);

/// What the options name stays the same whatever folder the process is in.
void make_absolute(drivers::nvidia::NvidiaDriverOptions& options);

/// All return the exit status.
int run_gpu_driver(DriverFlags flags);
int run_net_driver(NetDriverFlags flags);
int run_nvidia_driver(NvidiaDriverFlags flags);

}  // namespace dibs::cli
