#include <algorithm>
#include <cstring>
#include <map>

#include "base/strings.h"
#include "drivers/nvidia/nvml/loaded.h"

namespace dibs::drivers::nvidia::nvml {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kGiB = 1024 * kMiB;

// Indices of profiles whose names say more than their size.
constexpr unsigned kOneSliceRev1 = 0x07;
constexpr unsigned kTwoSlicesRev1 = 0x08;
constexpr unsigned kFirstGraphics = 0x0a;
constexpr unsigned kLastGraphics = 0x0c;
constexpr unsigned kOneSliceNoMedia = 0x0d;
constexpr unsigned kTwoSlicesNoMedia = 0x0e;
constexpr unsigned kOneSliceAllMedia = 0x0f;
constexpr unsigned kTwoSlicesAllMedia = 0x10;
constexpr unsigned kThreeSlicesGraphics = 0x11;

bool is(abi::Return code, Code which) { return code == static_cast<int>(which); }
/// What NVML says of a handle whose instance somebody destroyed since.
bool destroyed(abi::Return code) {
  return is(code, Code::invalid_argument) || is(code, Code::not_found);
}
/// What NVML says of a profile that this GPU does not have.
bool absent(abi::Return code) {
  return is(code, Code::not_supported) || is(code, Code::invalid_argument);
}

std::string_view suffix(unsigned index) {
  switch (index) {
    case kOneSliceRev1:
    case kTwoSlicesRev1:
      return "+me";
    case kOneSliceNoMedia:
    case kTwoSlicesNoMedia:
      return "-me";
    case kOneSliceAllMedia:
    case kTwoSlicesAllMedia:
      return "+me.all";
    default:
      break;
  }
  const bool graphics =
      (index >= kFirstGraphics && index <= kLastGraphics) || index == kThreeSlicesGraphics;
  return graphics ? "+gfx" : "";
}

MigProfile profile_from(const abi::GpuInstanceProfile& info, unsigned index) {
  MigProfile profile;
  profile.id = info.id;
  profile.index = index;
  profile.slices = info.slices;
  profile.instances = info.instances;
  profile.multiprocessors = info.multiprocessors;
  profile.copy_engines = info.copy_engines;
  profile.decoders = info.decoders;
  profile.encoders = info.encoders;
  profile.jpeg = info.jpeg;
  profile.ofa = info.ofa;
  profile.memory_bytes = info.memory_mb * kMiB;
  return profile;
}

/// "1g.18gb" out of "MIG 1g.18gb"; "" where the library does not know names (before R510).
std::string name_told(const Loaded& nvml, abi::Device device, unsigned index) {
  if (nvml.nvmlDeviceGetGpuInstanceProfileInfoV == nullptr) return {};
  abi::GpuInstanceProfileV2 info = {};
  info.version = abi::version_of<abi::GpuInstanceProfileV2>(2);
  if (nvml.nvmlDeviceGetGpuInstanceProfileInfoV(device, index, &info) != 0) return {};
  std::string_view name(info.name, strnlen(info.name, sizeof info.name));
  if (name.starts_with("MIG ")) name.remove_prefix(4);
  return std::string(name);
}

Result<std::vector<Placement>> placements_of(const Loaded& nvml, abi::Device device, unsigned id,
                                             const std::string& doing) {
  unsigned count = 0;
  const auto ask = nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2;
  const abi::Return counted = ask == nullptr ? static_cast<int>(Code::function_not_found)
                                             : ask(device, id, nullptr, &count);
  // One profile without places must not hide the others.
  if (absent(counted)) return std::vector<Placement>();
  DIBS_NVML_CHECK(counted, doing);
  std::vector<abi::Placement> told(count);
  if (count > 0) DIBS_NVML_CHECK(ask(device, id, told.data(), &count), doing);
  told.resize(std::min<std::size_t>(count, told.size()));
  std::vector<Placement> placements;
  for (const abi::Placement& placement : told) {
    placements.push_back({placement.start, placement.size});
  }
  std::sort(placements.begin(), placements.end(),
            [](const Placement& a, const Placement& b) { return a.start < b.start; });
  return placements;
}

struct GpuInstance {
  abi::GpuInstance handle = nullptr;
  abi::GpuInstanceInfo info = {};
};

Result<std::vector<GpuInstance>> gpu_instances(const Loaded& nvml, abi::Device device,
                                               const std::string& doing) {
  std::map<unsigned, GpuInstance> found;
  for (unsigned index = 0; index < abi::kGpuInstanceProfiles; ++index) {
    abi::GpuInstanceProfile profile = {};
    const abi::Return code = nvml.nvmlDeviceGetGpuInstanceProfileInfo(device, index, &profile);
    if (absent(code)) continue;
    DIBS_NVML_CHECK(code, doing);
    std::vector<abi::GpuInstance> handles(std::max(1U, profile.instances));
    auto count = static_cast<unsigned>(handles.size());
    const abi::Return listed =
        nvml.nvmlDeviceGetGpuInstances(device, profile.id, handles.data(), &count);
    // Of every profile where MIG is off; of a single one it must not hide the others.
    if (absent(listed)) continue;
    DIBS_NVML_CHECK(listed, doing);
    handles.resize(std::min<std::size_t>(count, handles.size()));
    for (const abi::GpuInstance handle : handles) {
      GpuInstance instance{handle, {}};
      const abi::Return told = nvml.nvmlGpuInstanceGetInfo(handle, &instance.info);
      if (destroyed(told)) continue;
      DIBS_NVML_CHECK(told, doing);
      found.emplace(instance.info.id, instance);
    }
  }
  std::vector<GpuInstance> instances;
  for (const auto& [id, instance] : found) instances.push_back(instance);
  std::stable_sort(instances.begin(), instances.end(),
                   [](const GpuInstance& a, const GpuInstance& b) {
                     return a.info.placement.start < b.info.placement.start;
                   });
  return instances;
}

struct ComputeInstance {
  abi::ComputeInstance handle = nullptr;
  /// The MIG device, by what NVIDIA's own programs take it for; some drivers give the GPU.
  abi::Device device = nullptr;
};

Result<std::map<unsigned, ComputeInstance>> compute_instances(const Loaded& nvml,
                                                              abi::GpuInstance instance,
                                                              const std::string& doing) {
  std::map<unsigned, ComputeInstance> found;
  for (unsigned index = 0; index < abi::kComputeInstanceProfiles; ++index) {
    abi::ComputeInstanceProfile profile = {};
    const abi::Return code =
        nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, index, 0, &profile);
    if (absent(code)) continue;
    DIBS_NVML_CHECK(code, doing);
    std::vector<abi::ComputeInstance> handles(std::max(1U, profile.instances));
    auto count = static_cast<unsigned>(handles.size());
    const abi::Return listed =
        nvml.nvmlGpuInstanceGetComputeInstances(instance, profile.id, handles.data(), &count);
    if (absent(listed)) continue;
    DIBS_NVML_CHECK(listed, doing);
    handles.resize(std::min<std::size_t>(count, handles.size()));
    for (const abi::ComputeInstance handle : handles) {
      abi::ComputeInstanceInfo info = {};
      const abi::Return told = nvml.nvmlComputeInstanceGetInfo_v2 == nullptr
                                   ? static_cast<int>(Code::function_not_found)
                                   : nvml.nvmlComputeInstanceGetInfo_v2(handle, &info);
      if (destroyed(told)) continue;
      DIBS_NVML_CHECK(told, doing);
      found.emplace(info.id, ComputeInstance{handle, info.device});
    }
  }
  return found;
}

