#include <chrono>
#include <thread>

#include "drivers/nvidia/fake/library/exports.h"

namespace dibs::drivers::nvidia::fake {
namespace {

/// How soon an event set sees that the file of faults has changed.
constexpr auto kLook = std::chrono::milliseconds(5);

/// The next event that the set wants and was not told, a lost GPU, or neither (TIMEOUT).
abi::Return next(const Snapshot& at, Watched& set, abi::EventData& data) {
  MutexLock lock(set.mutex);
  for (const EventFault& event : at.faults->events) {
    const auto types = set.types.find(event.gpu);
    if (types == set.types.end() || (types->second & event.type) == 0) continue;
    if (at.faults->gpus[event.gpu].gone || !set.told.insert(event.text).second) continue;
    data = {gpu_handle(event.gpu), event.type, event.data, event.gpu_instance,
            event.compute_instance};
    return 0;
  }
  for (const auto& [gpu, types] : set.types) {
    if (at.faults->gpus[gpu].lost || at.faults->gpus[gpu].gone) {
      return number(nvml::Code::gpu_is_lost);
    }
  }
  return number(nvml::Code::timeout);
}

}  // namespace

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetSupportedEventTypes(abi::Device device,
                                                              unsigned long long* types) {
  return on_gpu("nvmlDeviceGetSupportedEventTypes", device,
                [&](const GpuView& view) { return give(types, view.model().events); });
}

DIBS_FAKE_EXPORT abi::Return nvmlEventSetCreate(abi::EventSet* set) {
  return call("nvmlEventSetCreate", std::nullopt, [&](MachineFiles&) {
    return set == nullptr ? kInvalid : give(set, World::get().add_set());
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlEventSetFree(abi::EventSet set) {
  return World::get().remove_set(set) ? 0 : not_a_handle();
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceRegisterEvents(abi::Device device, unsigned long long types,
                                                      abi::EventSet set) {
  const auto watched = World::get().find_set(set);
  if (watched == nullptr) return not_a_handle();
  return on_gpu("nvmlDeviceRegisterEvents", device, [&](const GpuView& view) -> abi::Return {
    if ((types & ~view.model().events) != 0) return kNotSupported;
    MutexLock lock(watched->mutex);
    watched->types[view.index] |= types;
    // What was before is not told.
    for (const EventFault& event : view.at.faults->events) {
      if (event.gpu == view.index) watched->told.insert(event.text);
    }
    return 0;
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlEventSetWait_v2(abi::EventSet set, abi::EventData* data,
                                                 unsigned milliseconds) {
  const auto watched = World::get().find_set(set);
  if (watched == nullptr) return not_a_handle();
  if (data == nullptr) return kInvalid;
  return call("nvmlEventSetWait_v2", std::nullopt, [&](MachineFiles& files) -> abi::Return {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    for (;;) {
      const abi::Return found = next(files.look(), *watched, *data);
      if (found != number(nvml::Code::timeout)) return found;
      const auto left = until - std::chrono::steady_clock::now();
      if (left <= left.zero()) return found;
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kLook));
    }
  });
}

}  // namespace dibs::drivers::nvidia::fake
