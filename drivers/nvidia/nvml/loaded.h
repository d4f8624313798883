#pragma once
// The loaded library: its handle and the address of every function that is used. Internal to this
// folder.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "drivers/nvidia/nvml/abi.h"
#include "drivers/nvidia/nvml/library.h"

namespace dibs::drivers::nvidia::nvml {

/// Initialized as long as it lives; shared by a Library and its event sets.
struct Loaded {
  static Result<std::shared_ptr<const Loaded>> open(const std::string& path);
  Loaded() = default;
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded();

  void* handle = nullptr;
  bool initialized = false;
#define DIBS_NVML_POINTER(required, name, arguments) abi::Return(*name) arguments = nullptr;
  DIBS_NVML_FUNCTIONS(DIBS_NVML_POINTER)
#undef DIBS_NVML_POINTER
};

/// What `doing` failed with. Requires code != 0.
Error failure(abi::Return code, std::string_view doing);

/// Returns the failure of a call, if it failed.
#define DIBS_NVML_CHECK(call, ...)                                                          \
  do {                                                                                      \
    if (const abi::Return code_ = (call); code_ != 0) return failure(code_, (__VA_ARGS__)); \
  } while (false)

/// The handle of the GPU with this uuid; its failure names the uuid.
Result<abi::Device> find_gpu(const Loaded& nvml, const std::string& uuid);

/// mig.cc: of MigProfile::name, where the library does not say it.
std::string mig_profile_name(const MigProfile& profile, std::uint64_t gpu_memory);
Result<std::vector<MigProfile>> read_mig_profiles(const Loaded& nvml, const std::string& uuid);
Result<std::vector<MigInstance>> read_mig_instances(const Loaded& nvml, const std::string& uuid);
Result<MigInstance> make_mig(const Loaded& nvml, const std::string& uuid, unsigned profile_id,
                             Placement placement);
Result<> destroy_mig(const Loaded& nvml, const std::string& uuid, unsigned gpu_instance);
Result<> set_mig_mode(const Loaded& nvml, const std::string& uuid, bool enabled);

/// events.cc
Result<std::unique_ptr<EventSet>> watch(std::shared_ptr<const Loaded> nvml,
                                        const std::vector<std::string>& uuids);

}  // namespace dibs::drivers::nvidia::nvml
