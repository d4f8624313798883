#pragma once
// The objects behind OciRuntime, shared by its parts.

#include <mutex>

#include "node/runtime/oci_runtime.h"

namespace dibs::node {

/// `busy` is held by whoever works on the object and taken before the runtime's mutex; the record
/// changes under the latter.
struct OciRuntime::Sandbox {
  std::mutex busy;
  SandboxRecord record;
};

struct OciRuntime::Container {
  std::mutex busy;
  ContainerRecord record;
  std::string pod_uid;
};

}  // namespace dibs::node
