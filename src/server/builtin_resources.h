#pragma once
// The built-in resources that a release serves.

#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/resource.h"

namespace dibs::server {

/// Errors: bad_request, naming the releases that can be emulated.
Result<std::vector<ResourcePtr>> builtin_resources(std::string_view release);

/// A set of these and those of custom kinds, with its catalog.
ResourceSetPtr make_resource_set(const std::vector<ResourcePtr>& builtin,
                                 const std::vector<ResourcePtr>& custom, std::uint64_t generation);

}  // namespace dibs::server
