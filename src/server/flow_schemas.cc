#include "server/flow_schemas.h"

#include <algorithm>
#include <initializer_list>

namespace dibs::server {
namespace {

constexpr PriorityLevel kLevels[] = {
    {"exempt"},
    {"system", 30, 64, 6, 50},
    {"node-high", 40, 64, 6, 50},
    {"leader-election", 10, 16, 4, 50},
    {"workload-high", 40, 128, 6, 50},
    {"workload-low", 100, 128, 6, 50},
    {"global-default", 20, 128, 6, 50},
    {"catch-all", 5},
};

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_of_kube_system(const auth::UserInfo& user) {
  return user.name.starts_with("system:serviceaccount:kube-system:");
}

struct ResourceRule {
  std::string_view group;
  std::string_view resource;
  std::string_view subresource;

  bool matches(const RequestInfo& info) const {
    return info.is_resource && info.group == group && info.resource == resource &&
           info.subresource == subresource;
  }
};
constexpr ResourceRule kLeases{"coordination.k8s.io", "leases", {}};
constexpr ResourceRule kNodes{{}, "nodes", {}};
constexpr ResourceRule kNodeStatus{{}, "nodes", "status"};

bool is_probe(const RequestInfo& info) {
  return !info.is_resource && info.verb == "get" &&
         is_one_of(info.path, {"/healthz", "/readyz", "/livez"});
}

enum class By : char { nothing, user, name_space };

struct Schema {
  std::string_view name;
  std::string_view level;
  By distinguishes;
  bool (*matches)(const auth::UserInfo& user, const RequestInfo& info);
};

/// The first that matches counts.
constexpr Schema kSchemas[] = {
    {"exempt", "exempt", By::nothing,
     [](const auth::UserInfo& user, const RequestInfo&) { return user.in_group(auth::kMasters); }},
    {"probes", "exempt", By::nothing,
     [](const auth::UserInfo&, const RequestInfo& info) { return is_probe(info); }},
    {"system-leader-election", "leader-election", By::user,
     [](const auth::UserInfo& user, const RequestInfo& info) {
       return kLeases.matches(info) && is_one_of(info.verb, {"get", "create", "update"}) &&
              (is_one_of(user.name, {"system:kube-controller-manager", "system:kube-scheduler"}) ||
               is_of_kube_system(user));
     }},
    {"system-node-high", "node-high", By::user,
     [](const auth::UserInfo& user, const RequestInfo& info) {
       return user.in_group("system:nodes") &&
              (kNodes.matches(info) || kNodeStatus.matches(info) || kLeases.matches(info));
     }},
    {"system-nodes", "system", By::user,
     [](const auth::UserInfo& user, const RequestInfo&) { return user.in_group("system:nodes"); }},
    {"kube-controller-manager", "workload-high", By::name_space,
     [](const auth::UserInfo& user, const RequestInfo&) {
       return user.name == "system:kube-controller-manager";
     }},
    {"kube-scheduler", "workload-high", By::name_space,
     [](const auth::UserInfo& user, const RequestInfo&) {
       return user.name == "system:kube-scheduler";
     }},
    {"kube-system-service-accounts", "workload-high", By::name_space,
     [](const auth::UserInfo& user, const RequestInfo&) { return is_of_kube_system(user); }},
    {"service-accounts", "workload-low", By::user,
     [](const auth::UserInfo& user, const RequestInfo&) {
       return user.in_group("system:serviceaccounts");
     }},
    {"global-default", "global-default", By::user,
     [](const auth::UserInfo& user, const RequestInfo&) {
       return user.in_group(auth::kAuthenticated) || user.in_group(auth::kUnauthenticated);
     }},
    {"catch-all", "catch-all", By::user,
     [](const auth::UserInfo&, const RequestInfo&) { return true; }},
};

std::size_t level_at(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kLevels, name, &PriorityLevel::name) - kLevels);
}

}  // namespace

std::span<const PriorityLevel> priority_levels() { return kLevels; }

Flow flow_of(const auth::UserInfo& user, const RequestInfo& info) {
  const Schema& schema =
      *std::ranges::find_if(kSchemas, [&](const Schema& one) { return one.matches(user, info); });
  Flow flow{level_at(schema.level), schema.name, {}};
  if (schema.distinguishes == By::user) flow.distinguisher = user.name;
  if (schema.distinguishes == By::name_space) flow.distinguisher = info.name_space;
  return flow;
}

bool is_long_running(const RequestInfo& info) {
  return info.is_resource &&
         is_one_of(info.subresource, {"attach", "exec", "log", "proxy", "portforward"});
}

}  // namespace dibs::server
