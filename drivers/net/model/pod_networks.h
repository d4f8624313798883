#pragma once
// Which interfaces a pod is to have, and what its annotations ask for them. Pure.
//
// The default interface comes from the annotation of Multus or from a claim, the further ones as
// well; where annotations and claims both name interfaces, they must agree.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/model/ip_pool.h"
#include "json/value.h"

namespace dibs::drivers::net {

inline constexpr std::string_view kDefaultNetwork = "v1.multus-cni.io/default-network";
inline constexpr std::string_view kNetworks = "k8s.v1.cni.cncf.io/networks";
inline constexpr std::string_view kDefaultRouteNic = "ipam.spidernet.io/default-route-nic";
inline constexpr std::string_view kDefaultInterface = "eth0";

struct PodNic {
  std::string interface;
  std::string multus;  // "ns/name"
  bool default_route = false;
  friend bool operator==(const PodNic&, const PodNic&) = default;
};

/// From the annotations, eth0 first. Pods without them have none. `cluster_network` ("ns/name" or
/// "") is what eth0 is on where the pod does not say.
Result<std::vector<PodNic>> pod_nics(const json::Value& pod, std::string_view install_namespace,
                                     std::string_view cluster_network = {});

/// What one claim names.
struct AskedNic {
  std::string multus;  // "ns/name"
  bool default_route = false;
};
struct AskedNics {
  std::optional<AskedNic> default_nic;
  std::vector<AskedNic> secondary;
};

/// The pod's interfaces when its claims (in the order of spec.resourceClaims) name some, too.
/// Errors: conflict, where two claims have a default interface, or annotations say otherwise: that
/// is the event NicConflict.
Result<std::vector<PodNic>> pod_nics(const json::Value& pod, const std::vector<AskedNics>& claims,
                                     std::string_view install_namespace,
                                     std::string_view cluster_network = {});

/// The annotations that say the same as `nics`, as a map: what is written into a pod whose claims
/// alone name interfaces.
json::Value nic_annotations(const std::vector<PodNic>& nics);

// --- What the annotations of pods and namespaces say about addresses.

/// One item of ipam.spidernet.io/ippools; interface "" where none has a name.
struct PoolsOfNic {
  std::string interface;
  std::vector<std::string> ipv4;
  std::vector<std::string> ipv6;
  bool clean_gateway = false;
  friend bool operator==(const PoolsOfNic&, const PoolsOfNic&) = default;
};
/// Empty where the pod does not have it; ipam.spidernet.io/ippool is one item without a name.
struct PoolAnnotations {
  bool per_nic = false;  // of ippools, not of ippool
  std::vector<PoolsOfNic> items;
};
Result<PoolAnnotations> pool_annotations(const json::Value& pod);

/// One item of ipam.spidernet.io/subnets (or /subnet, which is for the first interface).
struct SubnetsOfNic {
  std::string interface;
  std::vector<std::string> ipv4;
  std::vector<std::string> ipv6;
  friend bool operator==(const SubnetsOfNic&, const SubnetsOfNic&) = default;
};
Result<std::vector<SubnetsOfNic>> subnet_annotations(const json::Value& pod);

/// ipam.spidernet.io/routes.
Result<std::vector<Route>> route_annotation(const json::Value& pod);
/// ipam.spidernet.io/default-ipv4-ippool and -ipv6-: `version` is 4 or 6. Empty where not set.
Result<std::vector<std::string>> namespace_default_pools(const json::Value& name_space,
                                                         int version);

/// ipam.spidernet.io/ippool-ip-number: "5" is exactly five, "+2" is two more than replicas.
struct PoolSize {
  bool flexible = true;
  std::int64_t number = 1;
  friend bool operator==(const PoolSize&, const PoolSize&) = default;
};
Result<PoolSize> pool_size_annotation(const json::Value& pod, const PoolSize& fallback = {});
/// ipam.spidernet.io/ippool-reclaim; true where not set.
Result<bool> pool_reclaim_annotation(const json::Value& pod);

}  // namespace dibs::drivers::net
