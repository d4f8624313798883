#include "client/gate.h"

#include <algorithm>

#include "base/mutex.h"

namespace dibs::client {

bool Gate::enter() {
  const MutexLock lock(mutex_);
  if (closed_) return false;
  inside_.push_back(std::this_thread::get_id());
  return true;
}

void Gate::leave() {
  const MutexLock lock(mutex_);
  inside_.erase(std::find(inside_.begin(), inside_.end(), std::this_thread::get_id()));
  left_.notify_all();
}

void Gate::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  const auto self = std::this_thread::get_id();
  left_.wait(lock, [&]() DIBS_REQUIRES(mutex_) {
    return std::all_of(inside_.begin(), inside_.end(),
                       [&](std::thread::id id) { return id == self; });
  });
}

bool Gate::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

}  // namespace dibs::client
