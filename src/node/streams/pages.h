#pragma once
// What the node tells about itself: JSON for tools that look at kubelets.

#include <string>
#include <vector>

#include "base/time.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

/// A v1 PodList.
json::Value pod_list(const std::vector<json::Value>& pods);
/// The pods that the runtime has sandboxes of, with the containers that run.
Result<json::Value> running_pods(ContainerRuntime& containers);
/// The shape of the kubelet's summary, with names and times; usage is not measured.
json::Value stats_summary(const std::string& node_name, const std::vector<json::Value>& pods,
                          Time started);

}  // namespace dibs::node
