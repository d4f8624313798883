#pragma once
// The objects behind OciRuntime, shared by its parts.

#include "base/mutex.h"
#include "node/runtime/oci_runtime.h"

namespace dibs::node {

/// `busy` is held by whoever works on the object and taken before the runtime's mutex; the record
/// changes under the latter.
struct OciRuntime::Sandbox {
  Mutex busy;
  SandboxRecord record;
};

struct OciRuntime::Container {
  Mutex busy;
  ContainerRecord record;
  std::string pod_uid;
};

}  // namespace dibs::node
