#pragma once
// The elastic pool behind RealRuntime. Owned and told about time by it: the pool has no clock
// thread of its own, somebody calls check_stall() every `stall` while watch() has been asked for.
//
// To wake a thread costs more than most tasks do. So no more threads are woken than there are
// cores, waiting ones left out (blocking.h); and what a task posts is as a rule left to the thread
// that runs it, which will look for more work in a moment. A queue that does not move, or not fast
// enough, is noticed by check_stall().

#include <cstddef>
#include <deque>
#include <functional>

#include "base/mutex.h"
#include "runtime/pool_threads.h"
#include "runtime/runtime.h"

namespace dibs::runtime {

class ThreadPool : public Executor {
 public:
  struct Options {
    std::size_t base_threads;
    std::size_t max_threads;
    Duration idle_timeout;
    /// Checks without a task started after which threads are added.
    int patience = 1;
  };

  /// `watch` is called without locks held when tasks wait for a thread.
  ThreadPool(const Options& options, std::function<void()> watch);
  ~ThreadPool() override { stop(); }

  /// Runs what is queued, then waits for all threads. What is posted afterwards is dropped.
  void stop();

  void post(std::function<void()> task) override;
  /// Wakes or adds threads where tasks wait. True: call again.
  bool check_stall();
  std::size_t thread_count() const;

  /// The calling thread, one of a pool, begins or ends to wait.
  static void begin_blocking();
  static void end_blocking();

 private:
  void work();
  void add_thread() DIBS_REQUIRES(mutex_);
  std::size_t running() const DIBS_REQUIRES(mutex_) {
    return threads_ - idle_ - blocked_ + waking_;
  }
  /// One more thread to run. False when there is none to wake and none may be added.
  bool wake_one(std::size_t most_threads) DIBS_REQUIRES(mutex_);

  const Options options_;
  const std::function<void()> watch_;
  mutable Mutex mutex_;
  CondVar wake_;
  CondVar ended_;
  std::deque<std::function<void()>> queue_ DIBS_GUARDED_BY(mutex_);
  PoolThreads handles_ DIBS_GUARDED_BY(mutex_);
  std::size_t threads_ DIBS_GUARDED_BY(mutex_) = 0;
  std::size_t idle_ DIBS_GUARDED_BY(mutex_) = 0;
  std::size_t waking_ DIBS_GUARDED_BY(mutex_) = 0;   // of the idle ones
  std::size_t blocked_ DIBS_GUARDED_BY(mutex_) = 0;  // say that they wait
  std::uint64_t started_ DIBS_GUARDED_BY(mutex_) = 0;
  std::uint64_t started_at_check_ DIBS_GUARDED_BY(mutex_) = 0;
  int still_ DIBS_GUARDED_BY(mutex_) = 0;  // checks that saw nothing started
  bool watched_ DIBS_GUARDED_BY(mutex_) = false;
  bool stopping_ DIBS_GUARDED_BY(mutex_) = false;
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::runtime
