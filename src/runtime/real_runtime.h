#pragma once
// The machine's clock, entropy, timers and threads behind runtime::Runtime.
//
// Tasks may block, so the pool is elastic: it starts a thread per core, and while the queue stands
// still because every thread is blocked it adds more, up to a bound; idle threads end after a
// while.
//
// stop() drops timers that are not due, runs what was posted before and waits for running tasks;
// what is posted later is dropped. The destructor does the same; nobody may use the runtime then.

#include <cstddef>
#include <memory>

#include "runtime/runtime.h"

namespace dibs::runtime {

struct RealRuntimeOptions {
  /// 0: one per core.
  std::size_t base_threads = 0;
  std::size_t max_threads = 256;
  Duration idle_timeout = std::chrono::seconds(10);
  /// How often a queue that waits is looked at: idle threads are woken then. Where nothing was
  /// started for five times as long, threads are added.
  Duration stall = std::chrono::milliseconds(1);
};

class RealRuntime {
 public:
  explicit RealRuntime(const RealRuntimeOptions& options = {});
  ~RealRuntime();
  RealRuntime(const RealRuntime&) = delete;
  RealRuntime& operator=(const RealRuntime&) = delete;

  Runtime& runtime();
  void stop();
  std::size_t thread_count() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Without threads, for programs that only need these two.
Clock& system_clock();
Random& system_random();

}  // namespace dibs::runtime
