#pragma once
// A world in one thread: time stands still unless the test moves it, and one seed replays one run.
//
// Tasks run only inside the run_…() and advance() calls, in the thread that makes them. Posted
// tasks run in the order of posting, timers by deadline and then by age. With `shuffle` the next
// task is drawn among those ready, so that different seeds try different interleavings.
//
// Not thread-safe: everything that uses it lives in one thread.

#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/runtime.h"

namespace dibs::runtime {

struct SimOptions {
  std::uint64_t seed = 1;
  Time start = Time::from_seconds(1'700'000'000);
  bool shuffle = false;
};

class SimRuntime {
 public:
  explicit SimRuntime(const SimOptions& options = {});
  ~SimRuntime();
  SimRuntime(const SimRuntime&) = delete;
  SimRuntime& operator=(const SimRuntime&) = delete;

  Runtime& runtime();
  Time now() const;

  /// Runs posted tasks and due timers until none is left; time stands. Returns how many ran.
  std::size_t run_until_idle();
  /// Lets time pass, stopping at each timer on the way, and runs everything that gets ready.
  void advance(Duration duration);
  void run_for(Duration duration) { advance(duration); }
  /// Goes from timer to timer until `done` holds. False when nothing is left to happen, or when
  /// `limit` has passed (the clock then stands at the limit).
  bool run_until(const std::function<bool()>& done, Duration limit = std::chrono::hours(1));
  /// Moves the clock at once, as a stalled machine would see it: timers passed over run afterwards,
  /// late.
  void jump(Duration duration);
  /// Moves only the wall clock, as setting the date would. The steady clock and timers do not
  /// notice.
  void set_wall_clock(Time time);

  std::size_t pending_timers() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::runtime
