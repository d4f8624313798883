#include "net/websocket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include <future>

#include "base/strings.h"
#include "net/testing/test_support.h"

namespace dibs::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr Duration kWait = std::chrono::seconds(20);

TEST(WsFrame, accept_key_is_that_of_the_standard) {
  EXPECT_EQ(ws_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WsReader, reads_frames_of_every_size_however_cut) {
  for (std::size_t size : {0, 1, 125, 126, 65535, 65536, 200000}) {
    const std::string payload(size, 'p');
    const std::string frame = ws_masked_frame(WsOp::binary, payload, 0x12345678);
    for (std::size_t step : {std::size_t{7}, frame.size()}) {
      WsReader reader(true, 1 << 20);
      std::vector<WsEvent> events;
      for (std::size_t i = 0; i < frame.size(); i += step) {
        ASSERT_EQ(reader.feed(std::string_view(frame).substr(i, step), events), 0);
      }
      ASSERT_EQ(events.size(), 1U) << size;
      EXPECT_EQ(events[0].data, payload);
      EXPECT_TRUE(events[0].binary);
    }
  }
}

std::string fragment(bool final, WsOp op, std::string_view payload) {
  std::string frame = ws_frame(op, payload);
  if (!final) frame[0] = static_cast<char>(frame[0] & 0x7f);
  return frame;
}

TEST(WsReader, joins_fragments_around_control_frames) {
  WsReader reader(false, 100);
  std::vector<WsEvent> events;
  EXPECT_EQ(reader.feed(cat(fragment(false, WsOp::text, "he"), ws_frame(WsOp::ping, "p"),
                            fragment(false, WsOp::more, "l"), fragment(true, WsOp::more, "lo"),
                            ws_frame(WsOp::close, ws_close_payload(1001, "bye"))),
                        events),
            0);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].kind, WsEvent::Kind::ping);
  EXPECT_EQ(events[1].data, "hello");
  EXPECT_FALSE(events[1].binary);
  EXPECT_EQ(events[2].code, 1001);
  EXPECT_EQ(events[2].data, "bye");
}

