#pragma once
// What the network driver needs of a cluster before it can work: its kinds (CRDs), classes, the
// rights of nodes to read NetworkAttachmentDefinitions, and the SpiderCoordinator `default`.
//
// The kinds are texts (crds/*.yaml) that are part of the program. Installing is repeatable: what is
// there already is brought up to date, what a user may change (SpiderCoordinator) is made once and
// left alone then.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "drivers/net/model/ip_pool.h"
#include "json/value.h"

namespace dibs::drivers::net {

inline constexpr std::string_view kVersion = "v2beta1";
inline constexpr std::string_view kClassicDriver = "netresources.spidernet.io";
inline constexpr std::string_view kDriver = "dra.spidernet.io";

inline const client::Gvr kClaimParameters = {"spiderpool.spidernet.io", "v2beta1",
                                             "spiderclaimparameters"};
inline const client::Gvr kMultusConfigs = {"spiderpool.spidernet.io", "v2beta1",
                                           "spidermultusconfigs"};
inline const client::Gvr kIpPools = {"spiderpool.spidernet.io", "v2beta1", "spiderippools"};
inline const client::Gvr kSubnets = {"spiderpool.spidernet.io", "v2beta1", "spidersubnets"};
inline const client::Gvr kReservedIps = {"spiderpool.spidernet.io", "v2beta1", "spiderreservedips"};
inline const client::Gvr kEndpoints = {"spiderpool.spidernet.io", "v2beta1", "spiderendpoints"};
inline const client::Gvr kCoordinators = {"spiderpool.spidernet.io", "v2beta1",
                                          "spidercoordinators"};
inline const client::Gvr kNodeStates = {"spiderpool.spidernet.io", "v2beta1", "spidernodestates"};
inline const client::Gvr kNetAttachDefs = {"k8s.cni.cncf.io", "v1",
                                           "network-attachment-definitions"};

struct InstallOptions {
  /// 30 for 1.30; 0: the server is asked.
  int release = 0;
};

/// Goes through all of it once. Error unavailable: the server does not serve a kind yet, call
/// again. Other errors are the server's, and name the object.
Result<> install(client::Client& api, const InstallOptions& options = {});

/// The CRDs as a server of that release takes them.
Result<std::vector<json::Value>> crds(int release);

/// What the driver's two halves do, as the `rules` of a ClusterRole.
json::Value controller_rules();
json::Value node_rules();

}  // namespace dibs::drivers::net
