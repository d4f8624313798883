#include "drivers/nvidia/parts.h"

#include <algorithm>
#include <cctype>

#include "base/strings.h"

namespace dibs::drivers::nvidia {
namespace {

/// "1g18gb-me" of "1g.18gb+me": dots go, what else a device's name may not have becomes '-'.
std::string profile_part(std::string_view name) {
  std::string out;
  for (const char c : to_lower(name)) {
    if (c == '.') continue;
    out.push_back(std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-');
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

/// GPU instances that this driver did not make, with those of their compute instances that can be
/// named: a GPU instance that is divided further has no name of its own among devices.
std::vector<nvml::MigInstance> found_instances(const Gpu& gpu, const std::set<unsigned>& ours) {
  std::vector<nvml::MigInstance> out;
  for (const auto& instance : gpu.instances) {
    if (ours.contains(instance.gpu_instance)) continue;
    const auto same = std::find_if(out.begin(), out.end(), [&](const nvml::MigInstance& one) {
      return one.gpu_instance == instance.gpu_instance;
    });
    if (same == out.end()) {
      out.push_back(instance);
    } else {
      same->uuid.clear();
    }
  }
  return out;
}

Part mig_part(const Gpu& gpu, const nvml::MigProfile& profile, nvml::Placement placement) {
  Part part;
  part.name = mig_name(gpu.info.minor, profile, placement);
  part.gpu_uuid = gpu.info.uuid;
  part.minor = gpu.info.minor;
  part.profile = profile;
  part.placement = placement;
  return part;
}

bool makes_instances(const Gpu& gpu, MigMode mode) {
  if (mode != MigMode::dynamic || gpu.profiles.empty()) return false;
  return can_switch_mig(gpu.info) || gpu.info.mig_enabled;
}

}  // namespace

std::string gpu_name(unsigned minor) { return cat("gpu-", minor); }

std::string mig_name(unsigned minor, const nvml::MigProfile& profile, nvml::Placement placement) {
  return cat("gpu-", minor, "-mig-", profile_part(profile.name), "-", profile.id, "-",
             placement.start);
}

bool overlap(nvml::Placement a, nvml::Placement b) {
  return a.start < b.start + b.size && b.start < a.start + a.size;
}

std::vector<Part> parts_of(const Gpu& gpu, MigMode mode, const std::set<unsigned>& ours) {
  std::vector<Part> out;
  const auto found = found_instances(gpu, ours);
  const bool makes = makes_instances(gpu, mode);
  const bool whole =
      found.empty() && (!gpu.info.mig_enabled || (makes && can_switch_mig(gpu.info)));
  if (whole) {
    Part part;
    part.name = gpu_name(gpu.info.minor);
    part.gpu_uuid = gpu.info.uuid;
    part.minor = gpu.info.minor;
    out.push_back(std::move(part));
  }
  for (const auto& instance : found) {
    const nvml::MigProfile* profile = gpu.profile(instance.profile);
    if (profile == nullptr || instance.uuid.empty()) continue;
    out.push_back(mig_part(gpu, *profile, instance.placement));
    out.back().mig_uuid = instance.uuid;
  }
  if (!makes) return out;
  for (const auto& profile : gpu.profiles) {
    for (const auto& placement : profile.placements) {
      const bool covered = std::any_of(found.begin(), found.end(), [&](const auto& instance) {
        return overlap(instance.placement, placement);
      });
      if (!covered) out.push_back(mig_part(gpu, profile, placement));
    }
  }
  return out;
}

Amounts amounts_of(const nvml::MigProfile& profile) {
  return {{"multiprocessors", profile.multiprocessors},
          {"copy-engines", profile.copy_engines},
          {"decoders", profile.decoders},
          {"encoders", profile.encoders},
          {"jpeg-engines", profile.jpeg},
          {"ofa-engines", profile.ofa},
          {"memory", profile.memory_bytes}};
}

Totals totals_of(const Gpu& gpu) {
  Totals totals;
  for (const auto& profile : gpu.profiles) {
    const Amounts amounts = amounts_of(profile);
    if (totals.whole.empty()) totals.whole = totals.counters = amounts;
    const std::uint64_t instances = std::max(1U, profile.instances);
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      auto& whole = totals.whole[i].second;
      auto& counter = totals.counters[i].second;
      whole = std::max(whole, amounts[i].second);
      counter = std::max(counter, amounts[i].second * instances);
    }
    for (const auto& placement : profile.placements) {
      totals.memory_slices = std::max(totals.memory_slices, placement.start + placement.size);
    }
  }
  return totals;
}

}  // namespace dibs::drivers::nvidia
