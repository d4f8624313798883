#include "client/serial.h"

namespace dibs::client {

void Serial::post(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (running_) return;
    running_ = true;
  }
  executor_.post([self = shared_from_this()] { self->run_one(); });
}

void Serial::run_one() {
  std::function<void()> task;
  {
    std::lock_guard lock(mutex_);
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  task();
  task = nullptr;
  {
    std::lock_guard lock(mutex_);
    running_ = !tasks_.empty();
    if (!running_) return;
  }
  // One task per turn: other work of the executor gets in between.
  executor_.post([self = shared_from_this()] { self->run_one(); });
}

}  // namespace dibs::client
