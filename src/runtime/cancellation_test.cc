#include "runtime/cancellation.h"

#include <gtest/gtest.h>

#include <latch>
#include <optional>
#include <thread>

namespace dibs::runtime {
namespace {

using namespace std::chrono_literals;

TEST(StopSource, stops_once_and_tells_callbacks) {
  StopSource source;
  StopToken token = source.token();
  int calls = 0;
  StopCallback kept = token.on_stop([&] { ++calls; });
  {
    StopCallback dropped = token.on_stop([&] { calls += 100; });
  }
  EXPECT_FALSE(token.stopped());

  EXPECT_TRUE(source.stop());
  EXPECT_FALSE(source.stop());

  EXPECT_TRUE(token.stopped());
  EXPECT_EQ(calls, 1);
}

TEST(StopSource, calls_at_once_when_it_was_stopped_before) {
  StopSource source;
  source.stop();
  bool called = false;
  StopCallback callback = source.token().on_stop([&] { called = true; });
  EXPECT_TRUE(called);
}

TEST(StopSource, children_stop_with_the_parent_only_downwards) {
  StopSource parent;
  StopSource child(parent.token());
  StopSource sibling(parent.token());
  child.stop();
  EXPECT_FALSE(parent.stopped());
  EXPECT_FALSE(sibling.stopped());
  parent.stop();
  EXPECT_TRUE(sibling.stopped());
}

TEST(StopSource, a_callback_may_drop_itself) {
  StopSource source;
  std::optional<StopCallback> callback;
  callback = source.token().on_stop([&] { callback.reset(); });
  source.stop();
  EXPECT_FALSE(callback.has_value());
}

TEST(StopSource, dropping_waits_for_a_callback_that_runs_elsewhere) {
  StopSource source;
  std::latch inside(1);
  std::atomic<bool> finished{false};
  std::optional<StopCallback> callback = source.token().on_stop([&] {
    inside.count_down();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    finished = true;
  });
  std::thread stopper([&] { source.stop(); });
  inside.wait();
  callback.reset();
  EXPECT_TRUE(finished);
  stopper.join();
}

TEST(StopToken, waits_until_stopped) {
  StopSource source;
  EXPECT_FALSE(source.token().wait_for(0s));
  std::thread stopper([&] { source.stop(); });
  EXPECT_TRUE(source.token().wait_for(1h));
  stopper.join();
  EXPECT_FALSE(StopToken().stopped());
  EXPECT_FALSE(StopToken().wait_for(0s));
}

}  // namespace
}  // namespace dibs::runtime
