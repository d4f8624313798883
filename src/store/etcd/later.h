#pragma once
// A thread that does things later: pauses between tries.
//
// Thread-safe. Tasks must not block.

#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "base/mutex.h"

namespace dibs::store::etcd {

class Later {
 public:
  Later();
  ~Later() { stop(); }
  Later(const Later&) = delete;
  Later& operator=(const Later&) = delete;

  void after(std::chrono::milliseconds pause, std::function<void()> task);
  /// Runs what is left at once, and from then on each task in after() itself.
  void stop();

 private:
  void run();

  Mutex mutex_;
  CondVar changed_;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> tasks_
      DIBS_GUARDED_BY(mutex_);
  bool stopping_ DIBS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// The pause before try number `attempt` (1, 2, …): doubles, up to a second.
std::chrono::milliseconds pause_before(int attempt);

}  // namespace dibs::store::etcd
