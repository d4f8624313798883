#pragma once
// The threads of an elastic pool, which come and go, yet are all joined in the end.
//
// A thread that is only counted out is not gone: what libraries keep for it (OpenSSL: generators of
// random numbers, an error queue) is freed a moment later, which in a process that ends may be too
// late. To join needs somebody who waits, and a pool has none before its end. So each thread that
// ends joins the one that ended before it, and the pool joins the last.
//
// Guarded by the pool's mutex.

#include <functional>
#include <list>
#include <thread>

namespace dibs::runtime {

class PoolThreads {
 public:
  /// `work` is run by a new thread; what it does last is to join what leave() gave it.
  void start(std::function<void()> work);
  /// The calling thread ends. To be joined without the mutex, where joinable.
  [[nodiscard]] std::thread leave();
  /// When all have left: to be joined without the mutex, where joinable.
  [[nodiscard]] std::thread last() { return std::move(last_); }

 private:
  std::list<std::thread> running_;
  std::thread last_;
};

}  // namespace dibs::runtime
