#pragma once
// Labels and taints that the owner of a cluster wants its nodes to have.
//
// They are on the Nodes before the agents start: no pod comes too early, and labels and taints that
// a node may not give itself are possible. What was wanted stands in an annotation, so that a later
// start takes back what is wanted no more and leaves alone what others wrote.

#include "base/result.h"
#include "client/client.h"
#include "cluster/nodes.h"

namespace dibs::cluster {

/// Of the Node: JSON with `labels` and `taints`.
inline constexpr const char* kShapeAnnotation = "dibs.dev/shape";

/// Makes or changes the Nodes, and removes those that are gone. `owner` may do so. Waits.
Result<> shape_nodes(client::Client& owner, const NodesOptions& options);

}  // namespace dibs::cluster
