#include "rpc/remote.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "base/strings.h"
#include "rpc/server.h"

namespace dibs::rpc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class RemoteTest : public testing::Test {
 protected:
  RemoteTest() {
    Methods methods;
    methods.unary["/t.Echo/Same"] = [](std::string_view request) {
      return Reply{{}, std::string(request)};
    };
    methods.unary["/t.Echo/Hang"] = [this](std::string_view) {
      released_.wait();
      return Reply{};
    };
    methods.streams["/t.Echo/Three"] = [](std::string_view request, StreamWriter& writer) {
      for (int i = 0; i < 3; ++i) writer.write(cat(request, i));
      return Status{Code::aborted, "enough"};
    };
    auto served = serve_tcp(port_, std::move(methods));
    EXPECT_TRUE(served.ok());
    server_ = std::move(served).value();
    remote_ = connect_remote({.address = cat("127.0.0.1:", port_), .tls = false});
  }

  static Reply call(Remote& remote, const std::string& method, const std::string& bytes,
                    Duration deadline = 10s) {
    auto promise = std::make_shared<std::promise<Reply>>();
    auto reply = promise->get_future();
    remote.call(method, bytes, deadline, {},
                [promise](Reply answer) { promise->set_value(std::move(answer)); });
    return reply.get();
  }

  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
  int port_ = 0;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Remote> remote_;
};

TEST_F(RemoteTest, many_calls_are_in_flight_at_once) {
  constexpr int kCalls = 200;
  std::atomic<int> right = 0;
  std::promise<void> all;
  std::atomic<int> left = kCalls;
  for (int i = 0; i < kCalls; ++i) {
    const std::string text = std::to_string(i);
    remote_->call("/t.Echo/Same", text, 10s, {{"token", "x"}}, [&, text](const Reply& reply) {
      if (reply.bytes == text) ++right;
      if (--left == 0) all.set_value();
    });
  }
  all.get_future().wait();
  EXPECT_EQ(right, kCalls);
}

TEST_F(RemoteTest, a_deadline_ends_a_call_and_the_channel_may_go_before_its_calls) {
  EXPECT_EQ(call(*remote_, "/t.Echo/Hang", "", 50ms).status.code, Code::deadline_exceeded);
  std::promise<Reply> late;
  remote_->call("/t.Echo/Hang", "", 100ms, {}, [&](Reply reply) { late.set_value(reply); });
  remote_.reset();
  EXPECT_EQ(late.get_future().get().status.code, Code::deadline_exceeded);
  release_.set_value();
}

TEST_F(RemoteTest, a_stream_gives_messages_in_order_and_its_end) {
  std::vector<std::string> messages;
  std::promise<Status> ended;
  const auto stream = remote_->open_stream(
      "/t.Echo/Three", {},
      {.message = [&](std::string_view message) { messages.emplace_back(message); },
       .ended = [&](const Status& status) { ended.set_value(status); }});
  stream->write("n");
  EXPECT_EQ(ended.get_future().get().message, "enough");
  EXPECT_THAT(messages, testing::ElementsAre("n0", "n1", "n2"));
  stream->write("nobody reads that");
  release_.set_value();
}

TEST_F(RemoteTest, says_why_nobody_is_reached) {
  release_.set_value();
  server_.reset();
  const auto remote = connect_remote({.address = cat("127.0.0.1:", port_), .tls = false});
  const Reply reply = call(*remote, "/t.Echo/Same", "");
  EXPECT_EQ(reply.status.code, Code::unavailable);
  EXPECT_THAT(reply.status.message, HasSubstr("failed to connect"));
}

TEST_F(RemoteTest, a_server_without_tls_is_no_server_with_it) {
  release_.set_value();
  const RemoteOptions options{.address = cat("127.0.0.1:", port_), .tls = true};
  const auto remote = connect_remote(options);
  EXPECT_EQ(call(*remote, "/t.Echo/Same", "secret").status.code, Code::unavailable);
  EXPECT_THAT(tls_reason(options), HasSubstr("wrong version number"));
  EXPECT_THAT(tls_reason({.address = "127.0.0.1:1",
                          .tls = true,
                          .certificates = {.certificate = "x", .key = "y"}}),
              HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace dibs::rpc
