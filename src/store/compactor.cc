#include "store/compactor.h"

#include "base/mutex.h"

namespace dibs::store {

/// Shared with the timer's task, which may be running while the compactor is stopped.
struct Compactor::State {
  Store& store;
  runtime::Timers& timers;
  const Duration interval;

  Mutex mutex;
  bool stopped DIBS_GUARDED_BY(mutex) = false;
  runtime::TimerId timer DIBS_GUARDED_BY(mutex) = 0;
  Revision last_seen DIBS_GUARDED_BY(mutex) = 0;

  static void schedule(const std::shared_ptr<State>& state) DIBS_REQUIRES(state->mutex);
};

Compactor::Compactor(Store& store, runtime::Timers& timers, const CompactorOptions& options)
    : state_(new State{store, timers, options.interval, {}, false, 0, 0}) {
  const MutexLock lock(state_->mutex);
  state_->last_seen = store.revision();
  State::schedule(state_);
}

Compactor::~Compactor() { stop(); }

void Compactor::stop() {
  const MutexLock lock(state_->mutex);
  if (state_->stopped) return;
  state_->stopped = true;
  state_->timers.cancel(state_->timer);
}

void Compactor::State::schedule(const std::shared_ptr<State>& state) {
  state->timer = state->timers.after(state->interval, [state] {
    const MutexLock lock(state->mutex);
    if (state->stopped) return;
    const Revision now = state->store.revision();
    // With the mutex, so that stop() waits for it: the store may go after that. It cannot lie in
    // the future, and a closed store has no more history to bound.
    if (state->last_seen > state->store.compacted()) (void)state->store.compact(state->last_seen);
    state->last_seen = now;
    schedule(state);
  });
}

}  // namespace dibs::store
