#include "driver/claims_lock.h"

#include <condition_variable>

#include "base/strings.h"

namespace dibs::driver {
namespace {

// The agent gives a call 45 s.
constexpr Duration kPatience = std::chrono::seconds(40);
constexpr Duration kPause = std::chrono::milliseconds(20);

void pause(runtime::Runtime& runtime) {
  struct Gone {
    std::mutex mutex;
    std::condition_variable wake;
    bool over = false;
  };
  auto gone = std::make_shared<Gone>();
  runtime.timers.after(kPause, [gone] {
    std::lock_guard lock(gone->mutex);
    gone->over = true;
    gone->wake.notify_all();
  });
  std::unique_lock lock(gone->mutex);
  gone->wake.wait(lock, [&] { return gone->over; });
}

}  // namespace

ClaimsLock::ClaimsLock(runtime::Files& files, runtime::Runtime& runtime, std::string path)
    : files_(files), runtime_(runtime), path_(std::move(path)) {}

Result<std::unique_ptr<ClaimsLock::Held>> ClaimsLock::acquire() {
  std::unique_lock inside(mutex_);
  std::unique_ptr<runtime::FileLock> outside;
  if (!path_.empty()) {
    const Duration end = runtime_.clock.steady() + kPatience;
    for (;;) {
      auto locked = files_.lock(path_);
      if (locked) {
        outside = std::move(locked).value();
        break;
      }
      if (locked.error().code() != Code::unavailable) return locked.error();
      if (runtime_.clock.steady() >= end) {
        return Error::timeout(cat("another instance of the driver holds ", path_));
      }
      pause(runtime_);
    }
  }
  return std::make_unique<Held>(std::move(inside), std::move(outside));
}

}  // namespace dibs::driver
