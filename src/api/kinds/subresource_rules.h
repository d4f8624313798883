#pragma once
// Rules of sub-resources that take the object itself but change only a part of it.

#include <string_view>

#include "api/schema/kind.h"

namespace dibs::api {

/// pods/ephemeralcontainers, pods/resize, namespaces/finalize: prepare_update makes the object to
/// be stored out of what was sent and what is there; validate_update judges it.
/// certificatesigningrequests/approval is used as a status. Null for others; status has its place
/// in the rules of the kind.
const KindRules* subresource_rules(std::string_view group, std::string_view kind,
                                   std::string_view subresource);

}  // namespace dibs::api
