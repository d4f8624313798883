#include "drivers/nvidia/fake/library/exports.h"

namespace dibs::drivers::nvidia::fake {

DIBS_FAKE_EXPORT abi::Return nvmlInit_v2() {
  const abi::Return begun = World::get().init();
  if (begun != 0) return begun;
  const abi::Return told = call("nvmlInit_v2", std::nullopt, [](MachineFiles&) { return 0; });
  if (told != 0) World::get().shutdown();
  return told;
}

DIBS_FAKE_EXPORT abi::Return nvmlInit() { return nvmlInit_v2(); }
DIBS_FAKE_EXPORT abi::Return nvmlInitWithFlags(unsigned /*flags*/) { return nvmlInit_v2(); }
DIBS_FAKE_EXPORT abi::Return nvmlShutdown() { return World::get().shutdown(); }

DIBS_FAKE_EXPORT const char* nvmlErrorString(abi::Return code) {
  return nvml::name_of(static_cast<nvml::Code>(code)).data();  // literals, so they end in a zero
}

DIBS_FAKE_EXPORT abi::Return nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return call("nvmlSystemGetDriverVersion", std::nullopt, [&](MachineFiles& files) {
    return copy_text(files.machine().driver, version, length);
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return call("nvmlSystemGetNVMLVersion", std::nullopt, [&](MachineFiles& files) {
    const Machine& machine = files.machine();
    return copy_text(std::to_string(machine.cuda / 1000) + "." + machine.driver, version, length);
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return call("nvmlSystemGetCudaDriverVersion_v2", std::nullopt,
              [&](MachineFiles& files) { return give(version, files.machine().cuda); });
}

DIBS_FAKE_EXPORT abi::Return nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetCount_v2(unsigned* count) {
  return call("nvmlDeviceGetCount_v2", std::nullopt,
              [&](MachineFiles& files) { return give(count, files.look().present().size()); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetHandleByIndex_v2(unsigned index, abi::Device* device) {
  const auto files = World::get().files();
  if (files == nullptr) return number(nvml::Code::uninitialized);
  const auto present = files->look().present();
  if (index >= present.size() || device == nullptr) return kInvalid;
  return call("nvmlDeviceGetHandleByIndex_v2", present[index],
              [&](MachineFiles&) { return give(device, gpu_handle(present[index])); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetHandleByUUID(const char* uuid, abi::Device* device) {
  const auto files = World::get().files();
  if (files == nullptr) return number(nvml::Code::uninitialized);
  if (uuid == nullptr || device == nullptr) return kInvalid;
  const Snapshot at = files->look();
  for (const std::size_t gpu : at.present()) {
    if (at.machine.gpus[gpu].uuid == uuid) {
      return call("nvmlDeviceGetHandleByUUID", gpu,
                  [&](MachineFiles&) { return give(device, gpu_handle(gpu)); });
    }
    for (const GpuInstance& instance : at.state->gpus[gpu].instances) {
      for (const ComputeInstance& compute : instance.compute) {
        if (mig_uuid(at.machine.gpus[gpu], instance, compute) != uuid) continue;
        return call("nvmlDeviceGetHandleByUUID", gpu, [&](MachineFiles&) {
          const Handle mig = {Kind::mig, gpu, instance.serial, compute.serial};
          return give(device, static_cast<abi::Device>(World::get().handle_of(mig)));
        });
      }
    }
  }
  return kNotFound;
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetHandleByPciBusId_v2(const char* address,
                                                              abi::Device* device) {
  const auto files = World::get().files();
  if (files == nullptr) return number(nvml::Code::uninitialized);
  if (address == nullptr || device == nullptr) return kInvalid;
  const Snapshot at = files->look();
  std::string wanted = address;
  for (char& c : wanted) c = static_cast<char>(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
  for (const std::size_t gpu : at.present()) {
    const std::string& pci = at.machine.gpus[gpu].pci;
    if (wanted != pci && wanted != "0000" + pci) continue;
    return call("nvmlDeviceGetHandleByPciBusId_v2", gpu,
                [&](MachineFiles&) { return give(device, gpu_handle(gpu)); });
  }
  return kNotFound;
}

}  // namespace dibs::drivers::nvidia::fake
