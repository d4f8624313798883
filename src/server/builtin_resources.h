#pragma once
// The built-in resources that a server serves: those of its release, as its flags have it.

#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/options.h"
#include "server/resource.h"

namespace dibs::server {

/// Errors: bad_request, for a release, gate or version that is not known, naming those that are.
Result<std::vector<ResourcePtr>> builtin_resources(const Options& options);

/// Every version of every built-in kind, served or not, as the newest release has it: what may be
/// found in a store that others wrote.
std::vector<ResourcePtr> known_resources();
/// Those of them that a release has, served or not, as it has them. Errors: as above.
Result<std::vector<ResourcePtr>> release_resources(const Options& options);

/// A set of these and those of custom kinds, with its catalog.
ResourceSetPtr make_resource_set(const std::vector<ResourcePtr>& builtin,
                                 const std::vector<ResourcePtr>& custom, std::uint64_t generation);

}  // namespace dibs::server
