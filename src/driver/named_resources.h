#pragma once
// Devices as release 1.30 offers them: named resources, which a driver streams to the node's agent
// and which the agent publishes in ResourceSlices (resource.k8s.io/v1alpha2).

#include <string>
#include <vector>

#include "driver/pool.h"

namespace dibs::driver {

/// A NodeListAndWatchResourcesResponse with one model per pool. Attributes keep their kind,
/// capacities become quantities. Names are in lower case there and know no underscore, and have no
/// domain: "numa_Node" is "numa-node". Devices with taints or counters, which the release has no
/// words for, are left out.
std::string named_resources(const std::vector<Pool>& pools);

}  // namespace dibs::driver
