#include "client/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "base/strings.h"
#include "runtime/real_runtime.h"
#include "runtime/sim_runtime.h"

namespace dibs::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

struct WorkQueueTest : testing::Test {
  runtime::SimRuntime sim;
  std::vector<std::string> done;
  std::function<WorkOutcome(const std::string&)> work = [](const std::string&) {
    return WorkOutcome::done();
  };
  std::unique_ptr<WorkQueue> queue = std::make_unique<WorkQueue>(sim.runtime(), WorkQueueOptions{},
                                                                 [this](const std::string& key) {
                                                                   done.push_back(key);
                                                                   return work(key);
                                                                 });
};

TEST(WorkQueueMetrics, count_what_comes_waits_and_comes_back) {
  runtime::SimRuntime sim;
  metrics::Registry registry;
  int turns = 0;
  WorkQueueOptions options;
  options.metrics = &registry;
  options.name = "q";
  WorkQueue queue(sim.runtime(), options, [&](const std::string&) {
    return ++turns == 1 ? WorkOutcome::retry() : WorkOutcome::done();
  });
  queue.add("a");
  queue.add("a");
  queue.add("b");
  EXPECT_THAT(registry.expose(), testing::HasSubstr("workqueue_depth{name=\"q\"} 2\n"));
  sim.advance(seconds(1));
  const std::string text = registry.expose();
  for (const char* line :
       {"workqueue_adds_total{name=\"q\"} 3\n", "workqueue_retries_total{name=\"q\"} 1\n",
        "workqueue_depth{name=\"q\"} 0\n", "workqueue_queue_duration_seconds_count{name=\"q\"} 3\n",
        "workqueue_work_duration_seconds_count{name=\"q\"} 3\n"}) {
    EXPECT_THAT(text, testing::HasSubstr(line));
  }
}

TEST_F(WorkQueueTest, works_on_each_key_once) {
  for (const auto* key : {"a", "b", "a", "c", "b"}) queue->add(key);
  EXPECT_EQ(queue->size(), 3U);
  sim.run_until_idle();
  EXPECT_THAT(done, ElementsAre("a", "b", "c"));
}

TEST_F(WorkQueueTest, works_again_on_a_key_added_meanwhile) {
  work = [this](const std::string& key) {
    if (done.size() == 1) {
      queue->add(key);
      queue->add(key);
    }
    return WorkOutcome::done();
  };
  queue->add("a");
  sim.run_until_idle();
  EXPECT_THAT(done, ElementsAre("a", "a"));
}

TEST_F(WorkQueueTest, delays) {
  queue->add_after("a", seconds(10));
  queue->add_after("a", seconds(5));
  queue->add_after("a", seconds(20));
  EXPECT_EQ(queue->delayed(), 1U);
  sim.advance(seconds(4));
  EXPECT_THAT(done, IsEmpty());
  sim.advance(seconds(1));
  EXPECT_THAT(done, ElementsAre("a"));
  sim.advance(seconds(60));
  EXPECT_EQ(done.size(), 1U);
  queue->add_after("b", seconds(-1));
  sim.run_until_idle();
  EXPECT_EQ(done.back(), "b");
}

TEST_F(WorkQueueTest, doubles_the_delay_of_failures) {
  std::vector<std::int64_t> times;
  work = [&](const std::string&) {
    times.push_back(sim.runtime().clock.steady() / milliseconds(1));
    return times.size() < 8 ? WorkOutcome::retry() : WorkOutcome::done();
  };
  queue->add("a");
  sim.advance(seconds(10));
  ASSERT_EQ(times.size(), 8U);
  for (std::size_t i = 1; i < times.size(); ++i) {
    EXPECT_EQ(times[i] - times[i - 1], 5 << (i - 1)) << i;
  }
  EXPECT_EQ(queue->failures("a"), 0U);
}

TEST_F(WorkQueueTest, bounds_the_delay) {
  WorkQueueOptions options;
  options.longest_delay = milliseconds(20);
  int count = 0;
  WorkQueue bounded(sim.runtime(), options, [&](const std::string&) {
    ++count;
    return WorkOutcome::retry();
  });
  bounded.add("a");
  sim.advance(milliseconds(5 + 10 + 20 * 10));
  EXPECT_EQ(count, 13);
}

