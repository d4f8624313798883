#pragma once
// Which nodes a daemon's pod belongs on: by name, labels, affinity and taints.

#include "json/value.h"

namespace dibs::controllers {

/// spec.nodeSelector and the required node affinity of a pod's spec hold for the node.
bool node_selected(const json::Value& pod_spec, const json::Value& node);
bool tolerates(const json::Value& toleration, const json::Value& taint);
/// Every taint is tolerated; with `no_execute_only` those that keep new pods away do not count.
bool tolerates_all(const json::Value& tolerations, const json::Value& taints, bool no_execute_only);

}  // namespace dibs::controllers
