#include "drivers/nvidia/nvml/library.h"

#include <cstring>

#include "base/strings.h"
#include "drivers/nvidia/nvml/loaded.h"

namespace dibs::drivers::nvidia::nvml {
namespace {

/// By NVML's number. The words are those of NVIDIA's Go library, so that attributes of devices
/// match theirs.
constexpr std::string_view kBrands[] = {
    "Unknown",   "Quadro",      "Tesla",     "NVS",        "Grid",      "GeForce",
    "Titan",     "NvidiaVApps", "NvidiaVPC", "NvidiaVCS",  "NvidiaVWS", "NvidiaCloudGaming",
    "QuadroRTX", "NvidiaRTX",   "Nvidia",    "GeForceRTX", "TitanRTX"};

std::string_view architecture_name(unsigned number) {
  switch (number) {
    case 2:
      return "Kepler";
    case 3:
      return "Maxwell";
    case 4:
      return "Pascal";
    case 5:
      return "Volta";
    case 6:
      return "Turing";
    case 7:
      return "Ampere";
    case 8:
      return "Ada Lovelace";
    case 9:
      return "Hopper";
    case 10:
      return "Blackwell";
    case 13:
      return "Rubin";
    default:
      return "Unknown";
  }
}

std::string_view addressing_mode_name(unsigned number) {
  switch (number) {
    case 0:
      return "None";
    case 1:
      return "HMM";
    case 2:
      return "ATS";
    default:
      return "";
  }
}

bool is(abi::Return code, Code which) { return code == static_cast<int>(which); }

/// NVML writes a domain of eight digits in capitals; sysfs has four in small letters.
std::string sysfs_form(const abi::PciInfo& pci) {
  const std::string id =
      to_lower(std::string_view(pci.bus_id, strnlen(pci.bus_id, sizeof pci.bus_id)));
  const std::size_t colon = id.find(':');
  if (colon == 8 && id.starts_with("0000")) return id.substr(4);
  return id;
}

class NvmlLibrary : public Library {
 public:
  explicit NvmlLibrary(std::shared_ptr<const Loaded> nvml) : nvml_(std::move(nvml)) {}

  Result<std::string> driver_version() override {
    char text[abi::kVersionSize] = {};
    DIBS_NVML_CHECK(nvml_->nvmlSystemGetDriverVersion(text, sizeof text),
                    "ask for the version of the driver");
    return std::string(text);
  }

  Result<std::string> cuda_version() override {
    int version = 0;
    DIBS_NVML_CHECK(nvml_->nvmlSystemGetCudaDriverVersion_v2(&version),
                    "ask for the version of CUDA");
    return cat(version / 1000, ".", version % 1000 / 10);
  }

  Result<std::vector<std::string>> gpu_uuids(std::vector<UnreadGpu>* unread) override {
    unsigned count = 0;
    DIBS_NVML_CHECK(nvml_->nvmlDeviceGetCount_v2(&count), "count the GPUs");
    std::vector<std::string> uuids;
    for (unsigned index = 0; index < count; ++index) {
      abi::Device device = nullptr;
      char uuid[abi::kUuidSize] = {};
      abi::Return code = nvml_->nvmlDeviceGetHandleByIndex_v2(index, &device);
      if (code == 0) code = nvml_->nvmlDeviceGetUUID(device, uuid, sizeof uuid);
      if (code == 0) {
        uuids.emplace_back(uuid);
      } else if (unread != nullptr) {
        unread->push_back({index, {}, failure(code, cat("find GPU ", index))});
      }
    }
    return uuids;
  }

