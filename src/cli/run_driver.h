#pragma once
// `dibs driver gpu`: the example driver in a process of its own, beside any agent that speaks the
// kubelet's plugin protocol.

#include <string>

#include "driver/process.h"
#include "drivers/gpu/gpu_driver.h"

namespace dibs::cli {

struct DriverFlags {
  driver::ProcessOptions process = {};
  drivers::GpuDriverOptions driver = {};
  /// For those who start upstream's driver with them: nothing here is limited by rate.
  double api_qps = 5;
  int api_burst = 10;
};

/// Returns the exit status.
int run_gpu_driver(DriverFlags flags);

}  // namespace dibs::cli
