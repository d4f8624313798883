#pragma once
// The applications that pods belong to: pools that subnets make for them, and the addresses that
// pods of a StatefulSet keep. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/model/ip_pool.h"
#include "drivers/net/model/pod_networks.h"
#include "json/value.h"

namespace dibs::drivers::net {

/// The top controller of a pod: the Deployment of its ReplicaSet, the CronJob of its Job, ….
struct Application {
  std::string api_group, api_version, kind;  // "apps", "v1", "Deployment"; "" is a pod of its own
  std::string name_space, name, uid;
  bool orphan() const { return kind.empty(); }
};

/// The controller in metadata.ownerReferences; an orphan where there is none.
Application controller_of(const json::Value& object);
/// From the pod and the object that controls it (null where it is not known or there is none).
Application application_of(const json::Value& pod, const json::Value& controller);

/// "auto4-demo-eth0-1a2b3": one pool per application, interface and family.
std::string auto_pool_name(const Application& application, std::string_view interface, int version);
/// The five labels of podAffinity.matchLabels: ipam.spidernet.io/app-….
json::Value application_labels(const Application& application);
/// Was the pool made by a subnet?
bool is_auto_pool(const IpPool& pool);
/// Is the pool made for this application?
bool is_pool_of(const IpPool& pool, const Application& application);

/// How many addresses the pool of an application with so many replicas has.
std::int64_t wanted_addresses(const PoolSize& size, std::int64_t replicas);
/// spec.replicas, completions or the nodes of a DaemonSet (status.desiredNumberScheduled).
std::int64_t replicas_of(const json::Value& controller);

/// The SpiderIPPool object that the subnet makes, with its lowest addresses that no other pool of
/// `held` has. Errors: the subnet has too few.
Result<json::Value> make_auto_pool(const IpSubnet& subnet, const json::Value& subnet_object,
                                   const Application& application, std::string_view interface,
                                   std::int64_t wanted, bool reclaim, const IpSet& held);
/// spec.ips of an auto pool brought to `wanted` addresses: the lowest free ones of the subnet are
/// added, the highest that nobody uses are given back. A pool that was not admitted gives up what
/// others hold. Errors: the subnet has too few.
Result<IpSet> resize_auto_pool(const IpPool& pool, const PoolStatus& status, const IpSubnet& subnet,
                               std::int64_t wanted, const IpSet& held);
/// May the pool be deleted? Its application is gone, nobody uses it, and it is to be reclaimed.
bool is_reclaimable(const json::Value& pool, const PoolStatus& status, bool application_exists);

/// "web-3" of StatefulSet "web": 3.
std::optional<std::int64_t> ordinal_of(std::string_view pod, std::string_view stateful_set);
/// Will the StatefulSet (null: gone) make a pod of this name again? Then its addresses stay.
bool keeps_addresses(std::string_view pod, const json::Value& stateful_set);

}  // namespace dibs::drivers::net
