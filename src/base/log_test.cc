#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace dibs::log {
namespace {

class LogTest : public testing::Test {
 protected:
  LogTest() {
    set_sink([this](std::string_view line) { lines_.emplace_back(line); });
  }
  ~LogTest() override {
    set_sink(nullptr);
    set_level(Level::info);
  }
  std::vector<std::string> lines_;
};

TEST_F(LogTest, writes_one_line_of_logfmt) {
  info("two words", {{"n", 3},
                     {"ok", true},
                     {"path", "a/b"},
                     {"text", "x y\n"},
                     {"empty", ""},
                     {"error", Error::conflict("lost it")}});

  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0], testing::StartsWith("time=2"));
  EXPECT_THAT(lines_[0], testing::EndsWith("Z level=info msg=\"two words\" n=3 ok=true path=a/b "
                                           "text=\"x y\\n\" empty=\"\" error=\"lost it\"\n"));
}

TEST_F(LogTest, drops_what_is_below_the_level) {
  debug("hidden");
  EXPECT_TRUE(lines_.empty());
  set_level(Level::debug);
  debug("shown");
  EXPECT_EQ(lines_.size(), 1u);
  set_level(Level::off);
  error("hidden");
  EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(LogTest, knows_level_names) {
  Level level = Level::info;
  EXPECT_TRUE(parse_level("warn", level));
  EXPECT_EQ(level, Level::warn);
  EXPECT_FALSE(parse_level("loud", level));
}

TEST_F(LogTest, keeps_lines_of_threads_apart) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 50; ++i) info("m", {{"i", i}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines_.size(), 200u);
}

}  // namespace
}  // namespace dibs::log