/// Of the MIG device; "" for another one.
std::string mig_uuid(const Loaded& nvml, abi::Device device) {
  char uuid[abi::kUuidSize] = {};
  if (device == nullptr || nvml.nvmlDeviceGetUUID(device, uuid, sizeof uuid) != 0) return {};
  const std::string_view told = uuid;
  return told.starts_with("MIG-") ? std::string(told) : std::string();
}

/// The uuids of instances, by GPU instance and compute instance: one question for each index.
Result<std::map<std::pair<unsigned, unsigned>, std::string>> uuids_of(const Loaded& nvml,
                                                                      abi::Device device,
                                                                      const std::string& doing) {
  std::map<std::pair<unsigned, unsigned>, std::string> uuids;
  unsigned count = 0;
  DIBS_NVML_CHECK(nvml.nvmlDeviceGetMaxMigDeviceCount(device, &count), doing);
  for (unsigned index = 0; index < count; ++index) {
    abi::Device mig = nullptr;
    const abi::Return code = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index, &mig);
    // Indices have gaps.
    if (destroyed(code)) continue;
    DIBS_NVML_CHECK(code, doing);
    unsigned gpu_instance = 0;
    unsigned compute_instance = 0;
    char uuid[abi::kUuidSize] = {};
    abi::Return told = nvml.nvmlDeviceGetGpuInstanceId(mig, &gpu_instance);
    if (told == 0) told = nvml.nvmlDeviceGetComputeInstanceId(mig, &compute_instance);
    if (told == 0) told = nvml.nvmlDeviceGetUUID(mig, uuid, sizeof uuid);
    if (destroyed(told)) continue;
    DIBS_NVML_CHECK(told, doing);
    uuids[{gpu_instance, compute_instance}] = uuid;
  }
  return uuids;
}

