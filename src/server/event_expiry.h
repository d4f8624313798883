#pragma once
// Events are news: they are forgotten after an hour.

#include "base/mutex.h"
#include "runtime/runtime.h"
#include "server/resource.h"
#include "store/store.h"

namespace dibs::server {

/// Runs from construction to stop(). Looks through the events every few minutes and removes, in
/// small transactions, those not written for `life`.
class EventExpiry {
 public:
  EventExpiry(runtime::Runtime& runtime, store::Store& store, ResourceTable& resources,
              Duration life = std::chrono::hours(1));
  ~EventExpiry() { stop(); }
  void stop();

  /// One look; returns how many were removed.
  std::size_t sweep();

 private:
  void schedule();

  runtime::Runtime& runtime_;
  store::Store& store_;
  ResourceTable& resources_;
  Duration life_;
  Mutex mutex_;
  runtime::TimerId timer_ DIBS_GUARDED_BY(mutex_) = 0;
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::server
