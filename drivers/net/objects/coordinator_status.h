#pragma once
// The status of a SpiderCoordinator: which addresses are the cluster's own, so that pods reach them
// through their host.

#include "client/client.h"
#include "json/value.h"

namespace dibs::drivers::net {

/// Asks the cluster, in the way that the object's podCIDRType says. What cannot be found out makes
/// the phase NotReady, with the reason. `api` is asked for objects of others, which need not exist.
json::Value coordinator_status(const json::Value& object, client::Client& api);

}  // namespace dibs::drivers::net
