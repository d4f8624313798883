#pragma once
// The roles and bindings that a new cluster begins with.

#include <vector>

#include "json/value.h"

namespace dibs::server::auth {

/// Which models of resource.k8s.io the server serves.
enum class DeviceModels : char { structured, classic, both };

/// ClusterRoles, ClusterRoleBindings, Roles and RoleBindings, each with apiVersion, kind and
/// metadata.
std::vector<json::Value> bootstrap_roles(DeviceModels models = DeviceModels::structured);

}  // namespace dibs::server::auth
