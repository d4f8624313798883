#pragma once
// What of a GPU can be given to a claim: the whole of it, or one of the places for a MIG instance.
//
//   gpu-0                       the GPU with minor number 0
//   gpu-0-mig-1g18gb-19-4       profile 1g.18gb, whose id is 19, from memory slice 4 on
//
// Names are those of NVIDIA's own DRA driver, so that what is said of its devices holds here.
// Nothing here does I/O.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "drivers/nvidia/inventory.h"

namespace dibs::drivers::nvidia {

/// Who makes MIG instances.
enum class MigMode : std::uint8_t {
  /// This driver: one is made when a claim is prepared, and destroyed when it is not any more.
  dynamic,
  /// Somebody else. Those that are there are devices.
  fixed,
};

struct Part {
  std::string name = {};
  std::string gpu_uuid = {};
  unsigned minor = 0;

  /// Of a MIG part.
  std::optional<nvml::MigProfile> profile = {};
  nvml::Placement placement = {};
  /// Of an instance that is there already and was not made by this driver.
  std::string mig_uuid = {};

  bool is_mig() const { return profile.has_value(); }
  /// Made by somebody else: neither created nor destroyed for a claim.
  bool is_found() const { return !mig_uuid.empty(); }
};

std::string gpu_name(unsigned minor);
std::string mig_name(unsigned minor, const nvml::MigProfile& profile, nvml::Placement placement);

bool overlap(nvml::Placement a, nvml::Placement b);

/// All parts of a GPU, itself first. `ours` are the GPU instances that this driver has made.
///
/// Where others have instances on it, neither the GPU itself nor a place that they cover is a part,
/// but what they have is.
std::vector<Part> parts_of(const Gpu& gpu, MigMode mode, const std::set<unsigned>& ours);

/// What a GPU has of each thing that its partitions share, by the name of the counter; without the
/// memory slices. Empty where no partition can be made.
using Amounts = std::vector<std::pair<std::string, std::uint64_t>>;
Amounts amounts_of(const nvml::MigProfile& profile);
struct Totals {
  /// Of the largest profile, which is what a whole GPU has.
  Amounts whole = {};
  /// What all partitions may take together. More than `whole` where a GPU full of small ones has
  /// more of something than one large one.
  Amounts counters = {};
  unsigned memory_slices = 0;
};
Totals totals_of(const Gpu& gpu);

}  // namespace dibs::drivers::nvidia
