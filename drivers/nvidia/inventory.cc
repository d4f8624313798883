#include "drivers/nvidia/inventory.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/strings.h"

namespace dibs::drivers::nvidia {
namespace {

namespace fs = std::filesystem;

/// The folder of sysfs that a device's link leads to begins with the root it hangs on:
/// /sys/devices/pci0000:16/0000:16:01.0/0000:19:00.0
std::string pcie_root_of(const std::string& sysfs_root, const std::string& pci_bus_id) {
  std::error_code failed;
  const fs::path link = fs::path(sysfs_root) / "bus/pci/devices" / pci_bus_id;
  const fs::path real = fs::weakly_canonical(link, failed);
  if (failed) return "";
  for (const fs::path& part : real) {
    const std::string name = part.string();
    if (name.starts_with("pci") && name.find(':') != std::string::npos) return name;
  }
  return "";
}

int numa_node_of(runtime::Files& files, const std::string& sysfs_root,
                 const std::string& pci_bus_id) {
  const auto text = files.read(cat(sysfs_root, "/bus/pci/devices/", pci_bus_id, "/numa_node"));
  if (!text) return -1;
  const std::string_view number = trim(*text);
  int node = -1;
  std::from_chars(number.data(), number.data() + number.size(), node);
  return node;
}

}  // namespace

bool can_switch_mig(const nvml::GpuInfo& gpu) {
  if (!gpu.mig_capable) return false;
  const std::string& name = gpu.architecture;
  return name != "Ampere" && name != "Turing" && name != "Volta" && name != "Unknown";
}

const nvml::MigProfile* Gpu::profile(unsigned id) const {
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const nvml::MigProfile& one) { return one.id == id; });
  return found == profiles.end() ? nullptr : &*found;
}

bool is_gone(const Error& error) {
  switch (nvml::code_of(error)) {
    case nvml::Code::gpu_is_lost:
    case nvml::Code::gpu_not_found:
    case nvml::Code::not_found:
    case nvml::Code::reset_required:
      return true;
    default:
      return false;
  }
}

Result<Gpu> look_at(nvml::Library& library, runtime::Files& files, const std::string& sysfs_root,
                    const std::string& uuid) {
  Gpu gpu;
  DIBS_TRY(gpu.info, library.gpu(uuid));
  gpu.pcie_root = pcie_root_of(sysfs_root, gpu.info.pci_bus_id);
  gpu.numa_node = numa_node_of(files, sysfs_root, gpu.info.pci_bus_id);
  if (gpu.info.mig_capable) {
    DIBS_TRY(gpu.profiles, library.mig_profiles(uuid));
  }
  if (gpu.info.mig_enabled) {
    DIBS_TRY(gpu.instances, library.mig_instances(uuid));
  }
  return gpu;
}

Result<Inventory> take_inventory(nvml::Library& library, runtime::Files& files,
                                 const std::string& sysfs_root) {
  Inventory out;
  DIBS_TRY(out.driver_version, library.driver_version());
  DIBS_TRY(out.cuda_version, library.cuda_version());
  DIBS_TRY(const auto uuids, library.gpu_uuids(&out.unread));
  for (const std::string& uuid : uuids) {
    auto gpu = look_at(library, files, sysfs_root, uuid);
    if (gpu) {
      out.gpus.push_back(std::move(gpu).value());
    } else {
      out.unread.push_back({{}, uuid, gpu.error()});
    }
  }
  return out;
}

}  // namespace dibs::drivers::nvidia
