#include "net/fd_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "base/strings.h"

namespace dibs::net {
namespace {

constexpr auto kWait = std::chrono::seconds(20);

/// What came, and the end.
struct Taken {
  Mutex mutex;
  CondVar changed;
  std::string text DIBS_GUARDED_BY(mutex);
  std::string end DIBS_GUARDED_BY(mutex);

  FdStream::Handlers handlers() {
    FdStream::Handlers out;
    out.data = [this](std::string_view bytes) {
      const MutexLock lock(mutex);
      text += bytes;
      changed.notify_all();
    };
    out.ended = [this](bool by_peer) {
      const MutexLock lock(mutex);
      end = by_peer ? "by peer" : "by us";
      changed.notify_all();
    };
    return out;
  }
  std::string wait_end() {
    MutexLock lock(mutex);
    changed.wait_for(lock, kWait, [this]() DIBS_REQUIRES(mutex) { return !end.empty(); });
    return end;
  }
  bool wait_bytes(std::size_t count) {
    MutexLock lock(mutex);
    return changed.wait_for(lock, kWait,
                            [&]() DIBS_REQUIRES(mutex) { return text.size() >= count; });
  }
  std::string all() {
    const MutexLock lock(mutex);
    return text;
  }
};

/// Returns once the loop has done what was asked of it before.
void settle(LoopThread& thread) {
  std::promise<void> done;
  thread.loop()->post([&] { done.set_value(); });
  done.get_future().wait();
}

TEST(FdStream, carries_bytes_and_the_end_of_each_direction) {
  LoopThread loop;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  Taken left;
  Taken right;
  const auto one = FdStream::open(loop.loop(), ends[0], left.handlers());
  const auto two = FdStream::open(loop.loop(), ends[1], right.handlers());
  const std::string many(3'000'000, 'x');
  one->write(many);
  one->finish();
  EXPECT_EQ(right.wait_end(), "by peer");
  EXPECT_EQ(right.all(), many);
  two->write("answer");
  ASSERT_TRUE(left.wait_bytes(6));
  two->finish();
  EXPECT_EQ(left.wait_end(), "by peer");
  one->close();
  two->close();
  settle(loop);
}

TEST(FdStream, holds_the_other_side_up_and_keeps_what_is_not_taken) {
  LoopThread loop;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Taken taken;
  const auto reader = FdStream::open(loop.loop(), ends[0], taken.handlers());
  reader->hold(true);
  settle(loop);
  std::promise<void> drained;
  const auto writer =
      FdStream::open(loop.loop(), ends[1], {.drained = [&] { drained.set_value(); }});
  writer->write(std::string(1'000'000, 'y'));
  settle(loop);
  EXPECT_GT(writer->queued(), 0U);
  EXPECT_EQ(taken.all(), "");
  reader->hold(false);
  EXPECT_EQ(drained.get_future().wait_for(kWait), std::future_status::ready);
  EXPECT_EQ(writer->queued(), 0U);
  ASSERT_TRUE(taken.wait_bytes(1'000'000));
  writer->finish();
  EXPECT_EQ(taken.wait_end(), "by peer");
  reader->close();
  settle(loop);
}

TEST(FdStream, ends_with_what_has_come_although_somebody_holds_the_pipe) {
  LoopThread loop;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::write(ends[1], "said", 4), 4);
  Taken taken;
  const auto reader = FdStream::open(loop.loop(), ends[0], taken.handlers());
  reader->end_of_input();
  EXPECT_EQ(taken.wait_end(), "by peer");
  EXPECT_EQ(taken.all(), "said");
  reader->close();
  settle(loop);
  ::close(ends[1]);
}

TEST(FdStream, drops_what_nobody_reads_any_more) {
  LoopThread loop;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  Taken taken;
  const auto stream = FdStream::open(loop.loop(), ends[0], taken.handlers());
  ::close(ends[1]);
  EXPECT_EQ(taken.wait_end(), "by peer");
  stream->write("into the void");
  settle(loop);
  EXPECT_EQ(stream->queued(), 0U);
  stream->close();
  stream->close();
  settle(loop);
}

TEST(FdStream, tells_of_its_own_end_once) {
  LoopThread loop;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  Taken taken;
  const auto stream = FdStream::open(loop.loop(), ends[0], taken.handlers());
  stream->close();
  EXPECT_EQ(taken.wait_end(), "by us");
  settle(loop);
  char byte;
  EXPECT_EQ(::read(ends[1], &byte, 1), 0);
  ::close(ends[1]);
}

}  // namespace
}  // namespace dibs::net
