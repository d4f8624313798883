#pragma once
// What a cluster lives in: clock, threads and files, real or simulated.

#include <functional>

#include "runtime/files.h"
#include "runtime/runtime.h"
#include "runtime/sim_runtime.h"

namespace dibs::cluster {

struct World {
  runtime::Runtime& runtime;
  runtime::Files& files;
  /// Runs what was posted and lets nothing begin afterwards; `runtime` may be gone then.
  std::function<void()> finish;
  /// Set where one thread does everything: makes something happen, false when nothing can. Who
  /// waits for an answer drives it instead.
  std::function<bool()> pump = {};
};

/// This machine. The runtime ends with finish(), or with the last copy of the world.
World real_world();

/// One thread under virtual time; `sim` and `files` must outlive the world.
World sim_world(runtime::SimRuntime& sim, runtime::Files& files);

}  // namespace dibs::cluster
