#include "drivers/gpu/profile.h"

#include "base/strings.h"

namespace dibs::drivers {

json::Value Profile::status_data(const json::Value&) const { return {}; }

Result<std::unique_ptr<Profile>> make_profile(std::string_view name,
                                              const ProfileOptions& options) {
  if (name == "gpu") return make_gpu_profile(options);
  if (name == "net") return make_net_profile(options);
  if (name == "cpu") return make_cpu_profile(options);
  return Error::invalid(cat("invalid device profile ", quoted(name),
                            ", valid profiles are [\"cpu\" \"gpu\" \"net\"]"));
}

}  // namespace dibs::drivers
