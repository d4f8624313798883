#pragma once
// The roles and bindings that a new cluster begins with.

#include <string_view>
#include <vector>

#include "json/value.h"

namespace dibs::server::auth {

/// Which models of resource.k8s.io the server serves.
enum class DeviceModels : char { structured, classic, both };

/// Which groups of scheduling.k8s.io it serves: none, those of pods with their Workloads, or those
/// of groups, too.
enum class GroupKinds : char { none, pods, groups };

/// ClusterRoles, ClusterRoleBindings, Roles and RoleBindings, each with apiVersion, kind and
/// metadata.
std::vector<json::Value> bootstrap_roles(DeviceModels models = DeviceModels::structured,
                                         GroupKinds groups = GroupKinds::none);

/// `existing` with the rights or subjects that it lacks of `wanted`: what an earlier program or
/// another release has written. Nothing is taken away. Null where nothing is missing, or where
/// somebody has turned off its annotation rbac.authorization.kubernetes.io/autoupdate.
json::Value brought_up_to_date(const json::Value& existing, const json::Value& wanted);

/// Of a driver in this process, which is `account` in kube-system: what the chart of a driver gives
/// it, for the devices of `driver` alone, and the right to create its DeviceClass.
std::vector<json::Value> driver_roles(std::string_view account, std::string_view driver);
/// A ClusterRole of these rules for an account in kube-system, named as it.
std::vector<json::Value> account_roles(std::string_view account, const json::Value& rules);
/// Of the controller that answers ResourcePoolStatusRequests, where they are served.
std::vector<json::Value> pool_status_roles();
/// Of `user`, who watches pods and services for all nodes of a fleet.
std::vector<json::Value> fleet_roles(std::string_view user);
/// What nodes and pods use, for whoever may view other things.
std::vector<json::Value> metrics_roles();
/// What programs Services and policies on machines reads besides: which pods are where, and who may
/// speak to whom; of nodes in processes of their own also endpoints.
std::vector<json::Value> service_roles();

}  // namespace dibs::server::auth
