#include "client/serial.h"

#include "base/mutex.h"

namespace dibs::client {
namespace {

/// A few tasks per turn: to wake a thread for each would cost more than most of them do.
constexpr int kPerTurn = 32;

}  // namespace

void Serial::post(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    if (running_) return;
    running_ = true;
  }
  executor_.post([self = shared_from_this()] { self->run_some(); });
}

void Serial::clear() {
  std::deque<std::function<void()>> dropped;  // outside of the lock: they may own anything
  const MutexLock lock(mutex_);
  dropped.swap(tasks_);
}

void Serial::run_some() {
  for (int i = 0; i < kPerTurn; ++i) {
    std::function<void()> task;
    {
      const MutexLock lock(mutex_);
      running_ = !tasks_.empty();
      if (!running_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
  // Other work of the executor gets in between.
  executor_.post([self = shared_from_this()] { self->run_some(); });
}

}  // namespace dibs::client
