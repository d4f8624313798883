#include <algorithm>

#include "drivers/nvidia/fake/library/exports.h"

// Compute instances of GPU instances.

namespace dibs::drivers::nvidia::fake {
namespace {

abi::ComputeInstance compute_handle(std::size_t gpu, std::uint64_t instance,
                                    std::uint64_t compute) {
  return static_cast<abi::ComputeInstance>(
      World::get().handle_of({Kind::compute_instance, gpu, instance, compute}));
}

/// A GPU instance at one moment, with its profile.
struct InstanceView {
  GpuView gpu;
  const GpuInstance& instance;
  const Profile& profile;

  std::optional<ComputeProfile> compute_profile(unsigned id) const {
    for (const ComputeProfile& compute : compute_profiles(gpu.model(), profile)) {
      if (compute.id == id) return compute;
    }
    return std::nullopt;
  }
};

template <typename Work>
abi::Return on_view(std::string_view name, abi::GpuInstance handle, Work work) {
  return on_instance(name, handle,
                     [&](const GpuView& gpu, const GpuInstance& instance, const Profile& profile) {
                       return work(InstanceView{gpu, instance, profile});
                     });
}

/// In a state that is being changed.
GpuInstance* find_in(State& state, std::size_t gpu, std::uint64_t serial) {
  for (GpuInstance& instance : state.gpus[gpu].instances) {
    if (instance.serial == serial) return &instance;
  }
  return nullptr;
}

abi::Return create(const InstanceView& view, unsigned profile_id, const abi::Placement* wanted,
                   abi::ComputeInstance* made) {
  if (made == nullptr) return kInvalid;
  const auto profile = view.compute_profile(profile_id);
  if (!profile) return kNotSupported;
  ComputeInstance compute;
  const abi::Return answer = view.gpu.files.change([&](State& state) -> abi::Return {
    GpuInstance* instance = find_in(state, view.gpu.index, view.instance.serial);
    if (instance == nullptr) return kInvalid;
    const auto chosen = wanted != nullptr
                            ? std::optional<abi::Placement>(*wanted)
                            : choose_compute_placement(*instance, view.profile, *profile);
    if (!chosen) return number(nvml::Code::insufficient_resources);
    const abi::Return fits = can_place_compute(*instance, view.profile, *profile, *chosen);
    if (fits != 0) return fits;
    compute.id = compute_instance_id(*instance);
    compute.profile = profile_id;
    compute.placement = *chosen;
    compute.serial = ++state.last_serial;
    instance->compute.push_back(compute);
    return 0;
  });
  if (answer == 0) *made = compute_handle(view.gpu.index, view.instance.serial, compute.serial);
  return answer;
}

}  // namespace

DIBS_FAKE_EXPORT abi::Return nvmlGpuInstanceGetComputeInstanceProfileInfo(
    abi::GpuInstance instance, unsigned profile_index, unsigned engines,
    abi::ComputeInstanceProfile* info) {
  return on_view(
      "nvmlGpuInstanceGetComputeInstanceProfileInfo", instance,
      [&](const InstanceView& view) -> abi::Return {
        if (profile_index >= abi::kComputeInstanceProfiles || engines != 0) {
          return kInvalid;
        }
        const auto compute = view.compute_profile(profile_index);
        if (!compute) return kNotSupported;
        const Profile& profile = view.profile;
        return give(info, abi::ComputeInstanceProfile{compute->id, compute->slices,
                                                      compute->instances, compute->multiprocessors,
                                                      profile.copy_engines, profile.decoders,
                                                      profile.encoders, profile.jpeg, profile.ofa});
      });
}

DIBS_FAKE_EXPORT abi::Return nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    abi::GpuInstance instance, unsigned profile_id, abi::Placement* placements, unsigned* count) {
  return on_view("nvmlGpuInstanceGetComputeInstancePossiblePlacements", instance,
                 [&](const InstanceView& view) -> abi::Return {
                   const auto compute = view.compute_profile(profile_id);
                   if (!compute) return kNotSupported;
                   if (count == nullptr) return kInvalid;
                   const auto all = compute_placements(view.profile, *compute);
                   if (placements != nullptr) {
                     if (*count < all.size()) return number(nvml::Code::insufficient_size);
                     std::copy(all.begin(), all.end(), placements);
                   }
                   return give(count, all.size());
                 });
}

