#pragma once
// Which device is where and who has it, put together from slices, claims and pods.
//
// A device of the newest generation of its pool comes once, whatever number of claims share it. An
// allocation of a device that no slice has any more comes as well: somebody still has it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "cli/why_objects.h"
#include "json/value.h"

namespace dibs::cli {

/// A part of a device that its claims share, or of counters that partitions do.
struct TopCapacity {
  std::string name;
  Quantity used;
  Quantity all;
};

/// How busy a device is, where its driver tells.
struct TopUsage {
  std::int64_t memory_used = 0;  // bytes
  std::int64_t memory = 0;       // bytes; 0: not told
  std::optional<std::int64_t> percent;

  bool told() const { return memory > 0 || percent.has_value(); }
};

/// Of one or several slices of a pool: {"gpu-0": {"memoryUsed": 1, "memory": 2, "percent": 37}}, as
/// text (docs/top.md).
inline constexpr std::string_view kUsageAnnotation = "devices.dibs.dev/usage";

struct TopDevice {
  std::string node;  // "<all>", "<selected>" where it is not of one
  std::string driver;
  std::string pool;
  std::string name;
  std::vector<const json::Value*> claims;  // those that have it, administrators' not among them
  std::vector<const json::Value*> admins;
  std::vector<std::string> taints;
  std::vector<std::string> ills;      // what is said about its health
  std::vector<TopCapacity> shares;    // of a device that may be given several times
  std::vector<TopCapacity> counters;  // that it would take, of its pool
  TopUsage usage;                     // what its driver tells
  bool shared = false;                // may be given several times
  bool gone = false;                  // no slice has it
  bool incomplete = false;            // its pool is not whole
  bool blocked = false;               // other partitions have used up the counters
  bool full = false;                  // shared, and nothing is left of a capacity

  bool held() const { return !claims.empty(); }
  /// Somebody who asks could get it, or a share of it.
  bool free() const;
  /// "free", "held", "shared", "blocked", "incomplete", "gone"; with ",tainted" and ",unhealthy".
  std::string state() const;
};

/// By node, driver, pool and name; numbers in names count as such.
std::vector<TopDevice> devices_in(const WhyObjects& objects);

/// Pods that have reserved a claim: "default/a", sorted.
std::vector<std::string> pods_of_claim(const json::Value& claim);
std::string key_of_claim(const json::Value& claim);

/// gpu-2 before gpu-10.
bool comes_before(std::string_view a, std::string_view b);

}  // namespace dibs::cli
