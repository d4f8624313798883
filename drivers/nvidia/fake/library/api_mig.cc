#include <algorithm>

#include "base/strings.h"
#include "drivers/nvidia/fake/library/exports.h"

// MIG modes, GPU instances, and what MIG devices are.

namespace dibs::drivers::nvidia::fake {
namespace {

constexpr abi::Return kInsufficientSize = number(nvml::Code::insufficient_size);
constexpr unsigned kCapabilityGraphics = 2;  // NVML_GPU_INSTANCE_PROFILE_CAPS_GFX

abi::GpuInstance instance_handle(std::size_t gpu, const GpuInstance& instance) {
  return static_cast<abi::GpuInstance>(
      World::get().handle_of({Kind::gpu_instance, gpu, instance.serial, 0}));
}

/// What both versions and the plain form have alike.
template <typename Info>
void fill(Info& info, const Profile& profile) {
  info.id = profile.id;
  info.slices = profile.slices;
  info.instances = profile.instances;
  info.multiprocessors = profile.multiprocessors;
  info.copy_engines = profile.copy_engines;
  info.decoders = profile.decoders;
  info.encoders = profile.encoders;
  info.jpeg = profile.jpeg;
  info.ofa = profile.ofa;
  info.memory_mb = profile.memory >> 20U;
}

template <typename Info>
void fill_name(Info& info, const Profile& profile) {
  const std::string name = cat("MIG ", profile.name);
  std::memset(info.name, 0, sizeof info.name);
  std::memcpy(info.name, name.data(), std::min(name.size(), sizeof info.name - 1));
}

/// The profile of a function that is asked by index; what the GPU does not have is not supported,
/// what NVML does not know is no argument.
abi::Return look_up(const GpuView& view, unsigned index, const Profile*& profile) {
  if (index >= abi::kGpuInstanceProfiles) return kInvalid;
  if (!view.model().mig || (view.model().queries_need_mode && !view.state().mig)) {
    return kNotSupported;
  }
  profile = profile_by_index(view.model(), index);
  return profile == nullptr ? kNotSupported : 0;
}

abi::Return create(const GpuView& view, unsigned profile_id, const abi::Placement* wanted,
                   abi::GpuInstance* made) {
  if (made == nullptr) return kInvalid;
  if (!view.state().mig) return kNotSupported;
  const Profile* profile = profile_by_id(view.model(), profile_id);
  if (profile == nullptr) return kInvalid;
  GpuInstance instance;
  const abi::Return answer = view.files.change([&](State& state) -> abi::Return {
    std::vector<GpuInstance>& there = state.gpus[view.index].instances;
    if (!state.gpus[view.index].mig) return kNotSupported;
    const auto chosen = wanted != nullptr ? std::optional<abi::Placement>(*wanted)
                                          : choose_placement(view.model(), there, *profile);
    if (!chosen) return number(nvml::Code::insufficient_resources);
    const abi::Return fits = can_place(view.model(), there, *profile, *chosen);
    if (fits != 0) return fits;
    instance.id = gpu_instance_id(view.model(), *chosen);
    instance.profile = profile_id;
    instance.placement = *chosen;
    instance.serial = ++state.last_serial;
    there.push_back(instance);
    return 0;
  });
  if (answer == 0) *made = instance_handle(view.index, instance);
  return answer;
}

}  // namespace

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetMigMode(abi::Device device, unsigned* current,
                                                  unsigned* pending) {
  return on_gpu("nvmlDeviceGetMigMode", device, [&](const GpuView& view) -> abi::Return {
    if (!view.model().mig) return kNotSupported;
    const abi::Return first = give(current, view.state().mig);
    return first != 0 ? first : give(pending, view.state().mig_pending);
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceSetMigMode(abi::Device device, unsigned mode,
                                                  abi::Return* activation) {
  return on_gpu("nvmlDeviceSetMigMode", device, [&](const GpuView& view) -> abi::Return {
    if (mode > abi::kMigEnable || activation == nullptr) return kInvalid;
    if (!view.model().mig) return kNotSupported;
    *activation = 0;
    return view.files.change([&](State& state) {
      GpuState& gpu = state.gpus[view.index];
      // The mode is wished for in any case, and taken on where nothing is in the way.
      gpu.mig_pending = mode == abi::kMigEnable;
      if (gpu.mig_pending == gpu.mig) return 0;
      if (view.faults().busy || !gpu.instances.empty() || World::get().is_watched(view.index)) {
        *activation = kInUse;
      } else if (view.model().mode_needs_reset) {
        *activation = number(nvml::Code::reset_required);
      } else {
        gpu.mig = gpu.mig_pending;
      }
      return 0;
    });
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetGpuInstanceProfileInfo(abi::Device device, unsigned index,
                                                                 abi::GpuInstanceProfile* info) {
  return on_gpu("nvmlDeviceGetGpuInstanceProfileInfo", device, [&](const GpuView& view) {
    const Profile* profile = nullptr;
    const abi::Return found = info == nullptr ? kInvalid : look_up(view, index, profile);
    if (found != 0) return found;
    *info = {};
    fill(*info, *profile);
    return 0;
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetGpuInstanceProfileInfoV(abi::Device device,
                                                                  unsigned index,
                                                                  abi::GpuInstanceProfileV2* info) {
  return on_gpu("nvmlDeviceGetGpuInstanceProfileInfoV", device, [&](const GpuView& view) {
    const Profile* profile = nullptr;
    const abi::Return found = info == nullptr ? kInvalid : look_up(view, index, profile);
    if (found != 0) return found;
    if (info->version == abi::version_of<abi::GpuInstanceProfileV2>(2)) {
      *info = {};
      info->version = abi::version_of<abi::GpuInstanceProfileV2>(2);
      fill(*info, *profile);
      fill_name(*info, *profile);
      return 0;
    }
    if (info->version != abi::version_of<abi::GpuInstanceProfileV3>(3)) {
      return number(nvml::Code::argument_version_mismatch);
    }
    static_assert(sizeof(abi::GpuInstanceProfileV3) == sizeof(abi::GpuInstanceProfileV2));
    abi::GpuInstanceProfileV3 newer = {};
    newer.version = info->version;
    fill(newer, *profile);
    fill_name(newer, *profile);
    newer.capabilities = profile->name.ends_with("+gfx") ? kCapabilityGraphics : 0;
    std::memcpy(static_cast<void*>(info), &newer, sizeof newer);
    return 0;
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    abi::Device device, unsigned profile_id, abi::Placement* placements, unsigned* count) {
  return on_gpu("nvmlDeviceGetGpuInstancePossiblePlacements_v2", device,
                [&](const GpuView& view) -> abi::Return {
                  if (count == nullptr) return kInvalid;
                  if (!view.model().mig) return kNotSupported;
                  const Profile* profile = profile_by_id(view.model(), profile_id);
                  if (profile == nullptr) return kInvalid;
                  const auto all = static_cast<unsigned>(profile->placements.size());
                  if (placements != nullptr) {
                    if (*count < all) return kInsufficientSize;
                    std::copy(profile->placements.begin(), profile->placements.end(), placements);
                  }
                  *count = all;
                  return 0;
                });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetGpuInstanceRemainingCapacity(abi::Device device,
                                                                       unsigned profile_id,
                                                                       unsigned* count) {
  return on_gpu("nvmlDeviceGetGpuInstanceRemainingCapacity", device,
                [&](const GpuView& view) -> abi::Return {
                  if (!view.state().mig) return kNotSupported;
                  const Profile* profile = profile_by_id(view.model(), profile_id);
                  if (profile == nullptr) return kInvalid;
                  return give(count, remaining(view.model(), view.state().instances, *profile));
                });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceCreateGpuInstance(abi::Device device, unsigned profile_id,
                                                         abi::GpuInstance* made) {
  return on_gpu("nvmlDeviceCreateGpuInstance", device,
                [&](const GpuView& view) { return create(view, profile_id, nullptr, made); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceCreateGpuInstanceWithPlacement(
    abi::Device device, unsigned profile_id, const abi::Placement* placement,
    abi::GpuInstance* made) {
  return on_gpu("nvmlDeviceCreateGpuInstanceWithPlacement", device, [&](const GpuView& view) {
    return placement == nullptr ? kInvalid : create(view, profile_id, placement, made);
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetGpuInstances(abi::Device device, unsigned profile_id,
                                                       abi::GpuInstance* instances,
                                                       unsigned* count) {
  return on_gpu("nvmlDeviceGetGpuInstances", device, [&](const GpuView& view) -> abi::Return {
    if (count == nullptr || instances == nullptr) return kInvalid;
    if (!view.state().mig) return kNotSupported;
    if (profile_by_id(view.model(), profile_id) == nullptr) return kInvalid;
    // The buffer has room for as many as the profile allows: there is no more to check.
    *count = 0;
    for (const GpuInstance& instance : view.state().instances) {
      if (instance.profile != profile_id) continue;
      instances[(*count)++] = instance_handle(view.index, instance);
    }
    return 0;
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetGpuInstanceById(abi::Device device, unsigned id,
                                                          abi::GpuInstance* instance) {
  return on_gpu("nvmlDeviceGetGpuInstanceById", device, [&](const GpuView& view) -> abi::Return {
    if (instance == nullptr) return kInvalid;
    if (!view.state().mig) return kNotSupported;
    for (const GpuInstance& there : view.state().instances) {
      if (there.id == id) return give(instance, instance_handle(view.index, there));
    }
    return kNotFound;
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlGpuInstanceGetInfo(abi::GpuInstance instance,
                                                    abi::GpuInstanceInfo* info) {
  return on_instance("nvmlGpuInstanceGetInfo", instance,
                     [&](const GpuView& view, const GpuInstance& there, const Profile&) {
                       return give(info, abi::GpuInstanceInfo{gpu_handle(view.index), there.id,
                                                              there.profile, there.placement});
                     });
}

DIBS_FAKE_EXPORT abi::Return nvmlGpuInstanceDestroy(abi::GpuInstance instance) {
  return on_instance("nvmlGpuInstanceDestroy", instance,
                     [&](const GpuView& view, const GpuInstance& there, const Profile&) {
                       return view.files.change([&](State& state) -> abi::Return {
                         std::vector<GpuInstance>& all = state.gpus[view.index].instances;
                         const auto found =
                             std::find_if(all.begin(), all.end(), [&](const GpuInstance& other) {
                               return other.serial == there.serial;
                             });
                         if (found == all.end()) return kInvalid;
                         if (!found->compute.empty()) return kInUse;
                         all.erase(found);
                         return 0;
                       });
                     });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetMaxMigDeviceCount(abi::Device device, unsigned* count) {
  return on_gpu("nvmlDeviceGetMaxMigDeviceCount", device,
                [&](const GpuView& view) { return give(count, view.model().slices); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetMigDeviceHandleByIndex(abi::Device device, unsigned index,
                                                                 abi::Device* mig) {
  return on_gpu(
      "nvmlDeviceGetMigDeviceHandleByIndex", device, [&](const GpuView& view) -> abi::Return {
        if (mig == nullptr || index >= std::max(1U, view.model().slices)) return kInvalid;
        if (!view.model().mig) return kNotSupported;
        std::vector<const GpuInstance*> instances;
        for (const GpuInstance& instance : view.state().instances) instances.push_back(&instance);
        std::sort(instances.begin(), instances.end(),
                  [](const GpuInstance* a, const GpuInstance* b) { return a->id < b->id; });
        for (const GpuInstance* instance : instances) {
          for (const ComputeInstance& compute : instance->compute) {
            if (index-- > 0) continue;
            const Handle what = {Kind::mig, view.index, instance->serial, compute.serial};
            return give(mig, static_cast<abi::Device>(World::get().handle_of(what)));
          }
        }
        return kNotFound;
      });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceIsMigDeviceHandle(abi::Device device, unsigned* is_mig) {
  return on_device(
      "nvmlDeviceIsMigDeviceHandle", device, [&](const GpuView&) { return give(is_mig, false); },
      [&](const GpuView&, const MigView&) { return give(is_mig, true); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(abi::Device mig,
                                                                          abi::Device* device) {
  return on_device(
      "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", mig, [](const GpuView&) { return kInvalid; },
      [&](const GpuView& view, const MigView&) { return give(device, gpu_handle(view.index)); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetGpuInstanceId(abi::Device device, unsigned* id) {
  return on_device(
      "nvmlDeviceGetGpuInstanceId", device, [](const GpuView&) { return kNotSupported; },
      [&](const GpuView&, const MigView& mig) { return give(id, mig.instance.id); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetComputeInstanceId(abi::Device device, unsigned* id) {
  return on_device(
      "nvmlDeviceGetComputeInstanceId", device, [](const GpuView&) { return kNotSupported; },
      [&](const GpuView&, const MigView& mig) { return give(id, mig.compute.id); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetAttributes_v2(abi::Device device,
                                                        abi::DeviceAttributes* attributes) {
  return on_device(
      "nvmlDeviceGetAttributes_v2", device, [](const GpuView&) { return kNotSupported; },
      [&](const GpuView& view, const MigView& mig) -> abi::Return {
        const Profile& profile = mig.profile;
        unsigned multiprocessors = profile.multiprocessors;
        for (const ComputeProfile& compute : compute_profiles(view.model(), profile)) {
          if (compute.id == mig.compute.profile) multiprocessors = compute.multiprocessors;
        }
        return give(attributes, abi::DeviceAttributes{
                                    multiprocessors, profile.copy_engines, profile.decoders,
                                    profile.encoders, profile.jpeg, profile.ofa, profile.slices,
                                    mig.compute.placement.size, profile.memory >> 20U});
      });
}

}  // namespace dibs::drivers::nvidia::fake
