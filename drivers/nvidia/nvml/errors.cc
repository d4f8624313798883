#include "base/strings.h"
#include "drivers/nvidia/nvml/loaded.h"

namespace dibs::drivers::nvidia::nvml {
namespace {

struct Named {
  Code code;
  std::string_view name;
  /// What it means, and what helps where something does.
  std::string_view meaning;
  dibs::Code ours;
};

constexpr std::string_view kPrefix = "NVML_ERROR_";

constexpr Named kCodes[] = {
    {Code::uninitialized, "NVML_ERROR_UNINITIALIZED", "NVML is not initialized",
     dibs::Code::internal},
    {Code::invalid_argument, "NVML_ERROR_INVALID_ARGUMENT", "NVML takes no such argument",
     dibs::Code::bad_request},
    {Code::not_supported, "NVML_ERROR_NOT_SUPPORTED", "this GPU or driver does not support it",
     dibs::Code::internal},
    {Code::no_permission, "NVML_ERROR_NO_PERMISSION",
     "it takes root, or the capability files below /proc/driver/nvidia/capabilities",
     dibs::Code::forbidden},
    {Code::already_initialized, "NVML_ERROR_ALREADY_INITIALIZED", "NVML is initialized already",
     dibs::Code::internal},
    {Code::not_found, "NVML_ERROR_NOT_FOUND", "it is not there", dibs::Code::not_found},
    {Code::insufficient_size, "NVML_ERROR_INSUFFICIENT_SIZE", "the answer has no room",
     dibs::Code::internal},
    {Code::insufficient_power, "NVML_ERROR_INSUFFICIENT_POWER",
     "the power cables of the GPU are not attached", dibs::Code::unavailable},
    {Code::driver_not_loaded, "NVML_ERROR_DRIVER_NOT_LOADED",
     "the kernel module nvidia is not loaded: modprobe nvidia", dibs::Code::unavailable},
    {Code::timeout, "NVML_ERROR_TIMEOUT", "it took too long", dibs::Code::timeout},
    {Code::irq_issue, "NVML_ERROR_IRQ_ISSUE", "the kernel has trouble with interrupts of the GPU",
     dibs::Code::unavailable},
    {Code::library_not_found, "NVML_ERROR_LIBRARY_NOT_FOUND", "the library is not there",
     dibs::Code::unavailable},
    {Code::function_not_found, "NVML_ERROR_FUNCTION_NOT_FOUND",
     "this version of the driver has no such function", dibs::Code::internal},
    {Code::corrupted_inforom, "NVML_ERROR_CORRUPTED_INFOROM", "the infoROM is corrupted",
     dibs::Code::internal},
    {Code::gpu_is_lost, "NVML_ERROR_GPU_IS_LOST", "the GPU fell off the bus",
     dibs::Code::unavailable},
    {Code::reset_required, "NVML_ERROR_RESET_REQUIRED",
     "the GPU needs a reset first: nvidia-smi --gpu-reset", dibs::Code::unavailable},
    {Code::operating_system, "NVML_ERROR_OPERATING_SYSTEM",
     "the control device of the GPU is blocked by the operating system", dibs::Code::forbidden},
    {Code::version_mismatch, "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
     "library and kernel module are of different versions of the driver: reload the module",
     dibs::Code::unavailable},
    {Code::in_use, "NVML_ERROR_IN_USE", "somebody uses it", dibs::Code::conflict},
    {Code::memory, "NVML_ERROR_MEMORY", "out of memory", dibs::Code::internal},
    {Code::no_data, "NVML_ERROR_NO_DATA", "there is no data", dibs::Code::not_found},
    {Code::vgpu_ecc_not_supported, "NVML_ERROR_VGPU_ECC_NOT_SUPPORTED", "ECC is on",
     dibs::Code::internal},
    {Code::insufficient_resources, "NVML_ERROR_INSUFFICIENT_RESOURCES",
     "other instances take the place", dibs::Code::conflict},
    {Code::freq_not_supported, "NVML_ERROR_FREQ_NOT_SUPPORTED", "no such frequency",
     dibs::Code::internal},
    {Code::argument_version_mismatch, "NVML_ERROR_ARGUMENT_VERSION_MISMATCH",
     "this version of the driver knows another version of the structure", dibs::Code::internal},
    {Code::deprecated, "NVML_ERROR_DEPRECATED", "the driver does not offer it any more",
     dibs::Code::internal},
    {Code::not_ready, "NVML_ERROR_NOT_READY", "the system is not ready yet",
     dibs::Code::unavailable},
    {Code::gpu_not_found, "NVML_ERROR_GPU_NOT_FOUND", "there is no GPU", dibs::Code::not_found},
    {Code::invalid_state, "NVML_ERROR_INVALID_STATE", "it is in another state",
     dibs::Code::conflict},
    {Code::reset_type_not_supported, "NVML_ERROR_RESET_TYPE_NOT_SUPPORTED", "no such reset",
     dibs::Code::internal},
    {Code::unknown, "NVML_ERROR_UNKNOWN", "an error inside the driver; dmesg may tell",
     dibs::Code::internal},
};

const Named& find(Code code) {
  for (const Named& named : kCodes) {
    if (named.code == code) return named;
  }
  return kCodes[std::size(kCodes) - 1];
}

}  // namespace

std::string_view name_of(Code code) { return code == Code::ok ? "NVML_SUCCESS" : find(code).name; }

Code code_of(const Error& error) {
  if (error.details() == nullptr) return Code::unknown;
  for (const Cause& cause : error.details()->causes) {
    if (!cause.reason.starts_with(kPrefix)) continue;
    for (const Named& named : kCodes) {
      if (named.name == cause.reason) return named.code;
    }
  }
  return Code::unknown;
}

Error failure(abi::Return code, std::string_view doing) {
  const Named& named = find(static_cast<Code>(code));
  ErrorDetails details;
  details.causes.push_back({std::string(named.name), std::string(named.meaning), ""});
  // A number newer than ours is told as a number.
  const std::string name = static_cast<int>(named.code) == code ? std::string(named.name)
                                                                : cat(named.name, " (", code, ")");
  return Error(named.ours, cat(doing, ": ", name, ": ", named.meaning), std::move(details));
}

}  // namespace dibs::drivers::nvidia::nvml
