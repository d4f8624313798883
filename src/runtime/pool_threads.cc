#include "runtime/pool_threads.h"

#include <algorithm>

namespace dibs::runtime {

void PoolThreads::start(std::function<void()> work) {
  // The place first: a thread that runs must not be lost for want of memory.
  running_.emplace_back();
  running_.back() = std::thread(std::move(work));
}

std::thread PoolThreads::leave() {
  const auto self = std::find_if(running_.begin(), running_.end(), [](const std::thread& thread) {
    return thread.get_id() == std::this_thread::get_id();
  });
  std::thread before = std::move(last_);
  last_ = std::move(*self);
  running_.erase(self);
  return before;
}

}  // namespace dibs::runtime
