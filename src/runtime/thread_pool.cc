#include "runtime/thread_pool.h"

#include <algorithm>
#include <thread>

#include "base/mutex.h"
#include "runtime/blocking.h"

namespace dibs::runtime {
namespace {

/// What a thread may leave in the queue for itself.
constexpr std::size_t kOwn = 8;

thread_local ThreadPool* pool_of_thread = nullptr;
thread_local int blocking_depth = 0;

}  // namespace

Blocking::Blocking() { ThreadPool::begin_blocking(); }
Blocking::~Blocking() { ThreadPool::end_blocking(); }

ThreadPool::ThreadPool(const Options& options, std::function<void()> watch)
    : options_(options), watch_(std::move(watch)) {}

void ThreadPool::stop() {
  MutexLock lock(mutex_);
  stopping_ = true;
  if (!queue_.empty() && threads_ == 0) add_thread();
  wake_.notify_all();
  ended_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return threads_ == 0; });
  stopped_ = true;
  std::thread last = handles_.last();
  lock.unlock();
  if (last.joinable()) last.join();
}

bool ThreadPool::wake_one(std::size_t most_threads) {
  if (idle_ > waking_) {
    ++waking_;
    wake_.notify_one();
    return true;
  }
  if (threads_ >= most_threads) return false;
  add_thread();
  return true;
}

void ThreadPool::post(std::function<void()> task) {
  bool ask = false;
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    queue_.push_back(std::move(task));
    const bool own = pool_of_thread == this && blocking_depth == 0 && queue_.size() <= kOwn;
    if (!own && running() < options_.base_threads) wake_one(options_.max_threads);
    if (!watched_) {
      watched_ = true;
      started_at_check_ = started_;
      still_ = 0;
      ask = true;
    }
  }
  if (ask) watch_();
}

bool ThreadPool::check_stall() {
  const MutexLock lock(mutex_);
  const bool moved = started_ != started_at_check_;
  // Goes on while there is work, since to begin again costs more than a look.
  watched_ = (moved || !queue_.empty()) && !stopping_;
  if (!watched_) return false;
  still_ = moved ? 0 : still_ + 1;
  started_at_check_ = started_;
  if (queue_.empty()) return true;
  if (running() < options_.base_threads) {
    wake_one(options_.max_threads);
  } else if (still_ > 0) {
    // Those that run wait without a word. Idle ones go on at once; more are added by half of what
    // is there: hundreds of blocked tasks are served within a few checks.
    std::size_t more = std::min(queue_.size(), threads_ / 2 + 1);
    const std::size_t most = still_ >= options_.patience ? options_.max_threads : 0;
    while (more > 0 && wake_one(most)) --more;
  }
  return true;
}

void ThreadPool::begin_blocking() {
  ThreadPool* pool = pool_of_thread;
  if (pool == nullptr || blocking_depth++ > 0) return;
  const MutexLock lock(pool->mutex_);
  ++pool->blocked_;
  if (!pool->queue_.empty() && pool->running() < pool->options_.base_threads) {
    pool->wake_one(pool->options_.max_threads);
  }
}

void ThreadPool::end_blocking() {
  ThreadPool* pool = pool_of_thread;
  if (pool == nullptr || --blocking_depth > 0) return;
  const MutexLock lock(pool->mutex_);
  --pool->blocked_;
}

std::size_t ThreadPool::thread_count() const {
  const MutexLock lock(mutex_);
  return threads_;
}

void ThreadPool::add_thread() {
  ++threads_;
  handles_.start([this] { work(); });
}

void ThreadPool::work() {
  pool_of_thread = this;
  MutexLock lock(mutex_);
  for (;;) {
    if (queue_.empty()) {
      if (stopping_) break;
      ++idle_;
      const bool woken =
          wake_.wait_for(lock, options_.idle_timeout,
                         [this]() DIBS_REQUIRES(mutex_) { return stopping_ || waking_ > 0; });
      --idle_;
      if (waking_ > 0) --waking_;
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
  std::thread before = handles_.leave();
  if (--threads_ == 0) ended_.notify_all();
  lock.unlock();
  if (before.joinable()) before.join();
}

}  // namespace dibs::runtime
