#pragma once
// Where in the runtime the parts of a pod are.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

/// The container of that name in spec.containers, .initContainers or .ephemeralContainers.
bool has_container(const json::Value& pod, std::string_view name);

/// The id of the container whose log is meant, by the pod's status. Errors: bad_request, as the
/// kubelet words them.
Result<std::string> container_with_log(const json::Value& pod, std::string_view container,
                                       bool previous);

/// The newest one that runs; nothing when none does.
Result<std::optional<ContainerStatus>> running_container(ContainerRuntime& containers,
                                                         const json::Value& pod,
                                                         std::string_view container);

/// The newest sandbox that is ready; nothing when none is.
Result<std::optional<SandboxStatus>> ready_sandbox(ContainerRuntime& containers,
                                                   const json::Value& pod);

}  // namespace dibs::node
