#pragma once
// Resources that change while a pod runs: what is asked for (the spec), what the node has granted
// (the allocation) and what containers have (told to the kernel) are three things.
//
// The allocation is kept with the pod's sandbox, what the kernel was told with the sandbox and the
// containers, as annotations in the runtime: so an agent that dies in the midst of a resize leaves
// what the next one needs. Pure functions; PodWorker does what they say.

#include <optional>
#include <string>
#include <vector>

#include "json/value.h"
#include "node/pods/pod_status.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

/// Annotation of a sandbox: what the node has granted the pod (JSON, allocation_of()).
inline constexpr const char* kAllocationAnnotation = "dibs.dev/allocation";
/// Of sandboxes and containers: what the kernel was told (limits_text()).
inline constexpr const char* kLimitsAnnotation = "dibs.dev/limits";

/// All that a resize may change: {"": resources of the pod, "name": of a container, …}.
json::Value allocation_of(const json::Value& pod);
/// The pod as if its spec asked for that.
json::Value with_allocation(json::Value pod, const json::Value& allocation);

/// Why the node does not grant what the pod asks for: Infeasible (never) or Deferred (not now).
/// `pod` has what is asked for, `others` what they were granted.
std::optional<WaitingReason> refuse_resize(const json::Value& pod, const json::Value& node,
                                           const std::vector<json::Value>& others);

/// What changed is something that the container has to be started anew for, by its resizePolicy.
bool restarts_for(const json::Value& container, const json::Value& had, const json::Value& has);

std::string limits_text(const ContainerLimits& limits);
/// Nothing where it is no such text.
std::optional<ContainerLimits> read_limits(const std::string& text);
/// Of each limit the wider one, so that neither what was nor what comes is cut short.
ContainerLimits wider(const ContainerLimits& a, const ContainerLimits& b);

/// {"containers": […], "generation": 2}: how events tell of a resize.
std::string resize_summary(const json::Value& pod, const std::string& error);

}  // namespace dibs::node
