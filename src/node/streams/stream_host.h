#pragma once
// Where streams end: the containers, and the gate behind which these may be gone.

#include <memory>

#include "client/gate.h"
#include "node/runtime/container_runtime.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct StreamHost {
  runtime::Runtime& runtime;
  ContainerRuntime& containers;  // to be used inside the gate
  std::shared_ptr<client::Gate> gate;
};

}  // namespace dibs::node
