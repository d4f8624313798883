#include "runtime/cancellation.h"

#include <atomic>
#include <map>
#include <thread>

#include "base/mutex.h"

namespace dibs::runtime {

namespace internal {

struct StopState {
  std::atomic<bool> stopped{false};
  Mutex mutex;
  CondVar changed;
  std::map<std::uint64_t, std::function<void()>> callbacks DIBS_GUARDED_BY(mutex);
  std::uint64_t last_id DIBS_GUARDED_BY(mutex) = 0;
  std::uint64_t running DIBS_GUARDED_BY(mutex) = 0;
  std::thread::id runner DIBS_GUARDED_BY(mutex);

  bool stop() {
    MutexLock lock(mutex);
    if (stopped.exchange(true)) return false;
    changed.notify_all();
    runner = std::this_thread::get_id();
    while (!callbacks.empty()) {
      auto entry = callbacks.extract(callbacks.begin());
      running = entry.key();
      lock.unlock();
      entry.mapped()();
      entry.mapped() = nullptr;
      lock.lock();
      running = 0;
      changed.notify_all();
    }
    return true;
  }

  void remove(std::uint64_t id) {
    std::function<void()> dropped;
    MutexLock lock(mutex);
    if (auto entry = callbacks.extract(id)) {
      dropped = std::move(entry.mapped());
      lock.unlock();
      return;
    }
    if (runner == std::this_thread::get_id()) return;
    changed.wait(lock, [&]() DIBS_REQUIRES(mutex) { return running != id; });
  }
};

}  // namespace internal

StopCallback::StopCallback(StopCallback&& other) noexcept
    : state_(std::move(other.state_)), id_(std::exchange(other.id_, 0)) {}

StopCallback& StopCallback::operator=(StopCallback&& other) noexcept {
  if (this != &other) {
    release();
    state_ = std::move(other.state_);
    id_ = std::exchange(other.id_, 0);
  }
  return *this;
}

StopCallback::~StopCallback() { release(); }

void StopCallback::release() {
  if (state_) state_->remove(id_);
  state_.reset();
}

bool StopToken::stopped() const { return state_ && state_->stopped.load(); }

StopCallback StopToken::on_stop(std::function<void()> callback) const {
  StopCallback registration;
  if (!state_) return registration;
  {
    const MutexLock lock(state_->mutex);
    if (!state_->stopped.load()) {
      registration.state_ = state_;
      registration.id_ = ++state_->last_id;
      state_->callbacks.emplace(registration.id_, std::move(callback));
      return registration;
    }
  }
  callback();
  return registration;
}

bool StopToken::wait_for(Duration timeout) const {
  if (!state_) {
    std::this_thread::sleep_for(timeout);
    return false;
  }
  MutexLock lock(state_->mutex);
  return state_->changed.wait_for(lock, timeout, [this] { return state_->stopped.load(); });
}

StopSource::StopSource() : state_(std::make_shared<internal::StopState>()) {}

StopSource::StopSource(const StopToken& parent) : StopSource() {
  parent_ = parent.on_stop([state = std::weak_ptr(state_)] {
    if (auto strong = state.lock()) strong->stop();
  });
}

StopSource::~StopSource() = default;

bool StopSource::stop() { return state_->stop(); }
bool StopSource::stopped() const { return state_->stopped.load(); }

}  // namespace dibs::runtime
