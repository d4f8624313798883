#include "runtime/thread_pool.h"

#include <algorithm>
#include <thread>

namespace dibs::runtime {

ThreadPool::ThreadPool(const Options& options, std::function<void()> watch)
    : options_(options), watch_(std::move(watch)) {}

ThreadPool::~ThreadPool() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  if (!queue_.empty() && threads_ == 0) add_thread();
  wake_.notify_all();
  ended_.wait(lock, [this] { return threads_ == 0; });
}

void ThreadPool::post(std::function<void()> task) {
  bool ask = false;
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
    if (queue_.size() <= idle_) {
      wake = true;
    } else if (threads_ < options_.base_threads) {
      add_thread();
    } else if (!watched_ && threads_ < options_.max_threads) {
      watched_ = true;
      started_at_check_ = started_;
      ask = true;
    }
  }
  // After unlocking, so that the woken thread does not run into the lock.
  if (wake) wake_.notify_one();
  if (ask) watch_();
}

bool ThreadPool::check_stall() {
  std::lock_guard lock(mutex_);
  watched_ = !queue_.empty() && threads_ < options_.max_threads && !stopping_;
  if (!watched_) return false;
  if (started_ == started_at_check_) {
    // By half of what is there: hundreds of blocked tasks are served within a few checks.
    std::size_t more = std::min({queue_.size(), options_.max_threads - threads_, threads_ / 2 + 1});
    for (std::size_t i = 0; i < more; ++i) add_thread();
  }
  started_at_check_ = started_;
  return true;
}

std::size_t ThreadPool::thread_count() const {
  std::lock_guard lock(mutex_);
  return threads_;
}

void ThreadPool::add_thread() {
  ++threads_;
  std::thread([this] { work(); }).detach();
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (queue_.empty()) {
      if (stopping_) break;
      ++idle_;
      bool woken = wake_.wait_for(lock, options_.idle_timeout,
                                  [this] { return stopping_ || !queue_.empty(); });
      --idle_;
      if (!woken) break;
      continue;
    }
    std::function<void()> task = std::move(queue_.front());
    queue_.pop_front();
    ++started_;
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
  // Under the lock to the end: the destructor may free the pool as soon as it sees the count.
  if (--threads_ == 0) ended_.notify_all();
}

}  // namespace dibs::runtime
