#pragma once
// What the type of a Service brings with it: addresses, ports of nodes, ways in from outside.
// Shared by what is made of a Service (service_prepare.cc) and how it is judged (service.cc).

#include <string_view>

#include "api/kinds/checks.h"
#include "api/schema/kind.h"

namespace dibs::api {

inline std::string_view type_of(const Value& service) {
  return service["spec"]["type"].as_string();
}

inline bool is_reachable_type(std::string_view type) {
  return is_one_of(type, {"ClusterIP", "NodePort", "LoadBalancer"});
}

inline bool is_external(const Value& spec) {
  std::string_view type = spec["type"].as_string();
  return type == "LoadBalancer" || type == "NodePort" ||
         (type == "ClusterIP" && !spec["externalIPs"].empty());
}

inline bool is_headless(const Value& service) {
  return service["spec"]["clusterIPs"].size() == 1 &&
         service["spec"]["clusterIPs"][0].as_string() == "None";
}

inline bool needs_cluster_ip(const Value& service) { return is_reachable_type(type_of(service)); }

inline bool needs_node_ports(const Value& service) {
  std::string_view type = type_of(service);
  return type == "NodePort" ||
         (type == "LoadBalancer" && service["spec"]["allocateLoadBalancerNodePorts"].as_bool(true));
}

inline bool needs_health_check_port(const Value& service) {
  return type_of(service) == "LoadBalancer" &&
         service["spec"]["externalTrafficPolicy"].as_string() == "Local";
}

inline std::string_view family_of(std::string_view ip) {
  return ip.find(':') == std::string_view::npos ? "IPv4" : "IPv6";
}

void set_service_defaults(Value& service);
void prepare_service(Value& service, const RuleContext& context);
void prepare_service_update(Value& service, const Value& old, const RuleContext& context);

}  // namespace dibs::api
