#pragma once
// The service by which the node's agent finds out what a plugin is.

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "rpc/server.h"

namespace dibs::driver {

struct RegistrationInfo {
  std::string driver_name = {};
  std::string endpoint = {};
  std::vector<std::string> supported_versions = {};
};

/// `told` gets what the agent made of the registration; an error where it refused.
rpc::Methods registration_methods(RegistrationInfo info, std::function<void(Result<>)> told);

}  // namespace dibs::driver
