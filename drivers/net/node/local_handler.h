#pragma once
// What the CNI plugins of this node are answered: addresses from the pools, and back; and what
// became of an interface goes into the status of the pod's claims.

#include <functional>
#include <optional>
#include <string>

#include "client/client.h"
#include "drivers/net/control/networks.h"
#include "drivers/net/ipam/ipam.h"
#include "drivers/net/node/local_service.h"
#include "drivers/net/node/pod_networks_writer.h"

namespace dibs::drivers::net {

class NodeLocalHandler : public LocalHandler {
 public:
  /// All must outlive it.
  NodeLocalHandler(client::Client& api, Ipam& ipam, const Networks& networks,
                   PodNetworksWriter& pods, std::function<std::optional<NodeState>()> state,
                   std::string node, SelectionOptions options);

  Result<NicAddresses> add(const NicRequest& request) override;
  Result<> del(const NicRequest& request) override;
  Result<> attached(const AttachedNic& nic) override;
  Result<CoordinatorFacts> coordinator(const NicRequest& request) override;

 private:
  /// Of all interfaces of the pod that addresses are given to, so that they are given at once.
  Result<std::vector<NicAsk>> asks_for(const json::Value& pod, const NicRequest& request) const;

  client::Client& api_;
  Ipam& ipam_;
  const Networks& networks_;
  PodNetworksWriter& pods_;
  const std::function<std::optional<NodeState>()> state_;
  const std::string node_;
  const SelectionOptions options_;
};

}  // namespace dibs::drivers::net
