#include "drivers/gpu/profile.h"

#include <algorithm>

#include "base/plug_points.h"
#include "base/strings.h"

namespace dibs::drivers {
namespace {

constexpr ProfileKind kProfiles[] = {
    {"gpu", make_gpu_profile},
    {"net", make_net_profile},
    {"cpu", make_cpu_profile},
};

}  // namespace

bool is_pcie_root(std::string_view text) {
  if (!text.starts_with("pci")) return false;
  const auto parts = split(text.substr(3), ':');
  const auto digits = [](std::string_view part) {
    return std::all_of(part.begin(), part.end(),
                       [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  };
  // A domain has more than four digits where a bridge makes up its own.
  return parts.size() == 2 && parts[0].size() >= 4 && parts[0].size() <= 8 && digits(parts[0]) &&
         parts[1].size() == 2 && digits(parts[1]);
}

std::span<const ProfileKind> profile_kinds() { return kProfiles; }

json::Value Profile::status_data(const json::Value&) const { return {}; }

Result<std::unique_ptr<Profile>> make_profile(std::string_view name,
                                              const ProfileOptions& options) {
  if (const auto* kind = find_named(profile_kinds(), name)) return kind->make(options);
  auto names = names_of(profile_kinds());
  std::sort(names.begin(), names.end());
  for (auto& known : names) known = quoted(known);
  return Error::invalid(cat("invalid device profile ", quoted(name), ", valid profiles are [",
                            join(names, " "), "]"));
}

}  // namespace dibs::drivers
