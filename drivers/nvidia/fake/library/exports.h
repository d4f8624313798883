#pragma once
// The functions that the shared library offers, under NVML's names, and what they have in common.
// Nothing else of the library is to be seen from outside.

#include <cstring>
#include <string>

#include "drivers/nvidia/fake/library/world.h"
#include "drivers/nvidia/fake/placing.h"
#include "drivers/nvidia/nvml/abi.h"
#include "drivers/nvidia/nvml/library.h"

namespace dibs::drivers::nvidia::fake {

#define DIBS_FAKE_EXPORT extern "C" __attribute__((visibility("default")))

// Declared by the very table that the Library looks its functions up by: a definition with other
// arguments does not compile.
#define DIBS_FAKE_DECLARE(required, name, arguments) DIBS_FAKE_EXPORT abi::Return name arguments;
DIBS_NVML_FUNCTIONS(DIBS_FAKE_DECLARE)
#undef DIBS_FAKE_DECLARE

// What dibs does not use, but other users of NVML do.
DIBS_FAKE_EXPORT abi::Return nvmlInit();
DIBS_FAKE_EXPORT abi::Return nvmlInitWithFlags(unsigned flags);
DIBS_FAKE_EXPORT const char* nvmlErrorString(abi::Return code);
DIBS_FAKE_EXPORT abi::Return nvmlSystemGetNVMLVersion(char* version, unsigned length);
DIBS_FAKE_EXPORT abi::Return nvmlSystemGetCudaDriverVersion(int* version);
DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetHandleByPciBusId_v2(const char* address,
                                                              abi::Device* device);
DIBS_FAKE_EXPORT abi::Return nvmlDeviceIsMigDeviceHandle(abi::Device device, unsigned* is_mig);
DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(abi::Device mig,
                                                                          abi::Device* device);
DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetAttributes_v2(abi::Device device,
                                                        abi::DeviceAttributes* attributes);
DIBS_FAKE_EXPORT abi::Return nvmlDeviceCreateGpuInstance(abi::Device device, unsigned profile_id,
                                                         abi::GpuInstance* made);
DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetGpuInstanceRemainingCapacity(abi::Device device,
                                                                       unsigned profile_id,
                                                                       unsigned* count);
DIBS_FAKE_EXPORT abi::Return nvmlGpuInstanceGetComputeInstanceById(abi::GpuInstance instance,
                                                                   unsigned id,
                                                                   abi::ComputeInstance* found);
DIBS_FAKE_EXPORT abi::Return nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    abi::GpuInstance instance, unsigned profile_id, abi::Placement* placements, unsigned* count);
DIBS_FAKE_EXPORT abi::Return nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    abi::GpuInstance instance, unsigned profile_id, const abi::Placement* placement,
    abi::ComputeInstance* made);

inline constexpr abi::Return kInvalid = number(nvml::Code::invalid_argument);
inline constexpr abi::Return kNotSupported = number(nvml::Code::not_supported);
inline constexpr abi::Return kNotFound = number(nvml::Code::not_found);
inline constexpr abi::Return kInUse = number(nvml::Code::in_use);

/// A GPU at one moment.
struct GpuView {
  Snapshot at;
  std::size_t index;
  MachineFiles& files;

  const Gpu& gpu() const { return at.machine.gpus[index]; }
  const Model& model() const { return at.machine.model_of(index); }
  const GpuState& state() const { return at.state->gpus[index]; }
  const GpuFaults& faults() const { return at.faults->gpus[index]; }
};

/// One MIG instance at one moment.
struct MigView {
  const GpuInstance& instance;
  const ComputeInstance& compute;
  const Profile& profile;
};

inline abi::Return not_a_handle() {
  return World::get().files() == nullptr ? number(nvml::Code::uninitialized) : kInvalid;
}

/// `work(GpuView)`, for functions of whole GPUs; `elsewhere` where the handle is an instance's.
template <typename Work>
abi::Return on_gpu(std::string_view name, abi::Device device, Work work,
                   abi::Return elsewhere = kNotSupported) {
  const auto what = World::get().what_is(device, Kind::gpu);
  if (!what) {
    return World::get().what_is(device, Kind::mig) ? elsewhere : not_a_handle();
  }
  return call(name, what->gpu, [&](MachineFiles& files) {
    return work(GpuView{files.look(), what->gpu, files});
  });
}

/// The instance that a handle stands for; its parts are null where it is gone.
inline const GpuInstance* find_instance(const GpuState& state, const Handle& what) {
  for (const GpuInstance& instance : state.instances) {
    if (instance.serial == what.gpu_instance) return &instance;
  }
  return nullptr;
}

inline const ComputeInstance* find_compute(const GpuInstance& instance, const Handle& what) {
  for (const ComputeInstance& compute : instance.compute) {
    if (compute.serial == what.compute_instance) return &compute;
  }
  return nullptr;
}

/// `whole(GpuView)` or `part(GpuView, MigView)`, whichever the handle is.
template <typename Whole, typename Part>
abi::Return on_device(std::string_view name, abi::Device device, Whole whole, Part part) {
  const auto mig = World::get().what_is(device, Kind::mig);
  if (!mig) return on_gpu(name, device, whole);
  return call(name, mig->gpu, [&](MachineFiles& files) -> abi::Return {
    const GpuView view{files.look(), mig->gpu, files};
    const GpuInstance* instance = find_instance(view.state(), *mig);
    const ComputeInstance* compute = instance == nullptr ? nullptr : find_compute(*instance, *mig);
    if (compute == nullptr) return kNotFound;
    const Profile* profile = profile_by_id(view.model(), instance->profile);
    if (profile == nullptr) return kNotFound;
    return part(view, MigView{*instance, *compute, *profile});
  });
}

/// `work(GpuView, GpuInstance, Profile)`; no argument any more where the instance was destroyed.
template <typename Work>
abi::Return on_instance(std::string_view name, abi::GpuInstance handle, Work work) {
  const auto what = World::get().what_is(handle, Kind::gpu_instance);
  if (!what) return not_a_handle();
  return call(name, what->gpu, [&](MachineFiles& files) -> abi::Return {
    const GpuView view{files.look(), what->gpu, files};
    const GpuInstance* instance = find_instance(view.state(), *what);
    if (instance == nullptr) return kInvalid;
    const Profile* profile = profile_by_id(view.model(), instance->profile);
    return profile == nullptr ? kInvalid : work(view, *instance, *profile);
  });
}

/// As NVML hands out texts.
inline abi::Return copy_text(const std::string& text, char* into, unsigned length) {
  if (into == nullptr) return kInvalid;
  if (text.size() + 1 > length) return number(nvml::Code::insufficient_size);
  std::memcpy(into, text.c_str(), text.size() + 1);
  return 0;
}

template <typename T, typename U>
abi::Return give(T* into, U value) {
  if (into == nullptr) return kInvalid;
  *into = static_cast<T>(value);
  return 0;
}

inline abi::Device gpu_handle(std::size_t gpu) {
  return static_cast<abi::Device>(World::get().handle_of({Kind::gpu, gpu, 0, 0}));
}

}  // namespace dibs::drivers::nvidia::fake
