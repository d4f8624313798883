#include "net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/strings.h"
#include "net/testing/test_support.h"

namespace dibs::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr Duration kWait = seconds(20);

ServerOptions plain() { return {}; }

ServerOptions with_tls() {
  ServerOptions options;
  options.tls = test_server_tls();
  return options;
}

TEST(BodyStream, sends_pieces_as_chunks) {
  auto server = test_server(plain(), [](Request, std::unique_ptr<Exchange> exchange) {
    auto stream = exchange->stream(text(200, ""));
    stream->write(share("one"));
    stream->write(share("two"));
    stream->finish();
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "6\r\nonetwo\r\n0\r\n\r\n");

  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.read_until("0\r\n\r\n"), HasSubstr("onetwo"));
}

TEST(BodyStream, works_from_another_thread_over_tls) {
  std::thread writer;
  auto server = test_server(with_tls(), [&](Request, std::unique_ptr<Exchange> exchange) {
    writer = std::thread([exchange = std::move(exchange)] {
      auto stream = exchange->stream(text(200, ""));
      for (int i = 0; i < 2000; ++i) EXPECT_TRUE(stream->write(share(cat("event ", i, "\n"))));
      stream->write(share(std::string(500'000, 'z')));
      stream->finish();
    });
  });
  auto client = test_client(*server, true);

  const auto response = client->send(get("/watch"), kWait);
  writer.join();

  ASSERT_TRUE(response.ok()) << response.error().message();
  EXPECT_THAT(response->body, StartsWith("event 0\nevent 1\n"));
  EXPECT_THAT(response->body, HasSubstr("event 1999\nzzz"));
  EXPECT_TRUE(response->body.ends_with(std::string(500'000, 'z')));
}

TEST(BodyStream, reads_as_it_comes) {
  std::promise<std::shared_ptr<BodyStream>> opened;
  auto server = test_server(with_tls(), [&](Request, std::unique_ptr<Exchange> exchange) {
    opened.set_value(exchange->stream(text(200, "")));
  });
  auto client = test_client(*server, true);

  auto response = client->open_stream(get("/watch"), kWait);
  ASSERT_TRUE(response.ok()) << response.error().message();
  auto stream = opened.get_future().get();
  for (const auto* piece : {"a", "bb", "ccc"}) {
    stream->write(share(piece));
    EXPECT_EQ(*(*response)->read_some(kWait), piece);
  }
  const auto late = (*response)->read_some(milliseconds(1));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code(), Code::timeout);
  stream->finish();
  EXPECT_EQ(*(*response)->read_some(kWait), "");
}

TEST(BodyStream, tells_when_the_client_goes_away) {
  std::promise<std::shared_ptr<BodyStream>> opened;
  auto server = test_server(with_tls(), [&](Request, std::unique_ptr<Exchange> exchange) {
    opened.set_value(exchange->stream(text(200, "")));
  });
  auto client = test_client(*server, true);
  auto response = client->open_stream(get("/watch"), kWait);
  ASSERT_TRUE(response.ok());
  auto stream = opened.get_future().get();
  std::promise<void> closed;
  stream->on_closed([&] { closed.set_value(); });

  std::thread reader([&] { EXPECT_FALSE((*response)->read_some(kWait).ok()); });
  (*response)->cancel();
  reader.join();

  EXPECT_EQ(closed.get_future().wait_for(kWait), std::future_status::ready);
  EXPECT_FALSE(stream->write(share("x")));
}

TEST(BodyStream, bounds_the_queue_of_a_slow_client) {
  ServerOptions options;
  options.max_queued = 1'000'000;
  std::promise<std::shared_ptr<BodyStream>> opened;
  auto server = test_server(options, [&](Request, std::unique_ptr<Exchange> exchange) {
    opened.set_value(exchange->stream(text(200, "")));
  });
  RawClient client(server->port());
  client.shrink_receive_buffer();
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto stream = opened.get_future().get();
  std::promise<void> closed;
  stream->on_closed([&] { closed.set_value(); });

  const auto piece = share(std::string(100'000, 'x'));
  int written = 0;
  while (stream->write(piece)) {
    ASSERT_LE(stream->queued(), 1'000'000U);
    ASSERT_LT(++written, 1000);
  }

  EXPECT_EQ(closed.get_future().wait_for(kWait), std::future_status::ready);
  EXPECT_EQ(server->stats().slow_clients, 1U);
}

TEST(BodyStream, calls_back_when_drained) {
  std::atomic<int> left = 50;
  auto server = test_server(with_tls(), [&](Request, std::unique_ptr<Exchange> exchange) {
    std::shared_ptr<BodyStream> stream = exchange->stream(text(200, ""));
    stream->on_drained([stream, &left] {
      if (left-- > 0) {
        stream->write(share(std::string(10'000, 'd')));
      } else {
        stream->finish();
      }
    });
  });
  auto client = test_client(*server, true);
  const auto response = client->send(get("/"), kWait);
  ASSERT_TRUE(response.ok()) << response.error().message();
  EXPECT_EQ(response->body.size(), 500'000U);
}

TEST(BodyStream, breaks_off_when_dropped_unfinished) {
  auto server = test_server(plain(), [](Request, std::unique_ptr<Exchange> exchange) {
    exchange->stream(text(200, ""))->write(share("half"));
  });
  auto client = test_client(*server, false);
  const auto response = client->send(get("/"), kWait);
  ASSERT_FALSE(response.ok());
  EXPECT_THAT(response.error().message(), HasSubstr("unexpected EOF"));
}

TEST(BodyStream, goes_without_chunks_to_http_1_0) {
  auto server = test_server(plain(), [](Request, std::unique_ptr<Exchange> exchange) {
    auto stream = exchange->stream(text(200, ""));
    stream->write(share("plain"));
    stream->finish();
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.0\r\n\r\n");
  const std::string answer = client.read_all();
  EXPECT_THAT(answer, Not(HasSubstr("chunked")));
  EXPECT_TRUE(answer.ends_with("\r\n\r\nplain"));
}

TEST(BodyStream, outlives_its_server) {
  std::promise<std::shared_ptr<BodyStream>> opened;
  auto server = test_server(plain(), [&](Request, std::unique_ptr<Exchange> exchange) {
    opened.set_value(exchange->stream(text(200, "")));
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto stream = opened.get_future().get();

  server->stop();
  server.reset();

  EXPECT_FALSE(stream->write(share("x")));
  bool closed = false;
  stream->on_closed([&] { closed = true; });
  EXPECT_TRUE(closed);
  stream->finish();
}

}  // namespace
}  // namespace dibs::net
