#pragma once
// The parts of GPUs as devices of ResourceSlices, with attributes and capacities as NVIDIA's own
// DRA driver publishes them.
//
// A GPU whose MIG instances this driver makes is a set of counters, "gpu-<minor>-counter-set": each
// part takes from it what it would have, and the memory slices that it lies on one by one, so that
// the scheduler never gives out two parts that overlap. What others have on the GPU is not in the
// set. Nothing here does I/O.

#include <string>
#include <vector>

#include "driver/pool.h"
#include "drivers/nvidia/health.h"
#include "drivers/nvidia/inventory.h"
#include "drivers/nvidia/parts.h"

namespace dibs::drivers::nvidia {

inline constexpr std::string_view kDriverName = "gpu.nvidia.com";
/// Of the pool's first slice: how much of each device was used when it was looked at last.
///   {"gpu-0": {"memoryUsed": 12884901888, "memory": 150754820096, "percent": 37}}
/// `percent` is missing where NVML does not know it, as of MIG instances.
inline constexpr std::string_view kUsageAnnotation = "devices.dibs.dev/usage";

struct KnownGpu {
  Gpu gpu = {};
  std::vector<Part> parts = {};
};

struct SlicesInput {
  std::string pool = {};
  std::string driver_version = {};
  std::string cuda_version = {};
  std::vector<KnownGpu> gpus = {};
};

/// `health` says which of them are ill.
driver::Pool pool_of(const SlicesInput& input, const Health& health);

/// As a device of the slice, without counters and taints: what the metadata of a prepared one
/// shows.
driver::Device device_of(const SlicesInput& input, const KnownGpu& gpu, const Part& part);

/// "13.0" as the three numbers of a version; "0.0.0" where there are none.
std::string three_numbers(std::string_view version);

}  // namespace dibs::drivers::nvidia
