#pragma once
// Events are news: they are forgotten after an hour.

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
  std::mutex mutex_;
  runtime::TimerId timer_ = 0;  // guarded by mutex_
  bool stopped_ = false;        // guarded by mutex_
};

}  // namespace dibs::server
