#pragma once
// What changes on the fake machine and outlives processes, as it would on a real GPU: MIG modes,
// instances, compute modes, and how often a fault has struck. One JSON file beside the machine's.
//
// Readers take no lock, since the file is replaced whole; who changes it holds the lock from before
// reading to after writing, so two processes never make the same change.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/nvidia/fake/machine.h"
#include "drivers/nvidia/nvml/abi.h"

namespace dibs::drivers::nvidia::fake {

struct ComputeInstance {
  unsigned id = 0;
  /// NVML_COMPUTE_INSTANCE_PROFILE_…, index and id alike.
  unsigned profile = 0;
  /// Compute slices of the GPU instance.
  nvml::abi::Placement placement = {};
  /// Never given out twice: tells an instance from a later one with the same id.
  std::uint64_t serial = 0;
};

struct GpuInstance {
  unsigned id = 0;
  unsigned profile = 0;  // Profile::id
  nvml::abi::Placement placement = {};
  std::uint64_t serial = 0;
  std::vector<ComputeInstance> compute = {};
};

struct GpuState {
  bool mig = false;
  bool mig_pending = false;
  int compute_mode = 0;
  /// By id.
  std::vector<GpuInstance> instances = {};
};

struct State {
  std::uint64_t last_serial = 0;
  /// The folder that was laid out and is to follow (root.h); "": none.
  std::string root = {};
  /// One for each GPU of the machine, in its order.
  std::vector<GpuState> gpus = {};
  /// How often a fault met a call, by the fault's text.
  std::map<std::string, std::uint64_t> met = {};
};

/// As the machine is before anything was changed.
State fresh_state(const Machine& machine);
/// What the file says of the machine's GPUs; others are left out.
Result<State> parse_state(const Machine& machine, std::string_view text, std::string_view name);
std::string write_state(const Machine& machine, const State& state);

/// "MIG-…", which a real GPU gives the same instance each time, too.
std::string mig_uuid(const Gpu& gpu, const GpuInstance& instance, const ComputeInstance& compute);

}  // namespace dibs::drivers::nvidia::fake
