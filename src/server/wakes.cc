#include "server/wakes.h"

#include <utility>

#include "base/mutex.h"

namespace dibs::server {

struct Wakes::State {
  explicit State(std::function<void()> what) : look(std::move(what)) {}

  const std::function<void()> look;
  Mutex mutex;
  bool listens DIBS_GUARDED_BY(mutex) = false;
  bool posted DIBS_GUARDED_BY(mutex) = false;
  int looking DIBS_GUARDED_BY(mutex) = 0;
  CondVar idle;
};

Wakes::Wakes(std::function<void()> look) : state_(std::make_shared<State>(std::move(look))) {}

void Wakes::begin() {
  const MutexLock lock(state_->mutex);
  state_->listens = true;
}

void Wakes::wake(const Post& post) {
  const MutexLock lock(state_->mutex);
  if (!state_->listens || std::exchange(state_->posted, true)) return;
  post([state = state_] {
    {
      const MutexLock held(state->mutex);
      state->posted = false;
      if (!state->listens) return;
      ++state->looking;
    }
    state->look();
    const MutexLock held(state->mutex);
    --state->looking;
    state->idle.notify_all();
  });
}

void Wakes::end() {
  MutexLock lock(state_->mutex);
  state_->listens = false;
  state_->idle.wait(lock, [this]() DIBS_REQUIRES(state_->mutex) { return state_->looking == 0; });
}

}  // namespace dibs::server
