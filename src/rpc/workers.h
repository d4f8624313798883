#pragma once
// Threads for handlers that block: gRPC's own few threads must not.
//
// A thread is started when a task finds none idle and ends after some idle seconds, so a server
// that nobody calls has none. The number of tasks at once is bounded by what clients have in
// flight; beyond kMaxThreads they wait.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

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

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable ended_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_, as all below
  runtime::PoolThreads handles_;
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace dibs::rpc