  Result<GpuInfo> gpu(const std::string& uuid) override {
    DIBS_TRY(const abi::Device device, find_gpu(*nvml_, uuid));
    GpuInfo info;
    info.uuid = uuid;
    DIBS_NVML_CHECK(nvml_->nvmlDeviceGetIndex(device, &info.index), asking("index", uuid));
    DIBS_NVML_CHECK(nvml_->nvmlDeviceGetMinorNumber(device, &info.minor),
                    asking("minor number", uuid));
    char name[abi::kNameSize] = {};
    DIBS_NVML_CHECK(nvml_->nvmlDeviceGetName(device, name, sizeof name), asking("name", uuid));
    info.name = name;
    int brand = 0;
    DIBS_NVML_CHECK(nvml_->nvmlDeviceGetBrand(device, &brand), asking("brand", uuid));
    const bool known = brand >= 0 && static_cast<std::size_t>(brand) < std::size(kBrands);
    info.brand = kBrands[known ? brand : 0];
    int major = 0;
    int minor = 0;
    DIBS_NVML_CHECK(nvml_->nvmlDeviceGetCudaComputeCapability(device, &major, &minor),
                    asking("compute capability", uuid));
    info.compute_capability = cat(major, ".", minor);
    abi::PciInfo pci = {};
    DIBS_NVML_CHECK(nvml_->nvmlDeviceGetPciInfo_v3(device, &pci), asking("PCI address", uuid));
    info.pci_bus_id = sysfs_form(pci);
    unsigned architecture = abi::kArchitectureUnknown;
    if (nvml_->nvmlDeviceGetArchitecture != nullptr) {
      DIBS_NVML_CHECK(nvml_->nvmlDeviceGetArchitecture(device, &architecture),
                      asking("architecture", uuid));
    }
    info.architecture = architecture_name(architecture);
    DIBS_TRY(info.memory_bytes, memory_of(device, uuid));
    DIBS_CHECK(read_mig_mode(device, info));
    abi::AddressingModeV1 mode = {abi::version_of<abi::AddressingModeV1>(1), 0};
    if (nvml_->nvmlDeviceGetAddressingMode != nullptr &&
        nvml_->nvmlDeviceGetAddressingMode(device, &mode) == 0) {
      info.addressing_mode = addressing_mode_name(mode.value);
    }
    return info;
  }

  Result<std::vector<MigProfile>> mig_profiles(const std::string& uuid) override {
    return read_mig_profiles(*nvml_, uuid);
  }
  Result<std::vector<MigInstance>> mig_instances(const std::string& uuid) override {
    return read_mig_instances(*nvml_, uuid);
  }
  Result<MigInstance> create_mig(const std::string& uuid, unsigned profile_id,
                                 Placement placement) override {
    return make_mig(*nvml_, uuid, profile_id, placement);
  }
  Result<> destroy_mig(const std::string& uuid, unsigned gpu_instance) override {
    return nvml::destroy_mig(*nvml_, uuid, gpu_instance);
  }
  Result<> set_mig_mode(const std::string& uuid, bool enabled) override {
    return nvml::set_mig_mode(*nvml_, uuid, enabled);
  }

  Result<Utilization> utilization(const std::string& uuid) override { return load_of(uuid, true); }
  /// NVML finds an instance by its uuid as it finds a GPU.
  Result<Utilization> mig_utilization(const std::string& mig_uuid) override {
    return load_of(mig_uuid, false);
  }

  Result<RemappedRows> remapped_rows(const std::string& uuid) override {
    DIBS_TRY(const abi::Device device, find_gpu(*nvml_, uuid));
    unsigned correctable = 0;
    unsigned uncorrectable = 0;
    unsigned pending = 0;
    unsigned failed = 0;
    DIBS_NVML_CHECK(nvml_->nvmlDeviceGetRemappedRows == nullptr
                        ? static_cast<int>(Code::not_supported)
                        : nvml_->nvmlDeviceGetRemappedRows(device, &correctable, &uncorrectable,
                                                           &pending, &failed),
                    asking("remapped rows", uuid));
    return RemappedRows{correctable, uncorrectable, pending != 0, failed != 0};
  }

  Result<EccErrors> ecc_errors(const std::string& uuid) override {
    DIBS_TRY(const abi::Device device, find_gpu(*nvml_, uuid));
    int current = 0;
    int pending = 0;
    DIBS_NVML_CHECK(nvml_->nvmlDeviceGetEccMode(device, &current, &pending),
                    asking("ECC mode", uuid));
    EccErrors errors;
    errors.enabled = current != 0;
    if (!errors.enabled) return errors;
    const struct {
      int kind;
      int counter;
      std::uint64_t& into;
    } counters[] = {{abi::kErrorCorrected, abi::kEccVolatile, errors.corrected},
                    {abi::kErrorUncorrected, abi::kEccVolatile, errors.uncorrected},
                    {abi::kErrorCorrected, abi::kEccAggregate, errors.corrected_ever},
                    {abi::kErrorUncorrected, abi::kEccAggregate, errors.uncorrected_ever}};
    for (const auto& counter : counters) {
      unsigned long long count = 0;
      DIBS_NVML_CHECK(
          nvml_->nvmlDeviceGetTotalEccErrors(device, counter.kind, counter.counter, &count),
          asking("ECC errors", uuid));
      counter.into = count;
    }
    return errors;
  }

  Result<std::vector<NvLink>> nvlinks(const std::string& uuid) override {
    DIBS_TRY(const abi::Device device, find_gpu(*nvml_, uuid));
    std::vector<NvLink> links;
    for (unsigned number = 0; number < abi::kMaxLinks; ++number) {
      int active = 0;
      const abi::Return code = nvml_->nvmlDeviceGetNvLinkState(device, number, &active);
      // A number past the last link is an argument that is not valid, or a link not supported.
      if (is(code, Code::invalid_argument) || is(code, Code::not_supported)) continue;
      DIBS_NVML_CHECK(code, asking("NVLinks", uuid));
      NvLink link;
      link.link = number;
      link.active = active != 0;
      if (link.active) read_link(device, link);
      links.push_back(std::move(link));
    }
    return links;
  }

