#include "store/compactor.h"

#include <mutex>

namespace dibs::store {

/// Shared with the timer's task, which may be running while the compactor is stopped.
struct Compactor::State {
  Store& store;
  runtime::Timers& timers;
  const Duration interval;

  std::mutex mutex;
  bool stopped = false;        // guarded by mutex
  runtime::TimerId timer = 0;  // guarded by mutex
  Revision last_seen = 0;      // guarded by mutex
};

Compactor::Compactor(Store& store, runtime::Timers& timers, const CompactorOptions& options)
    : state_(new State{store, timers, options.interval, {}, false, 0, 0}) {
  std::lock_guard lock(state_->mutex);
  state_->last_seen = store.revision();
  schedule(state_);
}

Compactor::~Compactor() { stop(); }

void Compactor::stop() {
  std::lock_guard lock(state_->mutex);
  if (state_->stopped) return;
  state_->stopped = true;
  state_->timers.cancel(state_->timer);
}

void Compactor::schedule(const std::shared_ptr<State>& state) {
  state->timer = state->timers.after(state->interval, [state] {
    std::lock_guard lock(state->mutex);
    if (state->stopped) return;
    const Revision now = state->store.revision();
    // It cannot lie in the future, and a closed store has no more history to bound.
    if (state->last_seen > state->store.compacted()) (void)state->store.compact(state->last_seen);
    state->last_seen = now;
    schedule(state);
  });
}

}  // namespace dibs::store
