#pragma once
// Events are news: they are forgotten after an hour. A store that removes keys after their lifetime
// (Store::expires) needs none of this.

#include "base/mutex.h"
#include "runtime/runtime.h"
#include "server/resource.h"
#include "store/store.h"

namespace dibs::server {

/// Runs from construction to stop(). Looks through the events every few minutes and removes, in
/// small transactions, those not added to for the lifetime of their kind.
class EventExpiry {
 public:
  EventExpiry(runtime::Runtime& runtime, store::Store& store, ResourceTable& resources);
  ~EventExpiry() { stop(); }
  void stop();

  /// One look; returns how many were removed.
  std::size_t sweep();

 private:
  void schedule();

  runtime::Runtime& runtime_;
  store::Store& store_;
  ResourceTable& resources_;
  Mutex mutex_;
  runtime::TimerId timer_ DIBS_GUARDED_BY(mutex_) = 0;
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::server
