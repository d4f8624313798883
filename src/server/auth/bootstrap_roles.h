#pragma once
// The roles and bindings that a new cluster begins with.

#include <vector>

#include "json/value.h"

namespace dibs::server::auth {

/// ClusterRoles, ClusterRoleBindings, Roles and RoleBindings, each with apiVersion, kind and
/// metadata.
std::vector<json::Value> bootstrap_roles();

}  // namespace dibs::server::auth
