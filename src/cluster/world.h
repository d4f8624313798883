#pragma once
// What a cluster lives in: clock, threads and files, real or simulated.

#include <functional>

#include "runtime/files.h"
#include "runtime/runtime.h"
#include "runtime/sim_runtime.h"

namespace dibs::cluster {

struct World {
  /// The API server's. Each part has threads of its own, so that one whose tasks all wait, for
  /// containers or for drivers, holds up nobody else.
  runtime::Runtime& runtime;
  runtime::Runtime& control;   // controllers, scheduler
  runtime::Runtime& machines;  // nodes, drivers
  runtime::Files& files;
  /// Runs what was posted and lets nothing begin afterwards; the runtimes may be gone then.
  std::function<void()> finish;
  /// Set where one thread does everything: makes something happen, false when nothing can. Who
  /// waits for an answer drives it instead.
  std::function<bool()> pump = {};
};

/// This machine. The runtimes end with finish(), or with the last copy of the world.
World real_world();

/// One thread under virtual time; `sim` and `files` must outlive the world.
World sim_world(runtime::SimRuntime& sim, runtime::Files& files);

}  // namespace dibs::cluster
