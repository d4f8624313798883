#include "runtime/sim_runtime.h"

#include <deque>
#include <map>
#include <unordered_map>

namespace dibs::runtime {

namespace {

/// SplitMix64: tiny, and every seed gives a sequence of full period.
class SimRandom : public Random {
 public:
  explicit SimRandom(std::uint64_t seed) : state_(seed) {}

  void fill(std::span<std::uint8_t> bytes) override {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (i % 8 == 0) word = draw();
      bytes[i] = static_cast<std::uint8_t>(word >> (i % 8 * 8));
    }
  }

 private:
  std::uint64_t draw() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

class SimClock : public Clock {
 public:
  Time now() const override { return {wall_offset + elapsed.count()}; }
  Duration steady() const override { return elapsed; }

  std::int64_t wall_offset = 0;
  Duration elapsed{0};
};

}  // namespace

struct SimRuntime::State : public Timers, public Executor {
  explicit State(const SimOptions& options)
      : random(options.seed),
        order(options.seed ^ 0x6f72646572ULL),
        shuffle(options.shuffle),
        runtime{clock, random, *this, *this} {
    clock.wall_offset = options.start.nanoseconds;
  }

  TimerId after(Duration delay, std::function<void()> task) override {
    Duration deadline = clock.elapsed + std::max(delay, Duration::zero());
    TimerId id = ++last_id;
    timers.emplace(std::pair(deadline, id), std::move(task));
    deadlines.emplace(id, deadline);
    return id;
  }

  bool cancel(TimerId id) override {
    auto found = deadlines.find(id);
    if (found == deadlines.end()) return false;
    std::pair key(found->second, id);
    deadlines.erase(found);
    auto dropped = timers.extract(key);
    if (!dropped) dropped = due.extract(key);
    return true;
  }

  void post(std::function<void()> task) override { ready.push_back({0, std::move(task)}); }

  /// A due timer joins the queue but can be cancelled until it runs, as with the real runtime.
  void collect_due() {
    while (!timers.empty() && timers.begin()->first.first <= clock.elapsed) {
      auto entry = timers.extract(timers.begin());
      TimerId id = entry.key().second;
      due.emplace(std::pair(entry.key().first, id), std::move(entry.mapped()));
      ready.push_back({id, nullptr});
    }
  }

  bool run_one() {
    collect_due();
    if (ready.empty()) return false;
    std::size_t index = shuffle ? order.below(ready.size()) : 0;
    Ready next = std::move(ready[index]);
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(index));
    if (next.timer != 0) {
      auto found = deadlines.find(next.timer);
      if (found == deadlines.end()) return true;
      auto entry = due.extract(std::pair(found->second, next.timer));
      deadlines.erase(found);
      next.task = std::move(entry.mapped());
    }
    next.task();
    return true;
  }

  struct Ready {
    TimerId timer;  // 0: a posted task
    std::function<void()> task;
  };

  SimClock clock;
  SimRandom random;
  SimRandom order;  // apart from `random`: shuffling must not change what components draw
  bool shuffle;
  std::deque<Ready> ready;
  std::map<std::pair<Duration, TimerId>, std::function<void()>> timers;
  std::map<std::pair<Duration, TimerId>, std::function<void()>> due;
  std::unordered_map<TimerId, Duration> deadlines;
  TimerId last_id = 0;
  Runtime runtime;
};

SimRuntime::SimRuntime(const SimOptions& options) : state_(std::make_unique<State>(options)) {}
SimRuntime::~SimRuntime() = default;

Runtime& SimRuntime::runtime() { return state_->runtime; }
Time SimRuntime::now() const { return state_->clock.now(); }
std::size_t SimRuntime::pending_timers() const { return state_->deadlines.size(); }

std::size_t SimRuntime::run_until_idle() {
  std::size_t count = 0;
  while (state_->run_one()) ++count;
  return count;
}

void SimRuntime::advance(Duration duration) {
  Duration end = state_->clock.elapsed + duration;
  run_until_idle();
  while (!state_->timers.empty() && state_->timers.begin()->first.first <= end) {
    state_->clock.elapsed = state_->timers.begin()->first.first;
    run_until_idle();
  }
  state_->clock.elapsed = std::max(state_->clock.elapsed, end);
}

bool SimRuntime::run_until(const std::function<bool()>& done, Duration limit) {
  Duration end = state_->clock.elapsed + limit;
  for (;;) {
    if (done()) return true;
    if (state_->run_one()) continue;
    if (state_->timers.empty()) return false;
    Duration next = state_->timers.begin()->first.first;
    state_->clock.elapsed = std::min(next, end);
    if (next > end) return false;
  }
}

void SimRuntime::jump(Duration duration) {
  state_->clock.elapsed += duration;
  run_until_idle();
}

void SimRuntime::set_wall_clock(Time time) {
  state_->clock.wall_offset = time.nanoseconds - state_->clock.elapsed.count();
}

}  // namespace dibs::runtime
