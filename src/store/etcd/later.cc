#include "store/etcd/later.h"

#include <algorithm>

namespace dibs::store::etcd {

Later::Later() : thread_([this] { run(); }) {}

void Later::after(std::chrono::milliseconds pause, std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    if (!stopping_) {
      tasks_.emplace(std::chrono::steady_clock::now() + pause, std::move(task));
      changed_.notify_one();
      return;
    }
  }
  task();
}

void Later::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Later::run() {
  MutexLock lock(mutex_);
  while (true) {
    if (tasks_.empty()) {
      if (stopping_) return;
      changed_.wait(lock);
      continue;
    }
    const auto first = tasks_.begin();
    if (!stopping_ && first->first > std::chrono::steady_clock::now()) {
      changed_.wait_until(lock, first->first);
      continue;
    }
    const auto task = std::move(first->second);
    tasks_.erase(first);
    lock.unlock();
    task();
    lock.lock();
  }
}

std::chrono::milliseconds pause_before(int attempt) {
  return std::chrono::milliseconds(std::min(1000, 20 << std::min(attempt, 6)));
}

}  // namespace dibs::store::etcd
