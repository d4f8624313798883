#include "net/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

namespace dibs::net {
namespace {

TEST(EventLoop, runs_what_takes_long_between_what_does_not) {
  EventLoop loop;
  std::vector<std::string> done;
  const auto note = [&](const char* what) { return [&done, what] { done.emplace_back(what); }; };
  // All of it is there when the loop begins.
  for (int i = 0; i < 3; ++i) loop.post_bulk(note("bulk"));
  loop.post([&] {
    done.emplace_back("short");
    loop.post(note("another"));
  });
  for (int i = 0; i < 2; ++i) loop.post_bulk(note("bulk"));
  loop.post_bulk([&] { loop.stop(); });
  std::thread thread([&] { loop.run(); });
  thread.join();
  loop.close();
  EXPECT_THAT(done,
              testing::ElementsAre("short", "bulk", "another", "bulk", "bulk", "bulk", "bulk"));
}

TEST(EventLoop, is_woken_by_what_takes_long) {
  EventLoop loop;
  std::thread thread([&] { loop.run(); });
  std::promise<void> ran;
  EXPECT_TRUE(loop.post_bulk([&] { ran.set_value(); }));
  ran.get_future().wait();
  loop.stop();
  thread.join();
  loop.close();
  EXPECT_FALSE(loop.post_bulk([] {}));
}

TEST(EventLoop, is_of_no_thread_once_its_own_has_left_it) {
  EventLoop loop;
  bool here = false;
  bool afterwards = true;
  loop.post([&] {
    here = loop.on_this_thread();
    loop.stop();
  });
  std::thread thread([&] {
    loop.run();
    afterwards = loop.on_this_thread();
  });
  thread.join();
  loop.close();
  EXPECT_TRUE(here);
  EXPECT_FALSE(afterwards);
}

}  // namespace
}  // namespace dibs::net
