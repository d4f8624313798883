#pragma once
// Why nothing can be written, since a write failed and until one succeeds. Thread-safe.

#include <atomic>

#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"

namespace dibs::store::etcd {

class Trouble {
 public:
  /// True where there was none.
  bool begin(const Error& error, bool full) {
    const MutexLock lock(mutex_);
    error_ = error;
    full_ = full;
    return !there_.exchange(true);
  }
  void end() {
    if (!there_.exchange(false)) return;
    full_ = false;
    log::info("etcd takes writes again");
  }
  bool is_there() const { return there_; }
  bool is_full() const { return there_ && full_; }
  Result<> state() const {
    const MutexLock lock(mutex_);
    if (there_) return error_;
    return success();
  }

 private:
  mutable Mutex mutex_;
  Error error_ DIBS_GUARDED_BY(mutex_) = Error::unavailable("");
  std::atomic<bool> there_ = false;
  std::atomic<bool> full_ = false;
};

}  // namespace dibs::store::etcd
