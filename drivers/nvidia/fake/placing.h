#pragma once
// Where instances fit, and what they are called. Pure functions over a model and what is there.
//
// A GPU has memory slices (8 on A100, H100 and H200) and compute slices (7). A GPU instance takes
// the memory slices of one of its profile's placements, which nobody else may touch, and as many
// compute slices as its profile says, of any of those left. A compute instance takes compute slices
// of its GPU instance.

#include <optional>
#include <vector>

#include "drivers/nvidia/fake/machine.h"
#include "drivers/nvidia/fake/state.h"

namespace dibs::drivers::nvidia::fake {

const Profile* profile_by_id(const Model& model, unsigned id);
const Profile* profile_by_index(const Model& model, unsigned index);

/// What NVML answers: 0, INVALID_ARGUMENT where the profile has no such placement,
/// INSUFFICIENT_RESOURCES where somebody has a part of it.
nvml::abi::Return can_place(const Model& model, const std::vector<GpuInstance>& there,
                            const Profile& profile, nvml::abi::Placement placement);
/// The last one that fits, as the driver chooses; nothing where none does.
std::optional<nvml::abi::Placement> choose_placement(const Model& model,
                                                     const std::vector<GpuInstance>& there,
                                                     const Profile& profile);
/// How many more fit.
unsigned remaining(const Model& model, std::vector<GpuInstance> there, const Profile& profile);
/// As the driver numbers them: halves of the GPU, halves of those and so on, each from 0 on: the
/// whole is 0, halves 1 and 2, quarters 3 to 6, single slices 7 to 14.
unsigned gpu_instance_id(const Model& model, nvml::abi::Placement placement);

struct ComputeProfile {
  /// NVML_COMPUTE_INSTANCE_PROFILE_…, index and id alike.
  unsigned id = 0;
  unsigned slices = 0;
  unsigned instances = 0;
  unsigned multiprocessors = 0;
};

/// Of a GPU instance of this profile.
std::vector<ComputeProfile> compute_profiles(const Model& model, const Profile& profile);
std::vector<nvml::abi::Placement> compute_placements(const Profile& profile,
                                                     const ComputeProfile& compute);
nvml::abi::Return can_place_compute(const GpuInstance& instance, const Profile& profile,
                                    const ComputeProfile& compute, nvml::abi::Placement placement);
/// The first one that fits.
std::optional<nvml::abi::Placement> choose_compute_placement(const GpuInstance& instance,
                                                             const Profile& profile,
                                                             const ComputeProfile& compute);
/// The least that no compute instance has.
unsigned compute_instance_id(const GpuInstance& instance);

/// "1g.18gb", or "1c.2g.35gb" where it is not all of its GPU instance.
std::string instance_name(const Profile& profile, const ComputeInstance& compute);

}  // namespace dibs::drivers::nvidia::fake