  Result<ComputeMode> compute_mode(const std::string& uuid) override {
    DIBS_TRY(const abi::Device device, find_gpu(*nvml_, uuid));
    int mode = 0;
    DIBS_NVML_CHECK(nvml_->nvmlDeviceGetComputeMode(device, &mode), asking("compute mode", uuid));
    return static_cast<ComputeMode>(mode);
  }

  Result<> set_compute_mode(const std::string& uuid, ComputeMode mode) override {
    DIBS_TRY(const abi::Device device, find_gpu(*nvml_, uuid));
    DIBS_NVML_CHECK(nvml_->nvmlDeviceSetComputeMode(device, static_cast<int>(mode)),
                    cat("set the compute mode of GPU ", uuid));
    return success();
  }

  Result<std::unique_ptr<EventSet>> watch(const std::vector<std::string>& uuids) override {
    return nvml::watch(nvml_, uuids);
  }

 private:
  static std::string asking(std::string_view what, const std::string& uuid) {
    return cat("ask for the ", what, " of GPU ", uuid);
  }

  Result<std::uint64_t> memory_of(abi::Device device, const std::string& uuid) const {
    abi::Memory memory = {};
    const abi::Return code = nvml_->nvmlDeviceGetMemoryInfo(device, &memory);
    if (is(code, Code::not_supported)) return std::uint64_t{0};
    DIBS_NVML_CHECK(code, asking("memory", uuid));
    return std::uint64_t{memory.total};
  }

  Result<> read_mig_mode(abi::Device device, GpuInfo& info) const {
    unsigned current = 0;
    unsigned pending = 0;
    const abi::Return code = nvml_->nvmlDeviceGetMigMode(device, &current, &pending);
    if (is(code, Code::not_supported)) return success();
    DIBS_NVML_CHECK(code, asking("MIG mode", info.uuid));
    info.mig_capable = true;
    info.mig_enabled = current == abi::kMigEnable;
    return success();
  }

  void read_link(abi::Device device, NvLink& link) const {
    nvml_->nvmlDeviceGetNvLinkVersion(device, link.link, &link.version);
    abi::PciInfo remote = {};
    if (nvml_->nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link.link, &remote) == 0) {
      link.remote_pci_bus_id = sysfs_form(remote);
    }
    int kind = abi::kLinkToUnknown;
    if (nvml_->nvmlDeviceGetNvLinkRemoteDeviceType == nullptr ||
        nvml_->nvmlDeviceGetNvLinkRemoteDeviceType(device, link.link, &kind) != 0) {
      return;
    }
    if (kind == abi::kLinkToGpu) link.remote_kind = "gpu";
    if (kind == abi::kLinkToSwitch) link.remote_kind = "switch";
  }

  Result<Utilization> load_of(const std::string& uuid, bool percents) const {
    DIBS_TRY(const abi::Device device, find_gpu(*nvml_, uuid));
    Utilization load;
    // The second version does not count what the driver keeps for itself as used.
    abi::MemoryV2 memory = {abi::version_of<abi::MemoryV2>(2), 0, 0, 0, 0};
    if (nvml_->nvmlDeviceGetMemoryInfo_v2 != nullptr &&
        nvml_->nvmlDeviceGetMemoryInfo_v2(device, &memory) == 0) {
      load.memory_total = memory.total;
      load.memory_used = memory.used;
    } else {
      abi::Memory old = {};
      DIBS_NVML_CHECK(nvml_->nvmlDeviceGetMemoryInfo(device, &old), asking("memory", uuid));
      load.memory_total = old.total;
      load.memory_used = old.used;
    }
    if (!percents) return load;
    abi::Utilization rates = {};
    const abi::Return code = nvml_->nvmlDeviceGetUtilizationRates(device, &rates);
    if (is(code, Code::not_supported)) return load;
    DIBS_NVML_CHECK(code, asking("utilization", uuid));
    load.gpu_percent = rates.gpu;
    load.memory_percent = rates.memory;
    return load;
  }

  const std::shared_ptr<const Loaded> nvml_;
};

}  // namespace

Result<std::unique_ptr<Library>> Library::open(const std::string& path) {
  DIBS_TRY(auto loaded, Loaded::open(path));
  return std::unique_ptr<Library>(std::make_unique<NvmlLibrary>(std::move(loaded)));
}

}  // namespace dibs::drivers::nvidia::nvml