/// The one compute instance that takes all slices of a GPU instance.
Result<> fill(const Loaded& nvml, abi::GpuInstance instance, unsigned slices,
              const std::string& doing) {
  for (unsigned index = 0; index < abi::kComputeInstanceProfiles; ++index) {
    abi::ComputeInstanceProfile profile = {};
    const abi::Return code =
        nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, index, 0, &profile);
    if (absent(code)) continue;
    DIBS_NVML_CHECK(code, doing);
    if (profile.slices != slices) continue;
    abi::ComputeInstance made = nullptr;
    DIBS_NVML_CHECK(nvml.nvmlGpuInstanceCreateComputeInstance(instance, profile.id, &made), doing);
    return success();
  }
  return failure(static_cast<int>(Code::not_supported),
                 cat(doing, ": no profile of a compute instance has ", slices, " slices"));
}

/// Compute instances, then the GPU instance.
Result<> take_apart(const Loaded& nvml, abi::GpuInstance instance, const std::string& doing) {
  DIBS_TRY(const auto inside, compute_instances(nvml, instance, doing));
  for (const auto& [id, compute] : inside) {
    DIBS_NVML_CHECK(nvml.nvmlComputeInstanceDestroy(compute.handle), doing);
  }
  DIBS_NVML_CHECK(nvml.nvmlGpuInstanceDestroy(instance), doing);
  return success();
}

/// The second half of making an instance.
Result<MigInstance> finish(const Loaded& nvml, const std::string& uuid, abi::GpuInstance instance,
                           unsigned slices, const std::string& doing) {
  abi::GpuInstanceInfo info = {};
  DIBS_NVML_CHECK(nvml.nvmlGpuInstanceGetInfo(instance, &info), doing);
  DIBS_CHECK(fill(nvml, instance, slices, doing));
  DIBS_TRY(const auto all, read_mig_instances(nvml, uuid));
  for (const MigInstance& made : all) {
    if (made.gpu_instance == info.id && !made.uuid.empty()) return made;
  }
  return failure(static_cast<int>(Code::not_found), cat(doing, ": made, but not listed"));
}

Result<MigProfile> profile_of(const Loaded& nvml, abi::Device device, unsigned id,
                              const std::string& uuid) {
  for (unsigned index = 0; index < abi::kGpuInstanceProfiles; ++index) {
    abi::GpuInstanceProfile info = {};
    if (nvml.nvmlDeviceGetGpuInstanceProfileInfo(device, index, &info) != 0) continue;
    if (info.id == id) return profile_from(info, index);
  }
  return failure(static_cast<int>(Code::not_found), cat("find MIG profile ", id, " of GPU ", uuid));
}

}  // namespace

std::string mig_profile_name(const MigProfile& profile, std::uint64_t gpu_memory) {
  // Eighths of the memory, rounded up, since an instance has a little less than its share; so
  // NVIDIA's own tools name it.
  const double share =
      gpu_memory == 0 ? 0
                      : static_cast<double>(profile.memory_bytes) / static_cast<double>(gpu_memory);
  const auto eighths = static_cast<std::uint64_t>(share * 8 + 0.999999);
  const std::uint64_t total = (gpu_memory + kGiB - 1) / kGiB;
  return cat(profile.slices, "g.", (total * eighths + 4) / 8, "gb", suffix(profile.index));
}

