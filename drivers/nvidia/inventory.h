#pragma once
// The GPUs of a machine, as NVML and sysfs tell them at one moment.
//
// Thread-safe as the library is that is asked. Blocks while it is.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/nvidia/nvml/library.h"
#include "runtime/files.h"

namespace dibs::drivers::nvidia {

struct Gpu {
  nvml::GpuInfo info = {};
  /// "pci0000:16"; "" where sysfs does not say.
  std::string pcie_root = {};
  /// Below 0: the machine has none, or does not say.
  int numa_node = -1;
  /// Of a GPU that knows MIG; in the order of their ids' placements as NVML gives them.
  std::vector<nvml::MigProfile> profiles = {};
  std::vector<nvml::MigInstance> instances = {};

  const nvml::MigProfile* profile(unsigned id) const;
};

/// Up to Ampere the mode changes only with a reset of the GPU, which is not ours to do.
bool can_switch_mig(const nvml::GpuInfo& gpu);

struct Inventory {
  std::string driver_version = {};
  std::string cuda_version = {};
  std::vector<Gpu> gpus = {};
  /// Those that cannot be read, and why.
  std::vector<nvml::UnreadGpu> unread = {};
};

/// A GPU that cannot be read, or is lost while it is asked, is told apart. Errors: NVML's, of calls
/// that are about no single GPU.
Result<Inventory> take_inventory(nvml::Library& library, runtime::Files& files,
                                 const std::string& sysfs_root = "/sys");

/// What NVML says of one of them.
Result<Gpu> look_at(nvml::Library& library, runtime::Files& files, const std::string& sysfs_root,
                    const std::string& uuid);

/// The GPU is not to be reached: it fell off the bus, or is not there any more.
bool is_gone(const Error& error);

}  // namespace dibs::drivers::nvidia
