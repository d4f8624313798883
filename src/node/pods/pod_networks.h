#pragma once
// Networks that a pod names, as Multus has them: its annotations, and the
// NetworkAttachmentDefinitions behind them.
//
//     v1.multus-cni.io/default-network: kube-system/macvlan-conf   eth0, instead of the node's own
//     k8s.v1.cni.cncf.io/networks: a,other/b@data                  net1, data
//
// A driver that gives an interface a device of its own (a virtual function) writes the PCI address
// into <root>/network-devices/<pod uid>_<interface> before the sandbox is made; plugins get it as
// deviceID and pciBusID.
//
// A definition's configuration is run by root, so which ones a pod may name counts: those of its
// own namespace and of the namespaces that the node shares (NodeFacts::network_namespaces).

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "json/value.h"
#include "node/pods/node_facts.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

inline constexpr const char* kDefaultNetworkAnnotation = "v1.multus-cni.io/default-network";
inline constexpr const char* kNetworksAnnotation = "k8s.v1.cni.cncf.io/networks";
inline constexpr const char* kNetworkStatusAnnotation = "k8s.v1.cni.cncf.io/network-status";

struct NetworkName {
  std::string name_space = {};
  std::string name = {};
  std::string interface = {};
  std::string mac = {};
  std::vector<std::string> ips = {};
};

/// What the annotations name, eth0 first. Errors name the annotation.
Result<std::vector<NetworkName>> named_networks(const json::Value& pod);

/// `notes`: warnings to record as events, as {reason, note}.
struct NetworksPlan {
  std::vector<SandboxNetwork> networks = {};
  std::vector<std::pair<std::string, std::string>> notes = {};
};

/// For a new sandbox. A pod that names networks, or has claims, whose drivers may name some for it,
/// is read from the server once more; others cost nothing. Errors are for the event: they name the
/// definition that is missing, wrong or not the pod's to use.
Result<NetworksPlan> plan_networks(client::Client& client, const json::Value& pod,
                                   const NodeFacts& facts);

}  // namespace dibs::node
