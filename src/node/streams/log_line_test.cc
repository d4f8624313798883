#include "node/streams/log_line.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/strings.h"

namespace dibs::node {
namespace {

TEST(LogLine, reads_the_format_of_every_runtime) {
  const auto containerd = parse_log_line("2026-11-15T12:00:01.123456789Z stdout F hello world\n");
  ASSERT_TRUE(containerd);
  EXPECT_EQ(format_log_time(containerd->time), "2026-11-15T12:00:01.123456789Z");
  EXPECT_FALSE(containerd->is_err);
  EXPECT_FALSE(containerd->partial);
  EXPECT_EQ(containerd->text, "hello world\n");

  const auto conmon = parse_log_line("2026-11-15T14:00:01.5+02:00 stderr P  two blanks\n");
  ASSERT_TRUE(conmon);
  EXPECT_EQ(format_log_time(conmon->time), "2026-11-15T12:00:01.500000000Z");
  EXPECT_TRUE(conmon->is_err);
  EXPECT_TRUE(conmon->partial);
  EXPECT_EQ(conmon->text, " two blanks");

  EXPECT_TRUE(parse_log_line("2026-11-15T12:00:01Z stdout F \n"));
  EXPECT_TRUE(parse_log_line("2026-11-15T12:00:01Z stdout F:x tagged\n"));
}

TEST(LogLine, knows_what_is_none) {
  for (const char* line : {"", "\n", "hello\n", "2026-11-15T12:00:01Z\n", "x stdout F y\n",
                           "2026-11-15T12:00:01Z stdin F y\n", "2026-11-15T12:00:01Z stdout\n"}) {
    EXPECT_FALSE(parse_log_line(line)) << line;
  }
}

std::string shown(const LogOptions& options, bool* more = nullptr) {
  LogFormat format(options);
  std::string out;
  bool goes_on = true;
  for (const char* line :
       {"2026-11-15T12:00:01Z stdout F one\n", "2026-11-15T12:00:02Z stdout P tw\n", "garbage\n",
        "2026-11-15T12:00:03Z stdout F o\n", "2026-11-15T12:00:04Z stderr F bad\n"}) {
    if (goes_on) goes_on = format.add(line, out);
  }
  if (more != nullptr) *more = goes_on;
  return out;
}

TEST(LogFormat, chooses_and_shows) {
  EXPECT_EQ(shown({}), "one\ntwo\nbad\n");
  LogOptions options;
  options.timestamps = true;
  EXPECT_EQ(shown(options),
            "2026-11-15T12:00:01.000000000Z one\n2026-11-15T12:00:02.000000000Z two\n"
            "2026-11-15T12:00:04.000000000Z bad\n");
  options = {};
  options.since = *parse_rfc3339("2026-11-15T12:00:03Z");
  EXPECT_EQ(shown(options), "o\nbad\n");
  options = {};
  options.stream = "Stderr";
  EXPECT_EQ(shown(options), "bad\n");
  options.stream = "Stdout";
  EXPECT_EQ(shown(options), "one\ntwo\n");
  options = {};
  options.limit_bytes = 6;
  bool more = true;
  EXPECT_EQ(shown(options, &more), "one\ntw");
  EXPECT_FALSE(more);
}

Result<LogOptions> parsed(std::string_view query) {
  return parse_log_options(*net::Target::parse(cat("/containerLogs/a/b/c?", query)));
}

TEST(LogOptions, are_read_from_the_query) {
  const auto all =
      parsed("follow=true&previous=true&timestamps=true&tailLines=5&limitBytes=7&sinceSeconds=9");
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->follow && all->previous && all->timestamps);
  EXPECT_EQ(all->tail_lines, 5);
  EXPECT_EQ(all->limit_bytes, 7);
  EXPECT_EQ(all->since_seconds, 9);
  EXPECT_FALSE(parsed("follow=false")->follow);
  EXPECT_EQ(parsed("tail=3")->tail_lines, 3);
  EXPECT_FALSE(parsed("tail=all")->tail_lines);
  EXPECT_EQ(parsed("sinceTime=2026-11-15T12:00:03Z")->since->seconds(), 1794744003);
}

TEST(LogOptions, that_make_no_sense_are_refused) {
  for (const char* query : {"tailLines=x", "sinceTime=yesterday", "limitBytes=1k"}) {
    const auto options = parsed(query);
    ASSERT_FALSE(options.ok()) << query;
    EXPECT_EQ(options.error().code(), Code::bad_request);
    EXPECT_EQ(options.error().message(), R"({"message": "Unable to decode query."})");
  }
  for (const char* query :
       {"tailLines=-1", "limitBytes=0", "sinceSeconds=0", "stream=both",
        "sinceSeconds=1&sinceTime=2026-11-15T12:00:03Z", "stream=Stdout&tailLines=1"}) {
    const auto options = parsed(query);
    ASSERT_FALSE(options.ok()) << query;
    EXPECT_EQ(options.error().code(), Code::invalid);
  }
}

TEST(LogTail, finds_where_the_last_lines_begin) {
  char path[] = "/tmp/dibs-tail-XXXXXX";
  const int fd = ::mkstemp(path);
  ASSERT_GE(fd, 0);
  ::unlink(path);
  const auto fill = [&](const std::string& text) {
    ASSERT_EQ(::ftruncate(fd, 0), 0);
    ASSERT_EQ(::pwrite(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  };
  fill("a\nbb\nccc\n");
  EXPECT_EQ(find_tail(fd, 0), 9);
  EXPECT_EQ(find_tail(fd, 1), 5);
  EXPECT_EQ(find_tail(fd, 2), 2);
  EXPECT_EQ(find_tail(fd, 3), 0);
  EXPECT_EQ(find_tail(fd, 100), 0);
  fill("a\nbb\nunfinished");
  EXPECT_EQ(find_tail(fd, 1), 5);
  fill("");
  EXPECT_EQ(find_tail(fd, 1), 0);
  // Across blocks of reading.
  std::string big;
  for (int i = 0; i < 20'000; ++i) append(big, "line ", i, "\n");
  fill(big);
  const auto at = static_cast<std::size_t>(find_tail(fd, 15'000));
  EXPECT_TRUE(std::string_view(big).substr(at).starts_with("line 5000\n"));
  ::close(fd);
}

}  // namespace
}  // namespace dibs::node
