#pragma once
// status.containerStatuses and its siblings, one container at a time.

#include "node/pods/pod_spec.h"
#include "node/pods/pod_status.h"

namespace dibs::node {

/// All three lists of the pod: initContainerStatuses in the order of the spec, the others by name.
/// Absent ones are empty.
struct ContainerStatuses {
  json::Value init = {};
  json::Value regular = {};
  json::Value ephemeral = {};
};
ContainerStatuses make_container_statuses(const StatusInput& input);

}  // namespace dibs::node
