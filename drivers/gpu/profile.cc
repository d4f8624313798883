#include "drivers/gpu/profile.h"

#include <algorithm>

#include "base/plug_points.h"

namespace dibs::drivers {
namespace {

constexpr ProfileKind kProfiles[] = {
    {"gpu", make_gpu_profile},
    {"net", make_net_profile},
    {"cpu", make_cpu_profile},
};

}  // namespace

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