TEST(WsReader, names_the_fault) {
  const std::pair<std::string, int> cases[] = {
      {ws_masked_frame(WsOp::text, "x", 1), 1002},  // a server does not mask
      {fragment(true, WsOp::more, "x"), 1002},
      {cat(fragment(false, WsOp::text, "x"), ws_frame(WsOp::text, "y")), 1002},
      {fragment(false, WsOp::ping, "x"), 1002},
      {ws_frame(WsOp::ping, std::string(126, 'x')), 1002},
      {std::string("\x83\x00", 2), 1002},
      {std::string("\xc1\x00", 2), 1002},
      {ws_frame(WsOp::close, "x"), 1002},
      {ws_frame(WsOp::close, ws_close_payload(1005, "")), 1002},
      {ws_frame(WsOp::text, "\xff\xfe"), 1007},
      {ws_frame(WsOp::binary, std::string(101, 'x')), 1009},
      {cat(fragment(false, WsOp::binary, std::string(60, 'x')),
           fragment(true, WsOp::more, std::string(60, 'x'))),
       1009},
      {std::string("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10), 1009},
  };
  int index = 0;
  for (const auto& [bytes, code] : cases) {
    WsReader reader(false, 100);
    std::vector<WsEvent> events;
    EXPECT_EQ(reader.feed(bytes, events), code) << index;
    ++index;
  }
}

/// Sends every message back, with the chosen protocol.
void echo(Request request, std::unique_ptr<Exchange> exchange) {
  const std::string protocol(request.headers.get("Sec-WebSocket-Protocol"));
  exchange->upgrade(protocol, [](std::shared_ptr<WebSocket> socket) {
    if (socket == nullptr) return;
    socket->start(
        [socket](std::string message, bool binary) {
          if (message == "close") return socket->close(1000, "done");
          binary ? socket->send_binary(std::move(message)) : socket->send_text(std::move(message));
        },
        [] {});
  });
}

TEST(WebSocket, echoes_over_tls) {
  ServerOptions options;
  options.tls = test_server_tls();
  auto server = test_server(options, echo);
  auto client = test_client(*server, true);

  auto socket = client->open_websocket(get("/exec"), {"v5.channel.k8s.io"}, kWait);
  ASSERT_TRUE(socket.ok()) << socket.error().message();
  EXPECT_EQ((*socket)->protocol(), "v5.channel.k8s.io");
  for (std::size_t size : {0, 5, 1000, 100'000, 2'000'000}) {
    const std::string message(size, 'm');
    ASSERT_TRUE((*socket)->send(message, size % 2 == 0, kWait).ok());
    const auto back = (*socket)->receive(kWait);
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(back->data, message);
    EXPECT_EQ(back->binary, size % 2 == 0);
  }
  ASSERT_TRUE((*socket)->send("close", false, kWait).ok());
  const auto end = (*socket)->receive(kWait);
  ASSERT_TRUE(end.ok());
  EXPECT_TRUE(end->closed);
  EXPECT_EQ(end->code, 1000);
  EXPECT_EQ(end->data, "done");
}

TEST(WebSocket, answers_pings_and_closes) {
  auto server = test_server({}, echo);
  RawClient client(server->port());
  client.send(
      "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  // Sent with the handshake, before anyone listens.
  client.send(ws_masked_frame(WsOp::ping, "are you there", 7));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 101 Switching Protocols\r\n"));
  EXPECT_THAT(head, HasSubstr("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  EXPECT_EQ(client.read_until("there"), ws_frame(WsOp::pong, "are you there"));

  client.send(ws_masked_frame(WsOp::close, ws_close_payload(1001, ""), 9));
  EXPECT_EQ(client.read_all(), ws_frame(WsOp::close, ws_close_payload(1001, "")));
}

TEST(WebSocket, closes_on_a_broken_frame) {
  auto server = test_server({}, echo);
  RawClient client(server->port());
  client.send(
      "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  client.read_until("\r\n\r\n");
  client.send(ws_frame(WsOp::text, "unmasked"));
  EXPECT_EQ(client.read_all(), ws_frame(WsOp::close, ws_close_payload(1002, "")));
}

TEST(WebSocket, refuses_a_request_that_is_no_handshake) {
  std::promise<bool> failed;
  auto server = test_server({}, [&](Request, std::unique_ptr<Exchange> exchange) {
    exchange->upgrade(
        "", [&](std::shared_ptr<WebSocket> socket) { failed.set_value(socket == nullptr); });
  });
  const auto response = test_client(*server, false)->send(get("/"), kWait);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 400);
  EXPECT_TRUE(failed.get_future().get());
}

TEST(WebSocket, tells_a_client_that_gets_another_answer) {
  auto server = test_server(
      {}, [](Request, std::unique_ptr<Exchange> exchange) { exchange->respond(text(403, "no")); });
  const auto socket = test_client(*server, false)->open_websocket(get("/"), {}, kWait);
  ASSERT_FALSE(socket.ok());
  EXPECT_THAT(socket.error().message(), HasSubstr("bad handshake (403 Forbidden)"));
}

TEST(WebSocket, tells_the_server_when_the_client_is_gone) {
  std::promise<void> closed;
  auto server = test_server({}, [&](Request, std::unique_ptr<Exchange> exchange) {
    exchange->upgrade("", [&](std::shared_ptr<WebSocket> socket) {
      socket->start([socket](std::string, bool) {}, [&] { closed.set_value(); });
    });
  });
  {
    auto socket = test_client(*server, false)->open_websocket(get("/"), {}, kWait);
    ASSERT_TRUE(socket.ok());
  }
  EXPECT_EQ(closed.get_future().wait_for(kWait), std::future_status::ready);
}

TEST(WebSocket, cuts_off_a_peer_that_does_not_read) {
  ServerOptions options;
  options.max_queued = 500'000;
  std::promise<std::shared_ptr<WebSocket>> opened;
  std::promise<void> closed;
  auto server = test_server(options, [&](Request, std::unique_ptr<Exchange> exchange) {
    exchange->upgrade("", [&](std::shared_ptr<WebSocket> socket) {
      socket->start([](std::string, bool) {}, [&] { closed.set_value(); });
      opened.set_value(std::move(socket));
    });
  });
  auto client = test_client(*server, false)->open_websocket(get("/"), {}, kWait);
  ASSERT_TRUE(client.ok());
  auto socket = opened.get_future().get();
  for (int i = 0; i < 100; ++i) socket->send_binary(std::string(200'000, 'x'));
  EXPECT_EQ(closed.get_future().wait_for(kWait), std::future_status::ready);
  // Counted by the io thread, a moment later.
  while (server->stats().slow_clients == 0) std::this_thread::yield();
  EXPECT_EQ(server->stats().slow_clients, 1U);
}

}  // namespace
}  // namespace dibs::net
