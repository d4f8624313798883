#pragma once
// Environment variables that tell a container where services are: REDIS_SERVICE_HOST,
// REDIS_SERVICE_PORT, REDIS_PORT_6379_TCP_ADDR, ….

#include <string_view>
#include <vector>

#include "json/value.h"
#include "node/pods/env.h"

namespace dibs::node {

/// Of `kubernetes` in the default namespace always, of the pod's own namespace with
/// enableServiceLinks. Services without a cluster address have none.
EnvList service_variables(const std::vector<json::Value>& services, std::string_view name_space,
                          bool links);

}  // namespace dibs::node