DIBS_FAKE_EXPORT abi::Return nvmlGpuInstanceCreateComputeInstance(abi::GpuInstance instance,
                                                                  unsigned profile_id,
                                                                  abi::ComputeInstance* made) {
  return on_view("nvmlGpuInstanceCreateComputeInstance", instance,
                 [&](const InstanceView& view) { return create(view, profile_id, nullptr, made); });
}

DIBS_FAKE_EXPORT abi::Return nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    abi::GpuInstance instance, unsigned profile_id, const abi::Placement* placement,
    abi::ComputeInstance* made) {
  return on_view(
      "nvmlGpuInstanceCreateComputeInstanceWithPlacement", instance, [&](const InstanceView& view) {
        return placement == nullptr ? kInvalid : create(view, profile_id, placement, made);
      });
}

DIBS_FAKE_EXPORT abi::Return nvmlGpuInstanceGetComputeInstances(abi::GpuInstance instance,
                                                                unsigned profile_id,
                                                                abi::ComputeInstance* found,
                                                                unsigned* count) {
  return on_view(
      "nvmlGpuInstanceGetComputeInstances", instance, [&](const InstanceView& view) -> abi::Return {
        if (found == nullptr || count == nullptr) return kInvalid;
        if (!view.compute_profile(profile_id)) return kNotSupported;
        *count = 0;
        for (const ComputeInstance& compute : view.instance.compute) {
          if (compute.profile != profile_id) continue;
          found[(*count)++] = compute_handle(view.gpu.index, view.instance.serial, compute.serial);
        }
        return 0;
      });
}

DIBS_FAKE_EXPORT abi::Return nvmlGpuInstanceGetComputeInstanceById(abi::GpuInstance instance,
                                                                   unsigned id,
                                                                   abi::ComputeInstance* found) {
  return on_view(
      "nvmlGpuInstanceGetComputeInstanceById", instance,
      [&](const InstanceView& view) -> abi::Return {
        for (const ComputeInstance& compute : view.instance.compute) {
          if (compute.id != id) continue;
          return give(found, compute_handle(view.gpu.index, view.instance.serial, compute.serial));
        }
        return kNotFound;
      });
}

DIBS_FAKE_EXPORT abi::Return nvmlComputeInstanceGetInfo_v2(abi::ComputeInstance handle,
                                                           abi::ComputeInstanceInfo* info) {
  const auto what = World::get().what_is(handle, Kind::compute_instance);
  if (!what) return not_a_handle();
  return call("nvmlComputeInstanceGetInfo_v2", what->gpu, [&](MachineFiles& files) -> abi::Return {
    const Snapshot at = files.look();
    const GpuInstance* instance = find_instance(at.state->gpus[what->gpu], *what);
    const ComputeInstance* compute = instance == nullptr ? nullptr : find_compute(*instance, *what);
    if (compute == nullptr) return kInvalid;
    auto* const parent = static_cast<abi::GpuInstance>(
        World::get().handle_of({Kind::gpu_instance, what->gpu, instance->serial, 0}));
    auto* const mig = static_cast<abi::Device>(
        World::get().handle_of({Kind::mig, what->gpu, instance->serial, compute->serial}));
    return give(info, abi::ComputeInstanceInfo{mig, parent, compute->id, compute->profile,
                                               compute->placement});
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlComputeInstanceDestroy(abi::ComputeInstance handle) {
  const auto what = World::get().what_is(handle, Kind::compute_instance);
  if (!what) return not_a_handle();
  return call("nvmlComputeInstanceDestroy", what->gpu, [&](MachineFiles& files) {
    const auto faults = files.look().faults;
    return files.change([&](State& state) -> abi::Return {
      GpuInstance* instance = find_in(state, what->gpu, what->gpu_instance);
      const ComputeInstance* compute =
          instance == nullptr ? nullptr : find_compute(*instance, *what);
      if (compute == nullptr) return kInvalid;
      const std::string uuid = mig_uuid(files.machine().gpus[what->gpu], *instance, *compute);
      if (faults->busy_instances.contains(uuid)) return kInUse;
      std::erase_if(instance->compute, [&](const ComputeInstance& other) {
        return other.serial == what->compute_instance;
      });
      return 0;
    });
  });
}

}  // namespace dibs::drivers::nvidia::fake
