#pragma once
// What Services and their endpoints share.

#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// "may not be in the loopback range …" and the like.
/// Warns about an address that is spelled in an unusual way.
void add_spelling(std::string_view ip, const std::string& path, std::vector<std::string>& texts);

void validate_non_special_ip(std::string_view ip, const Path& path, FieldErrors& errors);
/// Endpoints, EndpointSlice. endpoints.cc
KindRules endpoints_rules();
KindRules endpoint_slice_rules();
/// network_policy.cc
KindRules network_policy_rules();
/// ingress.cc
KindRules ingress_rules();
KindRules ingress_class_rules();
/// service_cidr.cc
KindRules service_cidr_rules();
KindRules ip_address_rules();

}  // namespace dibs::api
