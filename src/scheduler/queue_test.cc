#include "scheduler/queue.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::scheduler {
namespace {

using std::chrono::seconds;

PodPtr pod(const std::string& name, std::int64_t priority = 0) {
  auto made = std::make_shared<Pod>();
  made->key = name;
  made->uid = made->key;
  made->priority = priority;
  return made;
}

std::string pop(Queue& queue, Duration now) {
  const Queue::Popped popped = queue.pop(now);
  return popped.pod == nullptr ? "" : popped.pod->key;
}

TEST(Queue, goes_by_priority_then_age) {
  Queue queue({});
  queue.add(pod("old"), seconds(1));
  queue.add(pod("young"), seconds(2));
  queue.add(pod("high", 5), seconds(3));
  EXPECT_EQ(pop(queue, seconds(4)), "high");
  EXPECT_EQ(pop(queue, seconds(4)), "old");
  EXPECT_EQ(pop(queue, seconds(4)), "young");
  EXPECT_EQ(pop(queue, seconds(4)), "");
}

TEST(Queue, backs_off_longer_after_each_error) {
  Queue queue({});
  queue.add(pod("p"), seconds(0));
  Duration now = seconds(0);
  for (const int wait : {1, 2, 4, 8, 10, 10}) {
    ASSERT_EQ(pop(queue, now), "p");
    queue.fail(pod("p"), now);
    EXPECT_EQ(pop(queue, now + seconds(wait) - std::chrono::milliseconds(1)), "");
    EXPECT_EQ(queue.next_due(now), Duration(seconds(wait)));
    now += seconds(wait);
  }
}

TEST(Queue, does_not_park_what_an_event_may_have_helped_meanwhile) {
  Queue queue({});
  for (const bool helps : {true, false}) {
    const std::string name = helps ? "helped" : "not-helped";
    queue.add(pod(name), seconds(0));
    ASSERT_EQ(pop(queue, seconds(0)), name);
    queue.wake(bit(helps ? Plugin::resources_fit : Plugin::node_ports), nullptr, seconds(1));
    queue.park(pod(name), name, bit(Plugin::resources_fit), seconds(1));
    EXPECT_EQ(pop(queue, seconds(20)), helps ? name : "");
    queue.remove(name);
  }
  // Judged again, with the event known.
  queue.add(pod("p"), seconds(0));
  ASSERT_EQ(pop(queue, seconds(0)), "p");
  queue.wake_pod("p", seconds(1));
  queue.judged("p");
  queue.park(pod("p"), "p", bit(Plugin::resources_fit), seconds(1));
  EXPECT_EQ(pop(queue, seconds(20)), "");
}

TEST(Queue, wakes_one_of_equals_and_then_the_next) {
  Queue queue({});
  for (int i = 0; i < 3; ++i) queue.add(pod(cat("p", i)), seconds(0));
  for (int i = 0; i < 3; ++i) {
    const std::string name = pop(queue, seconds(0));
    queue.park(pod(name), "equal", bit(Plugin::resources_fit), seconds(0));
  }
  EXPECT_EQ(queue.wake(bit(Plugin::node_ports), nullptr, seconds(20)), 0U);
  EXPECT_EQ(queue.wake(bit(Plugin::resources_fit), nullptr, seconds(20)), 1U);
  EXPECT_EQ(pop(queue, seconds(20)), "p0");
  EXPECT_EQ(pop(queue, seconds(20)), "");
  queue.next_of("equal", seconds(20));
  EXPECT_EQ(pop(queue, seconds(20)), "p1");
}

TEST(Queue, asks_whether_an_event_helps) {
  Queue queue({});
  queue.add(pod("p"), seconds(0));
  pop(queue, seconds(0));
  queue.park(pod("p"), "g", bit(Plugin::resources_fit), seconds(0));
  EXPECT_EQ(queue.wake(
                ~PluginSet{0}, [](const Pod&) { return false; }, seconds(20)),
            0U);
}

TEST(Queue, tries_everything_again_after_a_while) {
  Queue queue({});
  queue.add(pod("p"), seconds(0));
  pop(queue, seconds(0));
  queue.park(pod("p"), "g", bit(Plugin::resources_fit), seconds(0));
  queue.flush(seconds(299));
  EXPECT_EQ(pop(queue, seconds(299)), "");
  queue.flush(seconds(300));
  EXPECT_EQ(pop(queue, seconds(300)), "p");
}

TEST(Queue, tries_woken_pods_early_when_nothing_else_is_to_do) {
  Queue queue({});
  queue.add(pod("p"), seconds(0));
  pop(queue, seconds(0));
  queue.park(pod("p"), "g", bit(Plugin::resources_fit), seconds(0));
  queue.wake_pod("p", seconds(0));
  queue.add(pod("q"), seconds(0));
  EXPECT_EQ(pop(queue, seconds(0)), "q");
  EXPECT_EQ(pop(queue, seconds(0)), "p");
}

TEST(Queue, forgets_removed_pods_wherever_they_are) {
  Queue queue({});
  queue.add(pod("active"), seconds(0));
  queue.hold(pod("held"), seconds(0));
  queue.park(pod("parked"), "g", 1, seconds(0));
  for (const char* name : {"active", "held", "parked"}) queue.remove(name);
  const Queue::Sizes sizes = queue.sizes();
  EXPECT_EQ(sizes.active + sizes.backoff + sizes.unschedulable + sizes.gated, 0U);
  EXPECT_EQ(queue.wake(1, nullptr, seconds(1)), 0U);
}

TEST(Queue, tells_which_pods_enter_and_why) {
  Queue queue({});
  std::vector<std::string> entered;
  queue.on_entered(
      [&](const char* into, const char* why) { entered.push_back(cat(into, " ", why)); });
  queue.add(pod("p"), seconds(0));
  pop(queue, seconds(0));
  queue.park(pod("p"), "g", bit(Plugin::resources_fit), seconds(0));
  queue.wake(bit(Plugin::resources_fit), nullptr, seconds(20), "NodeAdd");
  pop(queue, seconds(20));
  queue.fail(pod("p"), seconds(20));
  pop(queue, seconds(40));
  EXPECT_EQ(entered, (std::vector<std::string>{
                         "active PodAdd", "unschedulable ScheduleAttemptFailure", "active NodeAdd",
                         "backoff ScheduleAttemptFailure", "active BackoffComplete"}));
}

}  // namespace
}  // namespace dibs::scheduler
