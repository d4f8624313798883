#include "node/streams/port_forward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/mutex.h"
#include "net/http_server.h"
#include "net/websocket_stream.h"
#include "node/streams/test_node.h"

namespace dibs::node {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// What came on each stream, and which ended.
struct Streams {
  Mutex mutex;
  CondVar changed;
  std::map<std::uint32_t, std::string> text;
  std::map<std::uint32_t, bool> finished;

  bool wait_finished(std::uint32_t stream) {
    MutexLock lock(mutex);
    return changed.wait_for(lock, kWait, [&] { return finished[stream]; });
  }
};

class PortForwardTest : public TestNode {
 protected:
  PortForwardTest() {
    net::ServerOptions options;
    web_ =
        *net::HttpServer::start(options, [](net::Request, std::unique_ptr<net::Exchange> exchange) {
          net::Response answer;
          answer.headers.add("Connection", "close");
          answer.body = "from the pod";
          exchange->respond(std::move(answer));
        });
  }

  struct Client {
    std::shared_ptr<net::SpdyConnection> connection;
    std::shared_ptr<Streams> got = std::make_shared<Streams>();
  };

  static Client start(std::shared_ptr<net::ByteStream> stream) {
    Client out;
    out.connection = net::SpdyConnection::make(std::move(stream), net::SpdyConnection::End::client);
    net::SpdyConnection::Handlers handlers;
    handlers.data = [got = out.got](std::uint32_t stream, std::string_view bytes) {
      MutexLock lock(got->mutex);
      got->text[stream].append(bytes);
    };
    handlers.finished = [got = out.got](std::uint32_t stream, bool) {
      MutexLock lock(got->mutex);
      got->finished[stream] = true;
      got->changed.notify_all();
    };
    out.connection->start(std::move(handlers));
    return out;
  }

  /// One HTTP request through the forwarded port; the data and the error that came back.
  static std::pair<std::string, std::string> fetch(const Client& client, int port, int id) {
    const net::SpdyHeaders common = {{"port", std::to_string(port)},
                                     {"requestid", std::to_string(id)}};
    net::SpdyHeaders headers = common;
    headers.emplace_back("streamtype", "error");
    const auto error = client.connection->open(headers);
    headers.back().second = "data";
    const auto data = client.connection->open(headers);
    client.connection->finish(error);
    client.connection->write(data, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(client.got->wait_finished(data));
    EXPECT_TRUE(client.got->wait_finished(error));
    MutexLock lock(client.got->mutex);
    return {client.got->text[data], client.got->text[error]};
  }

  void check(const Client& client) {
    for (int id = 0; id < 3; ++id) {
      const auto [data, error] = fetch(client, web_->port(), id);
      EXPECT_THAT(data, HasSubstr("from the pod"));
      EXPECT_EQ(error, "");
    }
    const auto [data, error] = fetch(client, 1, 9);
    EXPECT_EQ(data, "");
    EXPECT_EQ(error,
              "error forwarding port 1 to pod sandbox-u, uid : dial tcp4 127.0.0.1:1: connect: "
              "connection refused");
  }

  std::unique_ptr<net::HttpServer> web_;
};

TEST_F(PortForwardTest, works_over_spdy) {
  auto answer = open(spdy("/portForward/n/p", {"portforward.k8s.io"}), &admin_);
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->head.status, 101);
  EXPECT_EQ(answer->head.headers.get("X-Stream-Protocol-Version"), "portforward.k8s.io");
  check(start(answer->upgraded));
}

TEST_F(PortForwardTest, works_through_a_websocket_tunnel) {
  auto answer = open(websocket("/portForward/n/p", std::string(kPortForwardTunnel)), &admin_);
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->head.status, 101);
  check(start(net::bytes_of(net::make_websocket(answer->upgraded, net::WsEnd::client, 1 << 20))));
}

TEST_F(PortForwardTest, works_over_a_plain_websocket) {
  auto answer =
      open(websocket(cat("/portForward/n/p?port=", web_->port()), "v4.channel.k8s.io"), &admin_);
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->head.status, 101);
  auto socket = net::make_websocket(answer->upgraded, net::WsEnd::client, 1 << 20);
  struct State {
    Mutex mutex;
    CondVar changed;
    std::map<int, std::string> text;
    bool closed = false;
  };
  auto state = std::make_shared<State>();
  socket->start(
      [state](std::string message, bool) {
        MutexLock lock(state->mutex);
        state->text[message[0]] += message.substr(1);
      },
      [state] {
        MutexLock lock(state->mutex);
        state->closed = true;
        state->changed.notify_all();
      });
  socket->send_binary(cat('\0', "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  MutexLock lock(state->mutex);
  ASSERT_TRUE(state->changed.wait_for(lock, kWait, [&] { return state->closed; }));
  std::string port;
  port.push_back(static_cast<char>(web_->port()));
  port.push_back(static_cast<char>(web_->port() >> 8));
  EXPECT_THAT(state->text[0], StartsWith(cat(port, "HTTP/1.1 200 OK")));
  EXPECT_EQ(state->text[1], port);
}

TEST_F(PortForwardTest, refuses_what_it_cannot_do) {
  EXPECT_EQ(get("/portForward/n/p"), "400 unable to upgrade: missing upgrade headers in request\n");
  auto answer = open(websocket("/portForward/n/p", "v4.channel.k8s.io"), &admin_);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->head.status, 400);
  answer = open(websocket("/portForward/n/p?port=70000", "v4.channel.k8s.io"), &admin_);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->head.status, 400);
}

}  // namespace
}  // namespace dibs::node
