#pragma once
// Forgets old history at regular times.
//
// Every `interval` the store is compacted to the revision it had one interval ago, so history
// reaches back between one and two intervals. How much of it may gather in between is bounded by
// HistoryLimits, which each backend keeps by itself.

#include <memory>

#include "runtime/runtime.h"
#include "store/store.h"

namespace dibs::store {

struct CompactorOptions {
  Duration interval = std::chrono::minutes(5);
};

/// Runs from construction to stop() or destruction; the store and the timers must outlive it.
class Compactor {
 public:
  Compactor(Store& store, runtime::Timers& timers, const CompactorOptions& options = {});
  ~Compactor();
  /// Waits for a compaction under way.
  void stop();

 private:
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace dibs::store
