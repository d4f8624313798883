#pragma once
// Asking work to stop: a StopSource is told once, its StopTokens see it, callbacks run.
//
// Thread-safe. A callback runs in the thread that calls stop(), or at once in on_stop() when the
// stop came before. When a StopCallback is gone, its function neither runs nor will run (a
// destructor in another thread waits for it; inside the function itself it does not wait).

#include <functional>
#include <memory>

#include "base/time.h"

namespace dibs::runtime {

namespace internal {
struct StopState;
}

/// Keeps a registered callback alive; move-only.
class [[nodiscard]] StopCallback {
 public:
  StopCallback() = default;
  StopCallback(StopCallback&& other) noexcept;
  StopCallback& operator=(StopCallback&& other) noexcept;
  ~StopCallback();

 private:
  friend class StopToken;
  void release();
  std::shared_ptr<internal::StopState> state_;
  std::uint64_t id_ = 0;
};

class StopToken {
 public:
  /// Never stops.
  StopToken() = default;

  bool stopped() const;
  StopCallback on_stop(std::function<void()> callback) const;
  /// Blocks until stop() or the timeout, in real time. True when stopped.
  bool wait_for(Duration timeout) const;

 private:
  friend class StopSource;
  explicit StopToken(std::shared_ptr<internal::StopState> state) : state_(std::move(state)) {}
  std::shared_ptr<internal::StopState> state_;
};

class StopSource {
 public:
  StopSource();
  /// Also stops when `parent` does.
  explicit StopSource(const StopToken& parent);
  /// Does not stop: tokens outlive their source quietly.
  ~StopSource();
  StopSource(StopSource&&) noexcept = default;
  StopSource& operator=(StopSource&&) noexcept = default;

  /// True for the call that did it.
  bool stop();
  bool stopped() const;
  StopToken token() const { return StopToken(state_); }

 private:
  std::shared_ptr<internal::StopState> state_;
  StopCallback parent_;
};

}  // namespace dibs::runtime