Result<std::vector<MigProfile>> read_mig_profiles(const Loaded& nvml, const std::string& uuid) {
  const std::string doing = cat("list the MIG profiles of GPU ", uuid);
  DIBS_TRY(const abi::Device device, find_gpu(nvml, uuid));
  abi::Memory memory = {};
  nvml.nvmlDeviceGetMemoryInfo(device, &memory);
  std::vector<MigProfile> profiles;
  for (unsigned index = 0; index < abi::kGpuInstanceProfiles; ++index) {
    abi::GpuInstanceProfile info = {};
    const abi::Return code = nvml.nvmlDeviceGetGpuInstanceProfileInfo(device, index, &info);
    if (absent(code)) continue;
    DIBS_NVML_CHECK(code, doing);
    MigProfile profile = profile_from(info, index);
    profile.name = name_told(nvml, device, index);
    if (profile.name.empty()) profile.name = mig_profile_name(profile, memory.total);
    DIBS_TRY(profile.placements, placements_of(nvml, device, profile.id, doing));
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

Result<std::vector<MigInstance>> read_mig_instances(const Loaded& nvml, const std::string& uuid) {
  const std::string doing = cat("list the MIG instances of GPU ", uuid);
  DIBS_TRY(const abi::Device device, find_gpu(nvml, uuid));
  std::vector<MigInstance> instances;
  bool unnamed = false;
  DIBS_TRY(const auto held, gpu_instances(nvml, device, doing));
  for (const GpuInstance& instance : held) {
    MigInstance made;
    made.gpu_instance = instance.info.id;
    made.profile = instance.info.profile_id;
    made.placement = {instance.info.placement.start, instance.info.placement.size};
    DIBS_TRY(const auto inside, compute_instances(nvml, instance.handle, doing));
    if (inside.empty()) instances.push_back(made);
    for (const auto& [id, compute] : inside) {
      made.compute_instance = id;
      made.uuid = mig_uuid(nvml, compute.device);
      unnamed = unnamed || made.uuid.empty();
      instances.push_back(made);
    }
  }
  if (!unnamed) return instances;
  DIBS_TRY(const auto uuids, uuids_of(nvml, device, doing));
  for (MigInstance& instance : instances) {
    const auto named = uuids.find({instance.gpu_instance, instance.compute_instance});
    if (instance.uuid.empty() && named != uuids.end()) instance.uuid = named->second;
  }
  return instances;
}

Result<MigInstance> make_mig(const Loaded& nvml, const std::string& uuid, unsigned profile_id,
                             Placement placement) {
  const std::string doing = cat("make a MIG instance of profile ", profile_id, " at ",
                                placement.start, ":", placement.size, " of GPU ", uuid);
  DIBS_TRY(const abi::Device device, find_gpu(nvml, uuid));
  DIBS_TRY(const MigProfile profile, profile_of(nvml, device, profile_id, uuid));
  const abi::Placement wanted = {placement.start, placement.size};
  abi::GpuInstance instance = nullptr;
  DIBS_NVML_CHECK(
      nvml.nvmlDeviceCreateGpuInstanceWithPlacement == nullptr
          ? static_cast<int>(Code::function_not_found)
          : nvml.nvmlDeviceCreateGpuInstanceWithPlacement(device, profile_id, &wanted, &instance),
      doing);

  Result<MigInstance> made = finish(nvml, uuid, instance, profile.slices, doing);
  if (made.ok()) return made;
  if (const auto undone = take_apart(nvml, instance, doing); !undone.ok()) {
    return made.error().within(cat("what was begun is left (", undone.error().message(), ")"));
  }
  return made;
}

Result<> destroy_mig(const Loaded& nvml, const std::string& uuid, unsigned gpu_instance) {
  const std::string doing = cat("destroy MIG instance ", gpu_instance, " of GPU ", uuid);
  DIBS_TRY(const abi::Device device, find_gpu(nvml, uuid));
  abi::GpuInstance instance = nullptr;
  const abi::Return code = nvml.nvmlDeviceGetGpuInstanceById(device, gpu_instance, &instance);
  // Not supported: MIG is off, so there are none.
  if (is(code, Code::not_found) || is(code, Code::not_supported)) return success();
  DIBS_NVML_CHECK(code, doing);
  return take_apart(nvml, instance, doing);
}

Result<> set_mig_mode(const Loaded& nvml, const std::string& uuid, bool enabled) {
  const std::string doing = cat("turn MIG ", enabled ? "on" : "off", " on GPU ", uuid);
  DIBS_TRY(const abi::Device device, find_gpu(nvml, uuid));
  const unsigned wanted = enabled ? abi::kMigEnable : abi::kMigDisable;
  unsigned current = 0;
  unsigned pending = 0;
  DIBS_NVML_CHECK(nvml.nvmlDeviceGetMigMode(device, &current, &pending), doing);
  if (current == wanted && pending == wanted) return success();
  abi::Return activation = 0;
  DIBS_NVML_CHECK(nvml.nvmlDeviceSetMigMode(device, wanted, &activation), doing);
  DIBS_NVML_CHECK(activation, doing);
  return success();
}

}  // namespace dibs::drivers::nvidia::nvml
