#include "rpc/workers.h"

#include <chrono>
#include <thread>

#include "base/mutex.h"

namespace dibs::rpc {
namespace {

constexpr auto kIdle = std::chrono::seconds(5);

}  // namespace

Workers::~Workers() { close(); }

void Workers::close() {
  MutexLock lock(mutex_);
  stopping_ = true;
  wake_.notify_all();
  ended_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return threads_ == 0; });
  std::thread last = handles_.last();
  lock.unlock();
  if (last.joinable()) last.join();
}

bool Workers::post(std::function<void()> task) {
  const MutexLock lock(mutex_);
  if (stopping_) return false;
  tasks_.push_back(std::move(task));
  if (idle_ >= tasks_.size() || threads_ >= kMaxThreads) {
    wake_.notify_one();
    return true;
  }
  ++threads_;
  handles_.start([this] { work(); });
  return true;
}

void Workers::work() {
  MutexLock lock(mutex_);
  while (true) {
    if (tasks_.empty()) {
      if (stopping_) break;
      ++idle_;
      const bool woken = wake_.wait_for(
          lock, kIdle, [this]() DIBS_REQUIRES(mutex_) { return stopping_ || !tasks_.empty(); });
      --idle_;
      if (!woken) break;
      continue;
    }
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
  std::thread before = handles_.leave();
  --threads_;
  ended_.notify_all();
  lock.unlock();
  if (before.joinable()) before.join();
}

}  // namespace dibs::rpc
