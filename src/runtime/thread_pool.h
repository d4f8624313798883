#pragma once
// The elastic pool behind RealRuntime. Owned and told about time by it: the pool has no clock
// thread of its own, somebody calls check_stall() every `stall` while watch() has been asked for.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

#include "runtime/runtime.h"

namespace dibs::runtime {

class ThreadPool : public Executor {
 public:
  struct Options {
    std::size_t base_threads;
    std::size_t max_threads;
    Duration idle_timeout;
  };

  /// `watch` is called without locks held when tasks wait and no thread is idle.
  ThreadPool(const Options& options, std::function<void()> watch);
  /// Runs what is queued, then waits for all threads.
  ~ThreadPool() override;

  void post(std::function<void()> task) override;
  /// Adds threads if no task was started since the last call. True: call again.
  bool check_stall();
  std::size_t thread_count() const;

 private:
  void work();
  void add_thread();  // requires mutex_

  const Options options_;
  const std::function<void()> watch_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable ended_;
  std::deque<std::function<void()>> queue_;
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t started_at_check_ = 0;
  bool watched_ = false;
  bool stopping_ = false;
};

}  // namespace dibs::runtime
