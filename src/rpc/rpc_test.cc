#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "base/mutex.h"
#include "base/strings.h"
#include "rpc/channel.h"
#include "rpc/memory_network.h"
#include "rpc/server.h"

namespace dibs::rpc {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class Rpc : public testing::Test {
 protected:
  Rpc() {
    char name[] = "/tmp/rpcXXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/a.sock";
  }
  ~Rpc() override { std::filesystem::remove_all(folder_); }

  static Methods echo() {
    Methods methods;
    methods.unary["/t.Echo/Same"] = [](std::string_view request) {
      return Reply{{}, std::string(request)};
    };
    methods.unary["/t.Echo/Refuse"] = [](std::string_view) {
      return Reply{{Code::failed_precondition, "not now"}, {}};
    };
    return methods;
  }
  std::unique_ptr<Server> serve(Methods methods) {
    auto server = serve_unix(path_, std::move(methods));
    EXPECT_TRUE(server.ok()) << server.error().message();
    return std::move(server).value();
  }

  std::string folder_;
  std::string path_;
};

TEST_F(Rpc, bytes_come_back) {
  const auto server = serve(echo());
  const auto channel = connect_unix(path_);

  const std::string large(3'000'000, 'x');
  EXPECT_EQ(channel->call("/t.Echo/Same", large, 10s).bytes, large);
  EXPECT_EQ(channel->call("/t.Echo/Same", "", 10s).bytes, "");
  EXPECT_EQ(channel->call("/t.Echo/Refuse", "", 10s).status.text(),
            "rpc error: code = FailedPrecondition desc = not now");
}

TEST_F(Rpc, unknown_methods_are_told_as_go_does) {
  const auto server = serve(echo());
  const auto channel = connect_unix(path_);

  EXPECT_EQ(channel->call("/t.Echo/Other", "", 10s).status.text(),
            "rpc error: code = Unimplemented desc = unknown method Other for service t.Echo");
  EXPECT_EQ(channel->call("/t.None/Other", "", 10s).status.text(),
            "rpc error: code = Unimplemented desc = unknown service t.None");
}

TEST_F(Rpc, a_missing_peer_fails_at_once_and_says_why) {
  const auto channel = connect_unix(path_);

  EXPECT_EQ(channel->call("/t.Echo/Same", "", 30s).status.text(),
            cat("rpc error: code = Unavailable desc = connection error: desc = \"transport: Error "
                "while dialing: dial unix ",
                path_, ": connect: no such file or directory\""));
  const auto server = serve(echo());
  EXPECT_EQ(channel->call("/t.Echo/Same", "a", 30s).bytes, "a");
}

TEST_F(Rpc, the_deadline_ends_a_call_that_hangs) {
  Methods methods;
  std::promise<void> release;
  auto released = release.get_future().share();
  methods.unary["/t.Echo/Hang"] = [released](std::string_view) {
    released.wait();
    return Reply{};
  };
  const auto server = serve(std::move(methods));
  const auto channel = connect_unix(path_);

  EXPECT_EQ(channel->call("/t.Echo/Hang", "", 50ms).status.text(),
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
  release.set_value();
}

TEST_F(Rpc, who_ends_waits_for_no_answer) {
  std::promise<void> asked;
  std::promise<void> release;
  Methods methods;
  methods.unary["/t.Slow/Call"] = [&](std::string_view) {
    asked.set_value();
    release.get_future().wait();
    return Reply{};
  };
  const auto server = serve(std::move(methods));
  const auto channel = connect_unix(path_);
  auto reply =
      std::async(std::launch::async, [&] { return channel->call("/t.Slow/Call", "", 10min); });
  asked.get_future().wait();

  channel->cancel_calls();

  EXPECT_EQ(reply.get().status.code, Code::cancelled);
  EXPECT_EQ(channel->call("/t.Slow/Call", "", 10min).status.code, Code::cancelled);
  release.set_value();
}

TEST_F(Rpc, an_answer_over_four_mebibytes_is_refused) {
  Methods methods;
  methods.unary["/t.Echo/Huge"] = [](std::string_view) {
    return Reply{{}, std::string(5'000'000, 'x')};
  };
  const auto server = serve(std::move(methods));

  EXPECT_EQ(connect_unix(path_)->call("/t.Echo/Huge", "", 10s).status.text(),
            "rpc error: code = ResourceExhausted desc = grpc: received message larger than max "
            "(5000000 vs. 4194304)");
}

TEST_F(Rpc, something_that_is_no_grpc_server_is_an_error) {
  const auto channel = connect_unix(path_);
  std::ofstream(path_) << "a file";

  EXPECT_EQ(channel->call("/t.Echo/Same", "", 60s).status.code, Code::unavailable);
  EXPECT_THAT(serve_unix(path_, {}).error().message(), HasSubstr("not a socket"));
}

TEST_F(Rpc, a_path_that_no_socket_can_have_is_refused) {
  const std::string path = folder_ + "/" + std::string(120, 'a');

  EXPECT_THAT(serve_unix(path, {}).error().message(), HasSubstr("longer than 107 bytes"));
  EXPECT_EQ(connect_unix(path)->call("/t.Echo/Same", "", 5s).status.code, Code::unavailable);
}

TEST_F(Rpc, a_socket_is_reached_where_its_path_is_too_long_for_an_address) {
  const std::string deep = folder_ + "/" + std::string(110, 'd');
  ASSERT_EQ(::mkdir(deep.c_str(), 0700), 0);
  const int folder = ::open(deep.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(folder, 0);
  const auto channel = connect_unix(deep + "/s");
  const Reply early = channel->call("/t.Echo/Same", "x", 5s);
  EXPECT_EQ(early.status.code, Code::unavailable);
  EXPECT_THAT(early.status.message, HasSubstr("dial unix " + deep + "/s: "));
  Methods methods;
  methods.unary["/t.Echo/Same"] = [](std::string_view bytes) {
    return Reply{{}, std::string(bytes)};
  };
  auto server = serve_unix("/proc/self/fd/" + std::to_string(folder) + "/s", std::move(methods));
  ASSERT_TRUE(server.ok()) << server.error().message();
  EXPECT_EQ(channel->call("/t.Echo/Same", "x", 5s).bytes, "x");
  (*server)->stop();
  ::close(folder);
}

TEST_F(Rpc, any_path_will_do) {
  path_ = folder_ + "/a b%20#c?d:e";
  const auto server = serve(echo());

  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_EQ(connect_unix(path_)->call("/t.Echo/Same", "a", 5s).status.text(), Status{}.text());
}

TEST_F(Rpc, the_socket_goes_with_the_server_and_a_stale_one_is_replaced) {
  serve(echo())->stop();
  EXPECT_FALSE(std::filesystem::exists(path_));

  const auto first = serve(echo());
  const auto second = serve(echo());
  EXPECT_EQ(connect_unix(path_)->call("/t.Echo/Same", "b", 5s).bytes, "b");
}

TEST_F(Rpc, a_stream_carries_messages_until_its_end) {
  Methods methods;
  methods.streams["/t.Echo/Count"] = [](std::string_view request, StreamWriter& writer) {
    for (int i = 0; i < 3; ++i) writer.write(cat(request, i));
    return Status{Code::aborted, "enough"};
  };
  const auto server = serve(std::move(methods));
  const auto channel = connect_unix(path_);
  std::vector<std::string> seen;
  std::promise<std::string> ended;

  StreamHandlers handlers;
  handlers.message = [&](std::string_view message) { seen.emplace_back(message); };
  handlers.ended = [&](const Status& status) { ended.set_value(status.text()); };
  const auto stream = channel->open_stream("/t.Echo/Count", "n", std::move(handlers));

  EXPECT_EQ(ended.get_future().get(), "rpc error: code = Aborted desc = enough");
  EXPECT_THAT(seen, ElementsAre("n0", "n1", "n2"));
}

TEST_F(Rpc, a_destroyed_stream_frees_its_handler) {
  std::promise<void> began;
  std::promise<bool> gone;
  Methods methods;
  methods.streams["/t.Echo/Wait"] = [&](std::string_view, StreamWriter& writer) {
    began.set_value();
    gone.set_value(writer.wait_gone(30s));
    return Status{};
  };
  const auto server = serve(std::move(methods));
  const auto channel = connect_unix(path_);

  auto stream = channel->open_stream("/t.Echo/Wait", "", {});
  began.get_future().wait();
  stream.reset();

  EXPECT_TRUE(gone.get_future().get());
}

TEST_F(Rpc, stopping_a_server_ends_its_streams) {
  std::promise<void> began;
  Methods methods;
  methods.streams["/t.Echo/Wait"] = [&](std::string_view, StreamWriter& writer) {
    began.set_value();
    writer.wait_gone(30s);
    return Status{};
  };
  const auto server = serve(std::move(methods));
  const auto channel = connect_unix(path_);
  std::promise<void> ended;
  StreamHandlers handlers;
  handlers.ended = [&](const Status&) { ended.set_value(); };
  const auto stream = channel->open_stream("/t.Echo/Wait", "", std::move(handlers));
  began.get_future().wait();

  server->stop();

  EXPECT_EQ(ended.get_future().wait_for(10s), std::future_status::ready);
}

TEST_F(Rpc, a_watch_tells_when_the_peer_comes_goes_and_comes_again) {
  Mutex mutex;
  CondVar changed;
  std::vector<bool> seen;
  const auto wait_for = [&](std::size_t n) {
    MutexLock lock(mutex);
    return changed.wait_for(lock, 10s, [&] { return seen.size() >= n; });
  };
  auto server = serve(echo());
  const auto channel = connect_unix(path_);

  channel->watch_connection([&](bool connected) {
    const MutexLock lock(mutex);
    seen.push_back(connected);
    changed.notify_all();
  });
  ASSERT_TRUE(wait_for(1));
  server->stop();
  ASSERT_TRUE(wait_for(2));
  server = serve(echo());
  ASSERT_TRUE(wait_for(3));

  EXPECT_THAT(seen, ElementsAre(true, false, true));
}

TEST(MemoryNetwork, servers_and_channels_meet_by_path) {
  MemoryNetwork network;
  std::vector<std::string> seen;
  const auto end = network.listen("/x", [&](const std::string& path, bool there) {
    seen.push_back(cat(there ? "+" : "-", path));
  });
  const auto other = network.serve("/xy", {});
  const auto channel = network.connect("/x/a");
  channel->watch_connection([&](bool there) { seen.emplace_back(there ? "up" : "down"); });
  EXPECT_EQ(channel->call("/t/a", "x", 1s).status.code, Code::unavailable);

  Methods methods;
  methods.unary["/t/a"] = [](std::string_view request) { return Reply{{}, std::string(request)}; };
  const auto server = network.serve("/x/a", methods);

  EXPECT_THAT(network.paths("/x"), ElementsAre("/x/a"));
  EXPECT_EQ(channel->call("/t/a", "x", 1s).bytes, "x");
  EXPECT_EQ(channel->call("/t/b", "x", 1s).status.code, Code::unimplemented);
  server->stop();
  end();
  EXPECT_THAT(seen, ElementsAre("+/x/a", "up", "-/x/a", "down"));
}

}  // namespace
}  // namespace dibs::rpc
