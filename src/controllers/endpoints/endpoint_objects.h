#pragma once
// What the controllers of endpoints read from Services and pods, and the names that they write.
//
// Pure functions over values.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/merge/selectors.h"
#include "controllers/controller.h"

namespace dibs::controllers {

inline const Gvr kServiceResource{"", "v1", "services"};
inline const Gvr kEndpointsResource{"", "v1", "endpoints"};
inline const Gvr kSliceResource{"discovery.k8s.io", "v1", "endpointslices"};

inline constexpr const char* kServiceNameLabel = "kubernetes.io/service-name";
inline constexpr const char* kSliceManagerLabel = "endpointslice.kubernetes.io/managed-by";
inline constexpr const char* kHeadlessLabel = "service.kubernetes.io/headless";
inline constexpr const char* kTriggerTime = "endpoints.kubernetes.io/last-change-trigger-time";
inline constexpr const char* kLeaderRecord = "control-plane.alpha.kubernetes.io/leader";

/// The Service has no address of its own: its name leads to the pods.
bool is_headless(const Value& service);
/// Holds for the pods of a Service; for none where it has no selector.
api::LabelSelector service_selector(const Value& service);
/// "IPv4", "IPv6": the families of the Service.
std::vector<std::string> address_types(const Value& service);

/// The pod runs, or will, and has an address.
bool has_endpoint(const Value& pod, bool also_terminating);
/// The pod's addresses of a family ("IPv4", "IPv6"), in their usual spelling.
std::vector<std::string> pod_addresses(const Value& pod, std::string_view family);
/// The usual spelling of an address; nothing when it is none.
std::optional<std::string> canonical_ip(std::string_view text);
/// The number of a Service's port in this pod; nothing where the pod lacks that name.
std::optional<std::int64_t> target_port(const Value& pod, const Value& service_port);
/// What an endpoint of the pod says of its hostname; "": nothing.
std::string_view endpoint_hostname(const Value& pod, const Value& service);
Value pod_reference(const Value& pod);

/// A change of a pod that its endpoints may show. Labels, which decide whose endpoint it is, are
/// another matter.
bool changes_endpoints(const Value& before, const Value& after);

/// Labels of a Service without those that `reserved` names.
Value labels_without(const Value& labels, std::initializer_list<std::string_view> reserved);

/// For an index of slices: whose they are. slices_key() gives the value to look for.
std::vector<std::string> index_slices(const Value& slice);
std::string slices_key(std::string_view name_space, std::string_view service,
                       std::string_view manager);
inline constexpr const char* kBySlicesOf = "service-and-manager";

/// A slice that is not written yet, without endpoints: the API makes up the end of its name.
Value new_slice(const Value& owner, std::string_view address_type, Value labels, Value ports);
/// Equal for ports that are the same in another order.
std::string ports_key(const Value& ports);
/// What makes an endpoint the same one after a change.
std::string endpoint_key(const Value& endpoint);

}  // namespace dibs::controllers
