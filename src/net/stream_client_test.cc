// Upgraded connections from end to end: the server's upgrade_to, the client's end, SPDY over both,
// and two of them joined.
#include "net/stream_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/spdy_connection.h"
#include "net/testing/test_support.h"
#include "net/websocket_stream.h"

namespace dibs::net {
namespace {

constexpr Duration kWait = std::chrono::seconds(20);

std::string url_of(const HttpServer& server, bool tls) {
  return cat(tls ? "https" : "http", "://127.0.0.1:", server.port());
}

Response switching(std::string protocol) {
  Response head;
  head.status = 101;
  head.headers.add("Connection", "Upgrade");
  head.headers.add("Upgrade", std::move(protocol));
  return head;
}

Request asking(std::string target) {
  Request request = get(std::move(target));
  request.headers.add("Connection", "Upgrade");
  request.headers.add("Upgrade", "echo");
  return request;
}

/// Sends every byte back; ends at "!".
void echo(Request, std::unique_ptr<Exchange> exchange) {
  exchange->upgrade_to(switching("echo"), [](std::shared_ptr<ByteStream> stream) {
    if (stream == nullptr) return;
    stream->start(
        [stream](std::string_view bytes) {
          stream->write(std::string(bytes));
          if (bytes.ends_with('!')) stream->close();
        },
        [] {});
  });
}

/// Collects what comes until the end.
struct Collector {
  Mutex mutex;
  std::string text DIBS_GUARDED_BY(mutex);
  std::promise<void> closed;

  static std::shared_ptr<Collector> on(const std::shared_ptr<ByteStream>& stream) {
    auto self = std::make_shared<Collector>();
    stream->start(
        [self](std::string_view bytes) {
          MutexLock lock(self->mutex);
          self->text.append(bytes);
        },
        [self] { self->closed.set_value(); });
    return self;
  }
  std::string wait() {
    EXPECT_EQ(closed.get_future().wait_for(kWait), std::future_status::ready);
    MutexLock lock(mutex);
    return text;
  }
};

std::shared_ptr<TlsContext> client_context() {
  auto context = TlsContext::client(test_client_tls());
  return context.ok() ? *context : nullptr;
}

TEST(StreamClient, carries_bytes_both_ways) {
  for (const bool tls : {false, true}) {
    ServerOptions options;
    if (tls) options.tls = test_server_tls();
    auto server = test_server(options, echo);
    StreamClient client;
    auto answer = open_stream(client, url_of(*server, tls), client_context(), asking("/"), kWait);
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    EXPECT_EQ(answer->head.status, 101);
    ASSERT_NE(answer->upgraded, nullptr);
    const auto got = Collector::on(answer->upgraded);
    std::string sent;
    for (int i = 0; i < 300; ++i) {
      std::string piece(static_cast<std::size_t>(i) * 37, static_cast<char>('a' + i % 26));
      sent += piece;
      answer->upgraded->write(std::move(piece));
    }
    answer->upgraded->write("!");
    EXPECT_EQ(got->wait(), sent + "!");
  }
}

TEST(StreamClient, takes_no_session_of_one_name_for_a_proof_of_another) {
  const auto one = issue_server_certificate(test_ca(), "s", {"127.0.0.1"}, test_validity());
  ASSERT_TRUE(one.ok());
  ServerOptions options;
  options.tls = TlsServerOptions{one->certificate_pem, one->key_pem};
  auto server = test_server(options, [](Request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, ""));
  });
  StreamClient client;
  const auto context = client_context();
  const auto ask = [&](const char* name) -> std::string {
    std::promise<Result<StreamAnswer>> done;
    Request request = get("/");
    request.headers.add("Connection", "close");
    const auto asked = client.request_at("127.0.0.1", server->port(), cat("https://", name),
                                         context, request, kWait, Reach::anywhere);
    asked->start([&](Result<StreamAnswer> answer) { done.set_value(std::move(answer)); });
    auto answer = done.get_future().get();
    if (!answer.ok()) return answer.error().message();
    // A ticket comes behind the handshake, before the body's end.
    return whole_body(answer->body, kWait).value();
  };

  EXPECT_EQ(ask("127.0.0.1"), "");
  // What answers can take the ticket up, and has no certificate of that name.
  EXPECT_THAT(ask("127.0.0.2"), testing::HasSubstr("failed to verify certificate"));
  EXPECT_EQ(ask("127.0.0.1"), "");
}

