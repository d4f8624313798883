#include <charconv>
#include <cstdio>

#include "base/strings.h"
#include "drivers/nvidia/fake/library/exports.h"

namespace dibs::drivers::nvidia::fake {
namespace {

constexpr int kModes = 4;  // NVML_COMPUTEMODE_COUNT
constexpr int kExclusiveThread = 1;

unsigned hexadecimal(std::string_view digits) {
  unsigned value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

/// Of "0000:19:00.0".
abi::PciInfo pci_info(const std::string& address, unsigned device) {
  abi::PciInfo pci = {};
  pci.domain = hexadecimal(std::string_view(address).substr(0, 4));
  pci.bus = hexadecimal(std::string_view(address).substr(5, 2));
  pci.device = hexadecimal(std::string_view(address).substr(8, 2));
  pci.pci_device_id = device;
  std::snprintf(pci.bus_id, sizeof pci.bus_id, "%08X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
  std::snprintf(pci.bus_id_legacy, sizeof pci.bus_id_legacy, "%04X:%02X:%02X.0",
                pci.domain & 0xffffU, pci.bus & 0xffU, pci.device & 0xffU);
  return pci;
}

struct MemoryUse {
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t used;
};

MemoryUse memory_of(const GpuView& view) {
  const Model& model = view.model();
  const std::uint64_t most = model.memory - model.reserved;
  return {model.memory, model.reserved, std::min(most, view.faults().memory_used)};
}

MemoryUse memory_of(const GpuView& view, const MigView& mig) {
  const auto& busy = view.at.faults->busy_instances;
  const auto found = busy.find(mig_uuid(view.gpu(), mig.instance, mig.compute));
  const std::uint64_t used = found == busy.end() ? 0 : found->second;
  return {mig.profile.memory, 0, std::min(mig.profile.memory, used)};
}

/// The first version counts what the driver keeps for itself as used.
abi::Return give_memory(abi::Memory* into, const MemoryUse& memory) {
  const std::uint64_t used = memory.used + memory.reserved;
  return give(into, abi::Memory{memory.total, memory.total - used, used});
}

abi::Return give_memory(abi::MemoryV2* into, const MemoryUse& memory) {
  const std::uint64_t free = memory.total - memory.reserved - memory.used;
  return give(into, abi::MemoryV2{into->version, memory.total, memory.reserved, free, memory.used});
}

bool has_link(const GpuView& view, unsigned link) { return link < view.gpu().links.count; }
bool is_up(const GpuView& view, unsigned link) { return link >= view.faults().links_down; }

}  // namespace

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetIndex(abi::Device device, unsigned* index) {
  return on_gpu("nvmlDeviceGetIndex", device, [&](const GpuView& view) {
    const auto present = view.at.present();
    for (std::size_t i = 0; i < present.size(); ++i) {
      if (present[i] == view.index) return give(index, i);
    }
    return kNotFound;
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetUUID(abi::Device device, char* uuid, unsigned length) {
  return on_device(
      "nvmlDeviceGetUUID", device,
      [&](const GpuView& view) { return copy_text(view.gpu().uuid, uuid, length); },
      [&](const GpuView& view, const MigView& mig) {
        return copy_text(mig_uuid(view.gpu(), mig.instance, mig.compute), uuid, length);
      });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetName(abi::Device device, char* name, unsigned length) {
  return on_device(
      "nvmlDeviceGetName", device,
      [&](const GpuView& view) { return copy_text(view.model().name, name, length); },
      [&](const GpuView& view, const MigView& mig) {
        return copy_text(cat(view.model().name, " MIG ", instance_name(mig.profile, mig.compute)),
                         name, length);
      });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetBrand(abi::Device device, int* brand) {
  const auto whole = [&](const GpuView& view) { return give(brand, view.model().brand); };
  return on_device("nvmlDeviceGetBrand", device, whole,
                   [&](const GpuView& view, const MigView&) { return whole(view); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetMinorNumber(abi::Device device, unsigned* minor) {
  return on_gpu("nvmlDeviceGetMinorNumber", device,
                [&](const GpuView& view) { return give(minor, view.gpu().minor); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetPciInfo_v3(abi::Device device, abi::PciInfo* pci) {
  return on_gpu("nvmlDeviceGetPciInfo_v3", device, [&](const GpuView& view) {
    return give(pci, pci_info(view.gpu().pci, view.model().pci_device));
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetCudaComputeCapability(abi::Device device, int* major,
                                                                int* minor) {
  const auto whole = [&](const GpuView& view) {
    const abi::Return first = give(major, view.model().compute_major);
    return first != 0 ? first : give(minor, view.model().compute_minor);
  };
  return on_device("nvmlDeviceGetCudaComputeCapability", device, whole,
                   [&](const GpuView& view, const MigView&) { return whole(view); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetArchitecture(abi::Device device, unsigned* architecture) {
  return on_gpu("nvmlDeviceGetArchitecture", device,
                [&](const GpuView& view) { return give(architecture, view.model().architecture); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetAddressingMode(abi::Device device,
                                                         abi::AddressingModeV1* mode) {
  return on_gpu("nvmlDeviceGetAddressingMode", device, [&](const GpuView& view) -> abi::Return {
    if (mode == nullptr) return kInvalid;
    if (mode->version != abi::version_of<abi::AddressingModeV1>(1)) {
      return number(nvml::Code::argument_version_mismatch);
    }
    if (view.model().addressing_mode < 0) return kNotSupported;
    mode->value = static_cast<unsigned>(view.model().addressing_mode);
    return 0;
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetMemoryInfo(abi::Device device, abi::Memory* memory) {
  return on_device(
      "nvmlDeviceGetMemoryInfo", device,
      [&](const GpuView& view) { return give_memory(memory, memory_of(view)); },
      [&](const GpuView& view, const MigView& mig) {
        return give_memory(memory, memory_of(view, mig));
      });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetMemoryInfo_v2(abi::Device device, abi::MemoryV2* memory) {
  if (memory == nullptr) return kInvalid;
  if (memory->version != abi::version_of<abi::MemoryV2>(2)) {
    return number(nvml::Code::argument_version_mismatch);
  }
  return on_device(
      "nvmlDeviceGetMemoryInfo_v2", device,
      [&](const GpuView& view) { return give_memory(memory, memory_of(view)); },
      [&](const GpuView& view, const MigView& mig) {
        return give_memory(memory, memory_of(view, mig));
      });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetUtilizationRates(abi::Device device,
                                                           abi::Utilization* utilization) {
  return on_gpu("nvmlDeviceGetUtilizationRates", device, [&](const GpuView& view) {
    // Instances run side by side: there is no figure for all of them.
    if (view.state().mig) return kNotSupported;
    return give(utilization,
                abi::Utilization{view.faults().gpu_percent, view.faults().memory_percent});
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetComputeMode(abi::Device device, int* mode) {
  return on_gpu("nvmlDeviceGetComputeMode", device,
                [&](const GpuView& view) { return give(mode, view.state().compute_mode); });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceSetComputeMode(abi::Device device, int mode) {
  return on_gpu("nvmlDeviceSetComputeMode", device, [&](const GpuView& view) -> abi::Return {
    if (mode < 0 || mode >= kModes) return kInvalid;
    if (mode == kExclusiveThread) return kNotSupported;
    return view.files.change([&](State& state) {
      state.gpus[view.index].compute_mode = mode;
      return 0;
    });
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetEccMode(abi::Device device, int* current, int* pending) {
  return on_gpu("nvmlDeviceGetEccMode", device, [&](const GpuView& view) {
    const abi::Return first = give(current, view.model().ecc);
    return first != 0 ? first : give(pending, view.model().ecc);
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetTotalEccErrors(abi::Device device, int error_type,
                                                         int counter_type,
                                                         unsigned long long* count) {
  return on_gpu("nvmlDeviceGetTotalEccErrors", device, [&](const GpuView& view) -> abi::Return {
    if (!view.model().ecc) return kNotSupported;
    if (error_type < 0 || error_type > 1 || counter_type < 0 || counter_type > 1) return kInvalid;
    return give(count, error_type == abi::kErrorCorrected ? view.faults().corrected
                                                          : view.faults().uncorrected);
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetRemappedRows(abi::Device device, unsigned* correctable,
                                                       unsigned* uncorrectable, unsigned* pending,
                                                       unsigned* failed) {
  return on_gpu("nvmlDeviceGetRemappedRows", device, [&](const GpuView& view) -> abi::Return {
    // As the real one: not while there are instances.
    if (!view.model().row_remapping || !view.state().instances.empty()) return kNotSupported;
    const GpuFaults& faults = view.faults();
    if (give(correctable, faults.correctable_rows) != 0 ||
        give(uncorrectable, faults.uncorrectable_rows) != 0 ||
        give(pending, faults.row_pending) != 0) {
      return kInvalid;
    }
    return give(failed, faults.row_failed);
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetNvLinkState(abi::Device device, unsigned link,
                                                      int* active) {
  return on_gpu("nvmlDeviceGetNvLinkState", device, [&](const GpuView& view) {
    if (view.gpu().links.count == 0) return kNotSupported;
    return has_link(view, link) ? give(active, is_up(view, link)) : kInvalid;
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetNvLinkVersion(abi::Device device, unsigned link,
                                                        unsigned* version) {
  return on_gpu("nvmlDeviceGetNvLinkVersion", device, [&](const GpuView& view) {
    return has_link(view, link) ? give(version, view.gpu().links.version) : kInvalid;
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetNvLinkRemotePciInfo_v2(abi::Device device, unsigned link,
                                                                 abi::PciInfo* pci) {
  return on_gpu("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, [&](const GpuView& view) {
    const Links& links = view.gpu().links;
    if (!has_link(view, link)) return kInvalid;
    if (!is_up(view, link) || links.remotes.empty()) return kNotSupported;
    return give(pci, pci_info(links.remotes[link % links.remotes.size()], 0));
  });
}

DIBS_FAKE_EXPORT abi::Return nvmlDeviceGetNvLinkRemoteDeviceType(abi::Device device, unsigned link,
                                                                 int* kind) {
  return on_gpu("nvmlDeviceGetNvLinkRemoteDeviceType", device, [&](const GpuView& view) {
    return has_link(view, link) ? give(kind, view.gpu().links.kind) : kInvalid;
  });
}

}  // namespace dibs::drivers::nvidia::fake
