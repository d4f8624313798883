#pragma once
// The seccomp profile RuntimeDefault: what every container may ask of the kernel, what it may with
// a capability, and nothing else.

#include <set>
#include <string>
#include <string_view>

#include "json/value.h"

namespace dibs::node {

/// For linux.seccomp of an OCI configuration. `capabilities`: those of the container, "CAP_…";
/// `machine`: as uname(2) names it, "x86_64".
json::Value default_seccomp(const std::set<std::string>& capabilities, std::string_view machine);

}  // namespace dibs::node
