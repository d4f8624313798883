#include "runtime/sim_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::runtime {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class SimTest : public testing::Test {
 protected:
  auto note(std::string name) {
    return [this, name] { log_.push_back(name); };
  }
  SimRuntime sim_;
  Runtime& runtime_ = sim_.runtime();
  std::vector<std::string> log_;
};

TEST_F(SimTest, runs_posted_tasks_in_order_and_only_when_told) {
  runtime_.executor.post(note("a"));
  runtime_.executor.post([this] {
    log_.push_back("b");
    runtime_.executor.post(note("d"));
  });
  runtime_.executor.post(note("c"));
  EXPECT_TRUE(log_.empty());

  EXPECT_EQ(sim_.run_until_idle(), 4u);

  EXPECT_THAT(log_, ElementsAre("a", "b", "c", "d"));
}

TEST_F(SimTest, timers_run_by_deadline_then_by_age_at_their_time) {
  Time start = sim_.now();
  std::vector<Duration> at;
  auto stamp = [&] { at.push_back(sim_.now() - start); };
  runtime_.timers.after(2s, stamp);
  runtime_.timers.after(1s, stamp);
  runtime_.timers.after(1s, note("second"));
  runtime_.timers.after(5s, note("too late"));

  sim_.advance(3s);

  EXPECT_THAT(at, ElementsAre(1s, 2s));
  EXPECT_THAT(log_, ElementsAre("second"));
  EXPECT_EQ(sim_.now() - start, Duration(3s));
  EXPECT_EQ(sim_.pending_timers(), 1u);
}

TEST_F(SimTest, timers_set_on_the_way_run_too) {
  std::function<void()> tick = [&] {
    log_.push_back("tick");
    runtime_.timers.after(1s, tick);
  };
  runtime_.timers.after(1s, tick);
  sim_.run_for(3500ms);
  EXPECT_EQ(log_.size(), 3u);
}

TEST_F(SimTest, cancelled_timers_do_not_run) {
  TimerId id = runtime_.timers.after(1s, note("x"));
  EXPECT_TRUE(runtime_.timers.cancel(id));
  EXPECT_FALSE(runtime_.timers.cancel(id));
  sim_.advance(2s);
  EXPECT_TRUE(log_.empty());
}

TEST_F(SimTest, a_due_timer_can_be_cancelled_until_it_runs) {
  TimerId second = 0;
  runtime_.timers.after(1s, [&] { EXPECT_TRUE(runtime_.timers.cancel(second)); });
  second = runtime_.timers.after(1s, note("x"));
  sim_.advance(1s);
  EXPECT_TRUE(log_.empty());
}

TEST_F(SimTest, run_until_goes_from_timer_to_timer) {
  bool done = false;
  runtime_.timers.after(10min, [&] { done = true; });
  EXPECT_FALSE(sim_.run_until([&] { return done; }, 1min));
  EXPECT_TRUE(sim_.run_until([&] { return done; }));
  EXPECT_FALSE(sim_.run_until([] { return false; }));
}

TEST_F(SimTest, jump_makes_timers_late) {
  Duration before = runtime_.clock.steady();
  Duration seen{};
  runtime_.timers.after(1s, [&] { seen = runtime_.clock.steady() - before; });
  sim_.jump(5s);
  EXPECT_EQ(seen, Duration(5s));
}

TEST_F(SimTest, setting_the_wall_clock_leaves_the_steady_one_alone) {
  Duration steady = runtime_.clock.steady();
  sim_.set_wall_clock(Time::from_seconds(5));
  EXPECT_EQ(runtime_.clock.now(), Time::from_seconds(5));
  EXPECT_EQ(runtime_.clock.steady(), steady);
}

std::vector<int> shuffled_order(std::uint64_t seed) {
  SimRuntime sim({.seed = seed, .start = Time{}, .shuffle = true});
  std::vector<int> order;
  for (int i = 0; i < 20; ++i) sim.runtime().executor.post([&order, i] { order.push_back(i); });
  sim.run_until_idle();
  return order;
}

TEST(SimRuntime, a_seed_replays_and_another_differs) {
  EXPECT_EQ(shuffled_order(1), shuffled_order(1));
  EXPECT_NE(shuffled_order(1), shuffled_order(2));
  SimRuntime a({.seed = 3, .start = Time{}});
  SimRuntime b({.seed = 3, .start = Time{}});
  SimRuntime c({.seed = 4, .start = Time{}});
  std::uint64_t first = a.runtime().random.next();
  EXPECT_EQ(first, b.runtime().random.next());
  EXPECT_NE(first, c.runtime().random.next());
}

}  // namespace
}  // namespace dibs::runtime
