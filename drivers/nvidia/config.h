#pragma once
// Opaque parameters of claims and classes, as NVIDIA's own DRA driver takes them: objects of
// resource.nvidia.com/v1beta1, decoded strictly. Defaults are set and values checked; errors
// (invalid) are worded as upstream's where pods' events show them.
//
//   GpuConfig         for whole GPUs: sharing by time slices, or by MPS
//   MigDeviceConfig   for MIG instances: the same without intervals, which NVIDIA's driver has for
//                     whole GPUs alone
//
// VfioDeviceConfig and those of compute domains are known and refused. Nothing here does I/O.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "driver/claim.h"
#include "json/value.h"

namespace dibs::drivers::nvidia {

struct MpsSettings {
  std::optional<std::int64_t> active_thread_percentage = {};
  std::optional<Quantity> pinned_memory_limit = {};
  /// By uuid, or by the number of the device among those that share the daemon.
  std::map<std::string, Quantity> pinned_memory_limits = {};
};

/// By uuid, as the control daemon takes them: "10240M".
Result<std::map<std::string, std::string>> limits_of(const MpsSettings& settings,
                                                     const std::vector<std::string>& uuids);

enum class Sharing : std::uint8_t { unset, time_slicing, mps };

struct DeviceConfig {
  bool for_mig = false;
  Sharing sharing = Sharing::unset;
  /// Of whole GPUs: "Default", "Short", "Medium", "Long".
  std::string interval = "Default";
  MpsSettings mps = {};

  /// As `nvidia-smi compute-policy --set-timeslice` takes it.
  int interval_number() const;
};

Result<DeviceConfig> decode_config(const json::Value& parameters);

struct RequestConfig {
  std::vector<std::string> requests = {};  // empty: all
  DeviceConfig config = {};
};

/// Weakest first. Errors: driver::configs_of()'s, and decode_config()'s.
Result<std::vector<RequestConfig>> decode_configs(const driver::Claim& claim,
                                                  std::string_view driver);

/// Where in `configs` the one stands that counts for a device; nothing where none does. A config
/// that names no requests is passed over by devices of the other kind. Errors: one that names this
/// request is for the other kind.
Result<std::optional<std::size_t>> config_of(const std::vector<RequestConfig>& configs,
                                             const driver::AllocatedDevice& device, bool is_mig);

}  // namespace dibs::drivers::nvidia
