#pragma once
// What a Service needs of its server: addresses and ports that no other Service has.
//
// Whoever allocates asks here what is missing after prepare_create or prepare_update, fills
// clusterIP, clusterIPs and nodePorts in, and validates then.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// ClusterIP, NodePort and LoadBalancer services have an address of their own, unless it is "None".
bool needs_cluster_ip(const Value& service);
bool is_headless(const Value& service);
/// NodePort, and LoadBalancer unless allocateLoadBalancerNodePorts is false.
bool needs_node_ports(const Value& service);
/// LoadBalancer with externalTrafficPolicy Local.
bool needs_health_check_port(const Value& service);

/// Indexes of ports without a nodePort that must get one; empty when needs_node_ports() is false.
std::vector<std::size_t> missing_node_ports(const Value& service);
/// IP families for which spec.clusterIPs has no address yet, in order.
std::vector<std::string> missing_cluster_ips(const Value& service);

/// The errors of an allocator, in the words of the API.
void cluster_ip_taken(const Value& service, std::string_view ip, FieldErrors& errors);
void node_port_taken(std::size_t port, std::int64_t number, FieldErrors& errors);
void node_port_out_of_range(std::size_t port, std::int64_t number, std::string_view range,
                            FieldErrors& errors);

/// "may not be in the loopback range …" and the like.
void validate_non_special_ip(std::string_view ip, const Path& path, FieldErrors& errors);
/// Endpoints, EndpointSlice. endpoints.cc
KindRules endpoints_rules();
KindRules endpoint_slice_rules();

}  // namespace dibs::api
