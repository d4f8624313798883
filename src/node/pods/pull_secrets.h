#pragma once
// Logins for registries out of a pod's imagePullSecrets. Functions of their arguments alone.

#include <string>
#include <vector>

#include "json/value.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

/// Those for the image's registry and repository, the one for the longest name first. Secrets of
/// other types, and what cannot be read, have none.
std::vector<PullLogin> pull_logins(const std::string& image,
                                   const std::vector<json::Value>& secrets);

}  // namespace dibs::node
