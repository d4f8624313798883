#include "runtime/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::runtime {
namespace {

using testing::HasSubstr;

ProcessOptions shell(std::string script) { return {.argv = {"sh", "-c", std::move(script)}}; }

TEST(Processes, collect_both_streams_and_the_exit_code) {
  const auto output = run(shell("cat; echo err >&2; exit 7"), "hello");
  ASSERT_TRUE(output.ok()) << output.error().message();
  EXPECT_EQ(output->out, "hello");
  EXPECT_EQ(output->err, "err\n");
  EXPECT_EQ(output->status.code, 7);
}

TEST(Processes, carry_more_than_a_pipe_holds) {
  const std::string much(3'000'000, 'x');
  const auto output = run(shell("cat"), much);
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->out.size(), much.size());
}

TEST(Processes, survive_a_child_that_does_not_read) {
  const auto output = run(shell("exit 3"), std::string(1'000'000, 'x'));
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->status.code, 3);
}

TEST(Processes, tell_the_signal) {
  const auto output = run(shell("kill -9 $$"));
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->status.code, 137);
  EXPECT_EQ(output->status.signal, 9);
}

TEST(Processes, are_killed_at_the_timeout) {
  const auto output = run(shell("exec sleep 1000"), {}, std::chrono::milliseconds(20));
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code(), Code::timeout);
}

TEST(Processes, do_not_wait_for_what_the_child_leaves_behind) {
  const auto output = run(shell("sleep 5 & echo done"), {}, std::chrono::seconds(4));
  ASSERT_TRUE(output.ok()) << output.error().message();
  EXPECT_EQ(output->out, "done\n");
}

TEST(Processes, get_no_descriptor_but_theirs) {
  const Fd leak(::open("/dev/null", O_RDONLY));  // without close-on-exec
  ASSERT_TRUE(leak.ok());
  // Asked by the shell itself: a program or a pipeline would open descriptors of its own.
  const auto output = run(
      shell(cat("for n in 0 1 2 ", leak.get(), "; do [ -e /proc/$$/fd/$n ] && echo $n; done; :")));
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->out, "0\n1\n2\n");
}

TEST(Processes, take_further_descriptors) {
  auto first = make_pipe();
  auto second = make_pipe();
  ASSERT_TRUE(first.ok() && second.ok());
  auto options = shell("echo three >&3; echo four >&4");
  options.descriptors = {{first->write_end.get(), 3}, {second->write_end.get(), 4}};
  auto process = Process::start(options);
  ASSERT_TRUE(process.ok());
  EXPECT_EQ((*process)->wait()->code, 0);
  char text[16] = {};
  EXPECT_EQ(::read(first->read_end.get(), text, sizeof text), 6);
  EXPECT_EQ(std::string(text), "three\n");
  EXPECT_EQ(::read(second->read_end.get(), text, sizeof text), 5);
}

TEST(Processes, have_a_terminal_of_a_size) {
  auto options = shell("stty size; tty >/dev/null && echo terminal");
  options.terminal = true;
  options.rows = 11;
  options.columns = 77;
  auto process = Process::start(options);
  ASSERT_TRUE(process.ok()) << process.error().message();
  EXPECT_EQ((*process)->wait()->code, 0);
  // A terminal may hand over line by line, and ends with an error.
  std::string text;
  char part[100];
  for (ssize_t got = 0; (got = ::read((*process)->out().get(), part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  EXPECT_THAT(text, HasSubstr("11 77"));
  EXPECT_THAT(text, HasSubstr("terminal"));
}

TEST(Processes, end_with_their_object) {
  pid_t pid = 0;
  {
    auto process = Process::start(shell("exec sleep 1000"));
    ASSERT_TRUE(process.ok());
    pid = (*process)->pid();
    EXPECT_EQ((*process)->wait(std::chrono::milliseconds(1)), std::nullopt);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Processes, errors_name_the_program) {
  EXPECT_EQ(run({.argv = {"no-such-program"}}).error().code(), Code::not_found);
  EXPECT_THAT(run_checked(shell("echo broken >&2; exit 1")).error().message(),
              testing::StrEq("sh: broken"));
  EXPECT_FALSE(run({.argv = {"/etc/passwd"}}).ok());
}

}  // namespace
}  // namespace dibs::runtime