TEST(StreamClient, keeps_what_came_with_the_head) {
  auto server = test_server({}, [](Request, std::unique_ptr<Exchange> exchange) {
    exchange->upgrade_to(switching("x"), [](std::shared_ptr<ByteStream> stream) {
      stream->write("at once");
      stream->close();
    });
  });
  StreamClient client;
  auto answer = open_stream(client, url_of(*server, false), nullptr, asking("/"), kWait);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(Collector::on(answer->upgraded)->wait(), "at once");
}

TEST(StreamClient, reads_another_answer_as_a_body) {
  auto server = test_server({}, [](Request request, std::unique_ptr<Exchange> exchange) {
    if (request.target == "/none") return exchange->respond(text(204, ""));
    if (request.target == "/long") {
      auto stream = exchange->stream(text(200, ""));
      for (int i = 0; i < 50; ++i) stream->write(share(std::string(10'000, 'z')));
      return stream->finish();
    }
    if (request.target == "/broken") {
      auto stream = exchange->stream(text(200, ""));
      stream->write(share("begun"));
      return;
    }
    exchange->respond(text(403, "no"));
  });
  StreamClient client;
  const auto body = [&](std::string target, int& status) -> Result<std::string> {
    auto answer =
        open_stream(client, url_of(*server, false), nullptr, get(std::move(target)), kWait);
    if (!answer.ok()) return answer.error();
    status = answer->head.status;
    return whole_body(answer->body, kWait);
  };
  int status = 0;
  EXPECT_EQ(body("/", status).value(), "no");
  EXPECT_EQ(status, 403);
  EXPECT_EQ(body("/none", status).value(), "");
  EXPECT_EQ(status, 204);
  EXPECT_EQ(body("/long", status).value().size(), 500'000U);
  EXPECT_FALSE(body("/broken", status).ok());
}

TEST(StreamClient, words_a_failed_dial_as_go_does) {
  std::uint16_t port = 0;
  {
    auto server = test_server({}, echo);
    port = server->port();
  }
  StreamClient client;
  const auto answer = open_stream(client, cat("http://127.0.0.1:", port), nullptr, get("/"), kWait);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message(),
            cat("dial tcp 127.0.0.1:", port, ": connect: connection refused"));
}

TEST(StreamClient, breaks_off_what_is_open) {
  auto server = test_server({}, echo);
  StreamClient client;
  auto answer = open_stream(client, url_of(*server, false), nullptr, asking("/"), kWait);
  ASSERT_TRUE(answer.ok());
  const auto got = Collector::on(answer->upgraded);
  client.close();
  EXPECT_EQ(got->wait(), "");
  auto late = open_stream(client, url_of(*server, false), nullptr, asking("/"), kWait);
  EXPECT_FALSE(late.ok());
}

TEST(StreamClient, waits_for_the_silent_without_threads) {
  constexpr int kMany = 500;
  const SilentPort silent;
  auto server = test_server({}, echo);
  std::atomic<int> failed = 0;
  {
    StreamClient client;
    for (int i = 0; i < kMany; ++i) {
      client.request(cat("http://127.0.0.1:", silent.port()), nullptr, get("/"), kWait)
          ->start([&](const auto& answer) { failed += answer.ok() ? 0 : 1; });
    }
    EXPECT_TRUE(open_stream(client, url_of(*server, false), nullptr, asking("/"), kWait).ok());
    EXPECT_EQ(failed, 0);
  }
  EXPECT_EQ(failed, kMany);
}

TEST(StreamClient, gives_up_at_the_end_of_its_time) {
  const SilentPort silent;
  StreamClient client;
  const auto message = [&](const char* scheme) {
    auto answer = open_stream(client, cat(scheme, "://127.0.0.1:", silent.port()), client_context(),
                              get("/"), std::chrono::milliseconds(1));
    return answer.ok() ? "opened" : answer.error().message();
  };
  EXPECT_EQ(message("http"), "context deadline exceeded");
  EXPECT_EQ(message("https"), "net/http: TLS handshake timeout");
}

TEST(StreamClient, gives_up_when_it_is_told_to) {
  const SilentPort silent;
  StreamClient client;
  std::promise<std::string> told;
  const auto request =
      client.request(cat("http://127.0.0.1:", silent.port()), nullptr, get("/"), kWait);
  request->start([&](const auto& answer) { told.set_value(answer.error().message()); });
  const int taken = silent.accept_one();
  request->cancel();
  EXPECT_EQ(told.get_future().get(), "context canceled");
  see_end(taken);
  request->cancel();

  const auto early = client.request("http://127.0.0.1:1", nullptr, get("/"), kWait);
  early->cancel();
  std::promise<std::string> second;
  early->start([&](const auto& answer) { second.set_value(answer.error().message()); });
  EXPECT_EQ(second.get_future().get(), "context canceled");
}

TEST(StreamClient, looks_names_up_and_says_what_is_wrong) {
  auto server = test_server({}, echo);
  StreamClient client;
  EXPECT_TRUE(
      open_stream(client, cat("http://localhost:", server->port()), nullptr, asking("/"), kWait)
          .ok());
  const auto message = [&](const std::string& url, const Request& request) {
    auto answer = open_stream(client, url, nullptr, request, kWait);
    return answer.ok() ? "opened" : answer.error().message();
  };
  EXPECT_THAT(message("http://nobody.invalid", get("/")),
              testing::StartsWith("dial tcp: lookup nobody.invalid: "));
  EXPECT_THAT(message("ftp://x", get("/")), testing::HasSubstr("must begin with"));
  EXPECT_THAT(message("http://127.0.0.1:1", get("/a b\r\nc")),
              testing::Not(testing::HasSubstr("dial")));
}

TEST(StreamClient, sends_long_bodies_and_hears_early_answers) {
  auto server = test_server({.max_body = 20 * 1024 * 1024},
                            [](Request request, std::unique_ptr<Exchange> exchange) {
                              exchange->respond(text(200, cat(request.body.size())));
                            });
  StreamClient client;
  const auto answered = [&](std::size_t size) -> std::string {
    auto answer = open_stream(client, url_of(*server, false), nullptr,
                              post("/", std::string(size, 'x')), kWait);
    if (!answer.ok()) return answer.error().message();
    auto body = whole_body(answer->body, kWait);
    return cat(answer->head.status, " ", body.ok() ? *body : body.error().message());
  };
  EXPECT_EQ(answered(15'000'000), "200 15000000");
  EXPECT_THAT(answered(40'000'000), testing::StartsWith("413 "));
}

TEST(StreamClient, breaks_a_body_off_that_takes_too_long) {
  std::shared_ptr<BodyStream> held;
  auto server = test_server({}, [&](Request, std::unique_ptr<Exchange> exchange) {
    held = exchange->stream(text(500, ""));
    held->write(share("begun"));
  });
  StreamClient client;
  auto answer = open_stream(client, url_of(*server, false), nullptr, get("/"), kWait);
  ASSERT_TRUE(answer.ok());
  const auto body = whole_body(answer->body, std::chrono::milliseconds(1));
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().message(), "unexpected EOF");
}

TEST(StreamClient, joins_two_streams) {
  auto far = test_server({}, echo);
  StreamClient client;
  auto near = test_server({}, [&](Request request, std::unique_ptr<Exchange> exchange) {
    const std::shared_ptr<Exchange> shared = std::move(exchange);
    std::thread([&, shared, request] {
      auto answer = open_stream(client, url_of(*far, false), nullptr, request, kWait);
      ASSERT_TRUE(answer.ok());
      shared->upgrade_to(answer->head, [other = answer->upgraded](auto stream) {
        splice(std::move(stream), other);
      });
    }).detach();
  });
  StreamClient outer;
  auto answer = open_stream(outer, url_of(*near, false), nullptr, asking("/"), kWait);
  ASSERT_TRUE(answer.ok());
  const auto got = Collector::on(answer->upgraded);
  const std::string big(5'000'000, 'b');
  answer->upgraded->write(big);
  answer->upgraded->write("!");
  EXPECT_EQ(got->wait(), big + "!");
}

TEST(StreamClient, holds_a_sender_up) {
  std::promise<std::shared_ptr<ByteStream>> opened;
  auto server = test_server({}, [&](Request, std::unique_ptr<Exchange> exchange) {
    exchange->upgrade_to(switching("x"), [&](std::shared_ptr<ByteStream> stream) {
      stream->hold(true);
      opened.set_value(stream);
    });
  });
  StreamClient client;
  auto answer = open_stream(client, url_of(*server, false), nullptr, asking("/"), kWait);
  ASSERT_TRUE(answer.ok());
  auto stream = opened.get_future().get();
  const auto got = Collector::on(stream);
  answer->upgraded->write(std::string(12'000'000, 'q'));
  answer->upgraded->close();
  {
    MutexLock lock(got->mutex);
    EXPECT_EQ(got->text, "");
  }
  stream->hold(false);
  EXPECT_EQ(got->wait().size(), 12'000'000U);
}

TEST(StreamClient, is_drained_when_nothing_is_on_its_way_either) {
  Mutex mutex;
  std::vector<std::size_t> seen;
  auto server = test_server({}, [&](Request, std::unique_ptr<Exchange> exchange) {
    // On the io thread: none of these begins before all are queued.
    exchange->upgrade_to(switching("x"), [&](std::shared_ptr<ByteStream> stream) {
      stream->on_drained([&, raw = stream.get()] {
        MutexLock lock(mutex);
        seen.push_back(raw->queued());
      });
      for (int i = 0; i < 3; ++i) stream->write("piece");
      stream->start([stream](std::string_view) { stream->close(); }, [] {});
    });
  });
  StreamClient client;
  auto answer = open_stream(client, url_of(*server, false), nullptr, asking("/"), kWait);
  ASSERT_TRUE(answer.ok());
  const auto got = Collector::on(answer->upgraded);
  answer->upgraded->write("enough");
  EXPECT_EQ(got->wait(), "piecepiecepiece");
  MutexLock lock(mutex);
  EXPECT_EQ(seen, std::vector<std::size_t>{0});
}

TEST(StreamClient, opens_a_websocket_through_a_tunnel) {
  auto server = test_server({}, [](Request, std::unique_ptr<Exchange> exchange) {
    exchange->upgrade("tunnel", [](std::shared_ptr<WebSocket> socket) {
      auto bytes = bytes_of(std::move(socket));
      bytes->start(
          [bytes](std::string_view piece) {
            bytes->write(cat("<", piece, ">"));
            if (piece == "end") bytes->close();
          },
          [] {});
    });
  });
  StreamClient client;
  Request request = get("/");
  request.headers.add("Connection", "Upgrade");
  request.headers.add("Upgrade", "websocket");
  request.headers.add("Sec-WebSocket-Version", "13");
  request.headers.add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
  auto answer = open_stream(client, url_of(*server, false), nullptr, request, kWait);
  ASSERT_TRUE(answer.ok());
  auto bytes = bytes_of(make_websocket(answer->upgraded, WsEnd::client, 1 << 20));
  const auto got = Collector::on(bytes);
  bytes->write("one");
  bytes->write("end");
  EXPECT_EQ(got->wait(), "<one><end>");
}

TEST(SpdyConnection, carries_streams_between_two_ends) {
  auto server = test_server({}, [](Request, std::unique_ptr<Exchange> exchange) {
    exchange->upgrade_to(switching("SPDY/3.1"), [](std::shared_ptr<ByteStream> stream) {
      auto spdy = SpdyConnection::make(std::move(stream), SpdyConnection::End::server);
      SpdyConnection::Handlers handlers;
      handlers.opened = [spdy](std::uint32_t id, const SpdyHeaders& headers) {
        if (spdy_header(headers, "streamtype") == "bad") return spdy->reset(id, kSpdyRefused);
        spdy->reply(id);
        spdy->write(id, cat("hello ", spdy_header(headers, "name"), ": "));
      };
      handlers.data = [spdy](std::uint32_t id, std::string_view bytes) { spdy->write(id, bytes); };
      handlers.finished = [spdy](std::uint32_t id, bool reset) {
        if (!reset) spdy->finish(id);
      };
      spdy->start(std::move(handlers));
    });
  });
  StreamClient client;
  auto answer = open_stream(client, url_of(*server, false), nullptr, asking("/"), kWait);
  ASSERT_TRUE(answer.ok());
  auto spdy = SpdyConnection::make(answer->upgraded, SpdyConnection::End::client);
  Mutex mutex;
  std::map<std::uint32_t, std::string> got;
  std::promise<void> done;
  std::promise<void> closed;
  int left = 3;
  SpdyConnection::Handlers handlers;
  handlers.data = [&](std::uint32_t id, std::string_view bytes) {
    MutexLock lock(mutex);
    got[id].append(bytes);
  };
  handlers.finished = [&](std::uint32_t id, bool reset) {
    MutexLock lock(mutex);
    if (reset) got[id] = "reset";
    if (--left == 0) done.set_value();
  };
  handlers.closed = [&] { closed.set_value(); };
  spdy->start(std::move(handlers));
  const auto one = spdy->open({{"streamtype", "data"}, {"name", "one"}});
  const auto two = spdy->open({{"streamtype", "bad"}});
  const auto three = spdy->open({{"streamtype", "data"}, {"name", "three"}});
  EXPECT_EQ(one, 1U);
  EXPECT_EQ(three, 5U);
  spdy->write(one, "1");
  spdy->write(three, std::string(300'000, '3'));
  spdy->finish(one);
  spdy->finish(three);
  ASSERT_EQ(done.get_future().wait_for(kWait), std::future_status::ready);
  {
    MutexLock lock(mutex);
    EXPECT_EQ(got[one], "hello one: 1");
    EXPECT_EQ(got[two], "reset");
    EXPECT_EQ(got[three].size(), 300'013U);
  }
  spdy->close();
  EXPECT_EQ(closed.get_future().wait_for(kWait), std::future_status::ready);
}

}  // namespace
}  // namespace dibs::net
