#pragma once
// Flags of the drivers that `dibs driver` runs.

#include "cli/command_line.h"
#include "cli/run_driver.h"

namespace dibs::cli {

Flags driver_flags(DriverFlags& flags);
Flags net_driver_flags(NetDriverFlags& flags);
Flags nvidia_driver_flags(NvidiaDriverFlags& flags);

}  // namespace dibs::cli
