#pragma once
// Opaque parameters as the example driver takes them: objects with apiVersion and kind, decoded by
// the rules of Go, in whose words the errors are, since pods' events show them.
//
// Unknown fields are let through. A decoded config is the object, with all fields of the right
// kind.

#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"

namespace dibs::drivers {

inline constexpr std::string_view kGpuConfigGroup = "gpu.resource.example.com";
inline constexpr std::string_view kNetConfigGroup = "net.resource.example.com";

Result<json::Value> decode_gpu_config(const json::Value& parameters);
Result<json::Value> decode_net_config(const json::Value& parameters);
/// Knows no kind at all.
Result<json::Value> refuse_config(const json::Value& parameters);

struct GpuSharing {
  std::string strategy = "TimeSlicing";
  std::string interval = "Default";
  std::int64_t partitions = 1;
};

/// Defaults set and checked. `config` null: the default one. `device` stands in one message.
Result<GpuSharing> gpu_sharing(const json::Value& config, std::string_view device);

struct NetBurst {
  std::uint64_t ingress = 0;
  std::uint64_t egress = 0;
};

Result<NetBurst> net_burst(const json::Value& config);

}  // namespace dibs::drivers
