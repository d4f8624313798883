#pragma once
// Threads for handlers that block: gRPC's own few threads must not.
//
// A thread is started when a task finds none idle and ends after some idle seconds, so a server
// that nobody calls has none. The number of tasks at once is bounded by what clients have in
// flight; beyond kMaxThreads they wait.

#include <cstddef>
#include <deque>
#include <functional>

#include "base/mutex.h"
#include "runtime/pool_threads.h"

namespace dibs::rpc {

class Workers {
 public:
  Workers() = default;
  /// As close().
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// False when closed; then the task is dropped.
  bool post(std::function<void()> task);
  /// Runs what was posted and waits for all threads.
  void close();

 private:
  static constexpr std::size_t kMaxThreads = 128;
  void work();

  Mutex mutex_;
  CondVar wake_;
  CondVar ended_;
  std::deque<std::function<void()>> tasks_ DIBS_GUARDED_BY(mutex_);
  runtime::PoolThreads handles_ DIBS_GUARDED_BY(mutex_);
  std::size_t threads_ DIBS_GUARDED_BY(mutex_) = 0;
  std::size_t idle_ DIBS_GUARDED_BY(mutex_) = 0;
  bool stopping_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::rpc
