#include "drivers/net/node/local_handler.h"

#include <algorithm>

#include "base/strings.h"
#include "drivers/net/control/plan.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

const client::Gvr kPods = {"", "v1", "pods"};

NicAddresses addresses_of(const Assigned& nic) {
  NicAddresses out;
  out.ipv4 = nic.ipv4;
  out.ipv4_gateway = nic.ipv4_gateway;
  out.ipv6 = nic.ipv6;
  out.ipv6_gateway = nic.ipv6_gateway;
  out.clean_gateway = nic.clean_gateway;
  for (const Route& route : nic.routes) out.routes.push_back({route.dst.str(), route.gw.str()});
  return out;
}

}  // namespace

NodeLocalHandler::NodeLocalHandler(client::Client& api, Ipam& ipam, const Networks& networks,
                                   PodNetworksWriter& pods,
                                   std::function<std::optional<NodeState>()> state,
                                   std::string node, SelectionOptions options)
    : api_(api),
      ipam_(ipam),
      networks_(networks),
      pods_(pods),
      state_(std::move(state)),
      node_(std::move(node)),
      options_(std::move(options)) {}

Result<std::vector<NicAsk>> NodeLocalHandler::asks_for(const Value& pod,
                                                       const NicRequest& request) const {
  DIBS_TRY(const auto nics, pod_nics(pod, options_.install_namespace, options_.cluster_network));
  const auto state = state_();
  std::vector<NicAsk> out;
  bool found = false;
  for (const PodNic& nic : nics) {
    const bool asked = nic.interface == request.interface;
    auto config = networks_.definition(nic.multus);
    if (!config) {
      // One that is not there keeps only its own interface from being made.
      if (asked) return config.error();
      continue;
    }
    if (!asked && !uses_ipam(*config)) continue;
    NicAsk ask =
        ask_of({std::move(config).value(), nic.interface}, state ? &*state : nullptr, "", {});
    if (asked) {
      found = true;
      ask.ipv4_pools = request.ipv4_pools;
      ask.ipv6_pools = request.ipv6_pools;
      ask.clean_gateway = request.clean_gateway;
    }
    out.push_back(std::move(ask));
  }
  if (found) return out;
  // The node's own network uses the plugin.
  NicAsk ask;
  ask.interface = request.interface;
  ask.ipv4_pools = request.ipv4_pools;
  ask.ipv6_pools = request.ipv6_pools;
  ask.clean_gateway = request.clean_gateway;
  out.insert(request.interface == kDefaultInterface ? out.begin() : out.end(), std::move(ask));
  return out;
}

Result<NicAddresses> NodeLocalHandler::add(const NicRequest& request) {
  if (!ipam_.synced() || !networks_.synced()) {
    return Error::unavailable("pools and networks are not known yet");
  }
  DIBS_TRY(const Value pod, api_.get(kPods, request.pod.name_space, request.pod.name));
  if (!request.pod.uid.empty() && client::uid_of(pod) != request.pod.uid) {
    return Error::conflict(
        cat("pod ", request.pod.name_space, "/", request.pod.name, " is another one by now"));
  }
  if (pod["spec"]["nodeName"].as_string() != node_) {
    return Error::conflict(
        cat("pod ", request.pod.name_space, "/", request.pod.name, " is not on node ", node_));
  }
  DIBS_TRY(const auto asks, asks_for(pod, request));
  DIBS_TRY(const auto assigned, ipam_.assign(pod, node_, asks));
  for (const Assigned& nic : assigned) {
    if (nic.interface == request.interface) return addresses_of(nic);
  }
  return Error::internal(cat("no address was assigned to ", request.interface));
}

Result<> NodeLocalHandler::del(const NicRequest& request) {
  // Whoever does not know the uid leaves it to the collector.
  if (request.pod.uid.empty()) return success();
  return ipam_.release(request.pod.name_space, request.pod.name, request.pod.uid);
}

Result<> NodeLocalHandler::attached(const AttachedNic& nic) {
  pods_.attached(nic);
  return success();
}

Result<CoordinatorFacts> NodeLocalHandler::coordinator(const NicRequest& request) {
  CoordinatorFacts out;
  const auto found = api_.get(kCoordinators, "", "default");
  if (!found && found.error().code() != Code::not_found) return found.error();
  if (found) {
    out.spec = (*found)["spec"];
    for (const auto& cidr : (*found)["status"]["overlayPodCIDR"].items()) {
      out.pod_cidrs.push_back(cidr.str());
    }
    for (const auto& cidr : (*found)["status"]["serviceCIDR"].items()) {
      out.service_cidrs.push_back(cidr.str());
    }
  }
  DIBS_TRY(const Value pod, api_.get(kPods, request.pod.name_space, request.pod.name));
  out.default_route_nic = pod["metadata"]["annotations"][kDefaultRouteNic].str();
  return out;
}

}  // namespace dibs::drivers::net
