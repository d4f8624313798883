#pragma once
// The Node object's content as the kubelet writes it. Functions of their arguments alone.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "node/plugins/device_plugins.h"
#include "node/pods/node_facts.h"
#include "node/pods/node_object.h"

namespace dibs::node {

struct NodeState {
  Result<> ready = Error::unavailable("container runtime is down");
  std::vector<ImageInfo> images = {};
  bool disk_pressure = false;
  DeviceAmounts devices = {};  // of device plugins
  /// Attached volumes; nothing: not known yet, what stands in the status stays.
  std::optional<std::vector<std::string>> volumes_in_use = {};
};

json::Value node_capacity(const NodeOptions& options);
/// The capacity, less the part of the disk below which pods are sent away.
json::Value node_allocatable(const NodeOptions& options);
/// Labels, annotations and taints of a new node, with its first status.
json::Value new_node(const NodeFacts& facts, const NodeOptions& options, const NodeState& state,
                     Time now);
/// The status now. `before` is the one that stands: times of conditions that stay are kept.
json::Value node_status(const NodeFacts& facts, const NodeOptions& options, const NodeState& state,
                        const json::Value& before, Time now);

/// Reasons of the events that the step from one status to the next is worth: NodeReady,
/// NodeHasSufficientMemory, ….
std::vector<std::string> condition_events(const json::Value& before, const json::Value& after);

/// Labels and annotations that an existing node lacks or has other values of, as a merge patch of
/// metadata; null when nothing is to do.
json::Value metadata_patch(const json::Value& existing, const NodeFacts& facts,
                           const NodeOptions& options);

}  // namespace dibs::node