TEST_F(WorkQueueTest, bounds_retries_of_all_keys_together) {
  work = [](const std::string&) { return WorkOutcome::retry(); };
  for (int i = 0; i < 500; ++i) queue->add(cat("k", i));
  sim.advance(seconds(10));
  // 500 first tries, 100 at once, 10 a second.
  EXPECT_LE(done.size(), 500U + 100U + 101U);
  EXPECT_GE(done.size(), 500U + 100U + 90U);
}

TEST_F(WorkQueueTest, comes_back_when_asked_without_counting_a_failure) {
  work = [this](const std::string&) {
    return done.size() < 3 ? WorkOutcome::again_after(seconds(1)) : WorkOutcome::done();
  };
  queue->add("a");
  sim.advance(seconds(2));
  EXPECT_EQ(done.size(), 3U);
  EXPECT_EQ(queue->failures("a"), 0U);
}

TEST_F(WorkQueueTest, stops) {
  queue->add("a");
  queue->add_after("b", seconds(1));
  queue->stop();
  queue->add("c");
  sim.advance(seconds(5));
  EXPECT_THAT(done, IsEmpty());
  EXPECT_EQ(sim.pending_timers(), 0U);
}

TEST(WorkQueue, long_work_holds_its_key_until_it_is_done) {
  runtime::SimRuntime sim;
  WorkQueueOptions options;
  options.concurrency = 2;
  std::vector<std::string> begun;
  std::vector<WorkQueue::Done> open;
  WorkQueue queue(sim.runtime(), options,
                  WorkQueue::LongWork([&](const std::string& key, WorkQueue::Done done) {
                    begun.push_back(key);
                    open.push_back(std::move(done));
                  }));
  for (const auto* key : {"a", "b", "c", "a"}) queue.add(key);
  sim.run_until_idle();
  EXPECT_THAT(begun, ElementsAre("a", "b"));

  queue.add("a");
  sim.run_until_idle();
  EXPECT_THAT(begun, ElementsAre("a", "b"));

  open[0](WorkOutcome::done());
  sim.run_until_idle();
  EXPECT_THAT(begun, ElementsAre("a", "b", "c"));

  open[1](WorkOutcome::retry());
  sim.run_until_idle();
  EXPECT_THAT(begun, ElementsAre("a", "b", "c", "a"));
  EXPECT_EQ(queue.failures("b"), 1U);
  EXPECT_EQ(queue.delayed(), 1U);

  open[3](WorkOutcome::done());
  sim.advance(milliseconds(5));
  EXPECT_THAT(begun, ElementsAre("a", "b", "c", "a", "b"));
}

TEST(WorkQueue, the_gate_of_long_work_outlives_the_queue) {
  runtime::SimRuntime sim;
  std::shared_ptr<Gate> gate;
  WorkQueue::Done late;
  {
    WorkQueue queue(sim.runtime(), {},
                    WorkQueue::LongWork(
                        [&](const std::string&, WorkQueue::Done done) { late = std::move(done); }));
    gate = queue.gate();
    queue.add("a");
    sim.run_until_idle();
    EXPECT_TRUE(GateEntry(*gate));
  }
  EXPECT_FALSE(GateEntry(*gate));
  late(WorkOutcome::done());
  EXPECT_EQ(sim.run_until_idle(), 0U);
}

TEST(WorkQueue, never_works_on_a_key_twice_at_a_time) {
  runtime::RealRuntime world;
  Mutex mutex;
  std::set<std::string> active;
  std::atomic<int> count = 0;
  std::atomic<bool> overlap = false;
  WorkQueueOptions options;
  options.concurrency = 8;
  WorkQueue queue(world.runtime(), options, [&](const std::string& key) {
    {
      MutexLock lock(mutex);
      if (!active.insert(key).second) overlap = true;
    }
    std::this_thread::yield();
    ++count;
    MutexLock lock(mutex);
    active.erase(key);
    return WorkOutcome::done();
  });
  for (int i = 0; i < 2000; ++i) queue.add(cat("k", i % 10));
  while (queue.size() > 0) std::this_thread::yield();
  queue.stop();
  EXPECT_FALSE(overlap);
  EXPECT_GE(count, 10);
}

}  // namespace
}  // namespace dibs::client
