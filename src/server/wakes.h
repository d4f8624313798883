#pragma once
// Somebody who looks soon after he was woken, once for all who woke him meanwhile.
//
// A watch may wake him from any thread until it has ended, and what it has posted may run later
// still: that outlives him, and finds that nobody looks any more.

#include <functional>
#include <memory>

namespace dibs::server {

class Wakes {
 public:
  /// Runs the task soon, on another thread's stack.
  using Post = std::function<void(std::function<void()> task)>;

  explicit Wakes(std::function<void()> look);
  /// Whoever wakes before this is not heard.
  void begin();
  /// Posts a look unless one is on its way. Thread-safe.
  void wake(const Post& post);
  /// Nobody looks from here on; one who does is waited for. May be repeated.
  void end();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dibs::server
