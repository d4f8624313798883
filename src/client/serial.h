#pragma once
// Tasks one after another, in the order of posting, on an executor that may run many at once.
//
// Lets a component have one owner "thread" without having a thread. Thread-safe; held by
// shared_ptr, and a posted task keeps it alive.

#include <deque>
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "runtime/runtime.h"

namespace dibs::client {

class Serial : public std::enable_shared_from_this<Serial> {
 public:
  explicit Serial(runtime::Executor& executor) : executor_(executor) {}

  void post(std::function<void()> task);
  /// Drops what has not begun. For owners that the tasks in turn keep alive.
  void clear();

 private:
  void run_some();

  runtime::Executor& executor_;
  Mutex mutex_;
  std::deque<std::function<void()>> tasks_ DIBS_GUARDED_BY(mutex_);
  bool running_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::client
