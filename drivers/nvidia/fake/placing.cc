#include "drivers/nvidia/fake/placing.h"

#include <algorithm>

#include "base/strings.h"
#include "drivers/nvidia/nvml/library.h"

namespace dibs::drivers::nvidia::fake {
namespace {

namespace abi = nvml::abi;

constexpr auto kInvalidArgument = static_cast<abi::Return>(nvml::Code::invalid_argument);
constexpr auto kNoRoom = static_cast<abi::Return>(nvml::Code::insufficient_resources);

bool overlap(abi::Placement a, abi::Placement b) {
  return a.start < b.start + b.size && b.start < a.start + a.size;
}

bool contains(const std::vector<abi::Placement>& placements, abi::Placement wanted) {
  return std::any_of(placements.begin(), placements.end(), [&](abi::Placement placement) {
    return placement.start == wanted.start && placement.size == wanted.size;
  });
}

}  // namespace

const Profile* profile_by_id(const Model& model, unsigned id) {
  for (const Profile& profile : model.profiles) {
    if (profile.id == id) return &profile;
  }
  return nullptr;
}

const Profile* profile_by_index(const Model& model, unsigned index) {
  for (const Profile& profile : model.profiles) {
    if (profile.index == index) return &profile;
  }
  return nullptr;
}

abi::Return can_place(const Model& model, const std::vector<GpuInstance>& there,
                      const Profile& profile, abi::Placement placement) {
  if (!contains(profile.placements, placement)) return kInvalidArgument;
  unsigned slices = profile.slices;
  unsigned alike = 1;
  for (const GpuInstance& other : there) {
    if (overlap(other.placement, placement)) return kNoRoom;
    const Profile* theirs = profile_by_id(model, other.profile);
    if (theirs != nullptr) slices += theirs->slices;
    if (other.profile == profile.id) ++alike;
  }
  // The second: of a profile with engines that the GPU has only one of.
  return slices > model.slices || alike > profile.instances ? kNoRoom : 0;
}

std::optional<abi::Placement> choose_placement(const Model& model,
                                               const std::vector<GpuInstance>& there,
                                               const Profile& profile) {
  for (auto placement = profile.placements.rbegin(); placement != profile.placements.rend();
       ++placement) {
    if (can_place(model, there, profile, *placement) == 0) return *placement;
  }
  return std::nullopt;
}

unsigned remaining(const Model& model, std::vector<GpuInstance> there, const Profile& profile) {
  unsigned count = 0;
  while (const auto placement = choose_placement(model, there, profile)) {
    GpuInstance next;
    next.profile = profile.id;
    next.placement = *placement;
    there.push_back(std::move(next));
    ++count;
  }
  return count;
}

unsigned gpu_instance_id(const Model& model, abi::Placement placement) {
  unsigned parts = 1;
  // Parts of the whole, of the size that the placement takes.
  while (model.memory_slices / (parts * 2) >= placement.size) parts *= 2;
  const unsigned part = std::max(1U, model.memory_slices / parts);
  return parts - 1 + placement.start / part;
}

std::vector<ComputeProfile> compute_profiles(const Model& model, const Profile& profile) {
  // By NVML's constants: the slices of profile 0, 1, 2, ….
  constexpr unsigned kSlices[] = {1, 2, 3, 4, 7, 8, 6};
  const Profile* one = profile_by_index(model, 0);
  std::vector<ComputeProfile> profiles;
  for (unsigned id = 0; id < std::size(kSlices); ++id) {
    const unsigned slices = kSlices[id];
    if (slices > profile.slices) continue;
    const unsigned part = one != nullptr ? slices * one->multiprocessors
                                         : profile.multiprocessors * slices / profile.slices;
    profiles.push_back({id, slices, profile.slices / slices,
                        slices == profile.slices ? profile.multiprocessors
                                                 : std::min(part, profile.multiprocessors)});
  }
  return profiles;
}

std::vector<abi::Placement> compute_placements(const Profile& profile,
                                               const ComputeProfile& compute) {
  std::vector<abi::Placement> placements;
  // Three slices begin at 0 and 4, as four do.
  const unsigned step = compute.slices == 3 ? 4 : compute.slices;
  for (unsigned start = 0; start + compute.slices <= profile.slices; start += step) {
    placements.push_back({start, compute.slices});
  }
  return placements;
}

abi::Return can_place_compute(const GpuInstance& instance, const Profile& profile,
                              const ComputeProfile& compute, abi::Placement placement) {
  if (!contains(compute_placements(profile, compute), placement)) return kInvalidArgument;
  for (const ComputeInstance& other : instance.compute) {
    if (overlap(other.placement, placement)) return kNoRoom;
  }
  return 0;
}

std::optional<abi::Placement> choose_compute_placement(const GpuInstance& instance,
                                                       const Profile& profile,
                                                       const ComputeProfile& compute) {
  for (const abi::Placement placement : compute_placements(profile, compute)) {
    if (can_place_compute(instance, profile, compute, placement) == 0) return placement;
  }
  return std::nullopt;
}

unsigned compute_instance_id(const GpuInstance& instance) {
  unsigned id = 0;
  const auto taken = [&] {
    return std::any_of(instance.compute.begin(), instance.compute.end(),
                       [&](const ComputeInstance& other) { return other.id == id; });
  };
  while (taken()) ++id;
  return id;
}

std::string instance_name(const Profile& profile, const ComputeInstance& compute) {
  if (compute.placement.size == profile.slices) return profile.name;
  return cat(compute.placement.size, "c.", profile.name);
}

}  // namespace dibs::drivers::nvidia::fake
