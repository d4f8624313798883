#pragma once
// What Services and their endpoints share.

#include <string_view>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// "may not be in the loopback range …" and the like.
void validate_non_special_ip(std::string_view ip, const Path& path, FieldErrors& errors);
/// Endpoints, EndpointSlice. endpoints.cc
KindRules endpoints_rules();
KindRules endpoint_slice_rules();
/// network_policy.cc
KindRules network_policy_rules();

}  // namespace dibs::api
