#include "driver/claims_lock.h"

#include "base/mutex.h"
#include "base/strings.h"
#include "runtime/blocking.h"

namespace dibs::driver {
namespace {

// The agent gives a call 45 s.
constexpr Duration kPatience = std::chrono::seconds(40);
constexpr Duration kPause = std::chrono::milliseconds(20);

void pause(runtime::Runtime& runtime) {
  struct Gone {
    Mutex mutex;
    CondVar wake;
    bool over DIBS_GUARDED_BY(mutex) = false;
  };
  auto gone = std::make_shared<Gone>();
  runtime.timers.after(kPause, [gone] {
    const MutexLock lock(gone->mutex);
    gone->over = true;
    gone->wake.notify_all();
  });
  MutexLock lock(gone->mutex);
  gone->wake.wait(lock, [&]() DIBS_REQUIRES(gone->mutex) { return gone->over; });
}

}  // namespace

ClaimsLock::ClaimsLock(runtime::Files& files, runtime::Runtime& runtime, std::string path)
    : files_(files), runtime_(runtime), path_(std::move(path)) {}

ClaimsLock::Held::~Held() {
  file_.reset();
  const MutexLock lock(lock_.mutex_);
  lock_.inside_ = {};
  lock_.left_.notify_one();
}

Result<std::unique_ptr<ClaimsLock::Held>> ClaimsLock::enter() {
  const auto self = std::this_thread::get_id();
  MutexLock lock(mutex_);
  if (inside_ == self) return Error::conflict("the driver is at work below this call");
  const runtime::Blocking blocking;
  const bool free = left_.wait_for(
      lock, kPatience, [this]() DIBS_REQUIRES(mutex_) { return inside_ == std::thread::id(); });
  if (!free) return Error::timeout("the driver is at work for another call");
  inside_ = self;
  return std::make_unique<Held>(*this);
}

Result<std::unique_ptr<ClaimsLock::Held>> ClaimsLock::acquire() {
  DIBS_TRY(auto held, enter());
  if (path_.empty()) return held;
  const Duration end = runtime_.clock.steady() + kPatience;
  for (;;) {
    auto locked = files_.lock(path_);
    if (locked) {
      held->file_ = std::move(locked).value();
      return held;
    }
    if (locked.error().code() != Code::unavailable) return locked.error();
    if (runtime_.clock.steady() >= end) {
      return Error::timeout(cat("another instance of the driver holds ", path_));
    }
    pause(runtime_);
  }
}

}  // namespace dibs::driver
