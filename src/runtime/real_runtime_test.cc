#include "runtime/real_runtime.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include "runtime/blocking.h"

namespace dibs::runtime {
namespace {

using namespace std::chrono_literals;

TEST(RealRuntime, clocks_go_forward) {
  Clock& clock = system_clock();
  EXPECT_GT(clock.now(), Time::from_seconds(1'600'000'000));
  Duration before = clock.steady();
  EXPECT_GE(clock.steady(), before);
}

TEST(RealRuntime, random_bytes_differ) {
  std::array<std::uint8_t, 1000> large{};
  system_random().fill(large);
  EXPECT_NE(std::count(large.begin(), large.end(), 0), 1000);
  EXPECT_NE(system_random().next(), system_random().next());
}

TEST(RealRuntime, runs_posted_tasks) {
  RealRuntime real;
  std::promise<int> answer;
  real.runtime().executor.post([&] { answer.set_value(42); });
  EXPECT_EQ(answer.get_future().get(), 42);
}

TEST(RealRuntime, adds_threads_while_all_are_blocked) {
  RealRuntime real({.base_threads = 1});
  constexpr int kTasks = 20;
  std::latch all(kTasks);
  std::atomic<int> done{0};

  // Each waits for all the others, so they must be running at the same time.
  for (int i = 0; i < kTasks; ++i) {
    real.runtime().executor.post([&] {
      all.arrive_and_wait();
      ++done;
    });
  }

  all.wait();
  EXPECT_GE(real.thread_count(), static_cast<std::size_t>(kTasks) - 1);
}

TEST(RealRuntime, goes_on_while_a_task_says_that_it_waits) {
  // So rare a look at the queue would never help: only the word of the task does.
  RealRuntime real({.base_threads = 1, .stall = std::chrono::hours(1)});
  std::promise<void> second;
  std::promise<void> first;
  real.runtime().executor.post([&] {
    // Left to this thread, which then waits for it.
    real.runtime().executor.post([&] { second.set_value(); });
    Blocking blocking;
    second.get_future().wait();
    first.set_value();
  });
  first.get_future().wait();
}

TEST(RealRuntime, goes_on_after_a_task_that_waits_without_a_word) {
  RealRuntime real({.base_threads = 1});
  std::promise<void> second;
  std::promise<void> first;
  real.runtime().executor.post([&] {
    real.runtime().executor.post([&] { second.set_value(); });
    second.get_future().wait();
    first.set_value();
  });
  first.get_future().wait();
}

TEST(RealRuntime, runs_a_timer_not_before_its_time) {
  RealRuntime real;
  Duration start = system_clock().steady();
  std::promise<Duration> fired;
  real.runtime().timers.after(5ms, [&] { fired.set_value(system_clock().steady()); });
  EXPECT_GE(fired.get_future().get() - start, Duration(5ms));
}

TEST(RealRuntime, cancels_timers) {
  RealRuntime real;
  std::atomic<bool> ran{false};
  TimerId id = real.runtime().timers.after(1h, [&] { ran = true; });
  EXPECT_TRUE(real.runtime().timers.cancel(id));
  EXPECT_FALSE(real.runtime().timers.cancel(id));
  std::promise<void> fired;
  TimerId soon = real.runtime().timers.after(0s, [&] { fired.set_value(); });
  fired.get_future().wait();
  EXPECT_FALSE(real.runtime().timers.cancel(soon));
  EXPECT_FALSE(ran);
}

/// Stands for what a library keeps for a thread. It takes its time to go, as a busy machine would.
struct KeptForThread {
  std::atomic<int>* gone = nullptr;
  ~KeptForThread() {
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    if (gone != nullptr) ++*gone;
  }
};
thread_local KeptForThread kept_for_thread;

TEST(RealRuntime, destruction_waits_until_nothing_is_left_of_any_thread) {
  constexpr int kTasks = 8;
  std::atomic<int> gone{0};
  {
    RealRuntime real({.base_threads = kTasks});
    std::latch all(kTasks);
    for (int i = 0; i < kTasks; ++i) {
      real.runtime().executor.post([&] {
        kept_for_thread.gone = &gone;
        all.arrive_and_wait();
      });
    }
    all.wait();
  }

  EXPECT_EQ(gone, kTasks);
}

TEST(RealRuntime, idle_threads_end_and_are_joined) {
  std::atomic<int> gone{0};
  {
    RealRuntime real({.base_threads = 1, .idle_timeout = 1ms});
    for (int i = 1; i <= 3; ++i) {
      real.runtime().executor.post([&] { kept_for_thread.gone = &gone; });
      while (gone < i) std::this_thread::yield();
    }
    EXPECT_EQ(real.thread_count(), 0U);
  }

  EXPECT_EQ(gone, 3);
}

TEST(RealRuntime, destruction_runs_what_was_posted_and_drops_timers) {
  std::atomic<int> ran{0};
  std::atomic<bool> timer_ran{false};
  {
    RealRuntime real({.base_threads = 2});
    real.runtime().timers.after(1h, [&] { timer_ran = true; });
    for (int i = 0; i < 100; ++i) real.runtime().executor.post([&] { ++ran; });
  }
  EXPECT_EQ(ran, 100);
  EXPECT_FALSE(timer_ran);
}

}  // namespace
}  // namespace dibs::runtime
