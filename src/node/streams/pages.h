#pragma once
// What the node tells about itself: JSON for tools that look at kubelets.

#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

/// A v1 PodList.
json::Value pod_list(const std::vector<json::Value>& pods);
/// The pods that the runtime has sandboxes of, with the containers that run.
Result<json::Value> running_pods(ContainerRuntime& containers);

}  // namespace dibs::node
