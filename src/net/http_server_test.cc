#include "net/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/mutex.h"
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

/// Answers with what it got, one line each.
void describe(Request request, std::unique_ptr<Exchange> exchange) {
  exchange->respond(text(200, cat(request.method, ' ', request.target, '\n', request.body)));
}

ServerOptions plain() { return {}; }

ServerOptions with_tls() {
  ServerOptions options;
  options.tls = test_server_tls();
  return options;
}

TEST(HttpServer, tells_who_makes_an_answer_that_nobody_waits_for_it) {
  for (const bool half : {false, true}) {
    std::promise<void> asked;
    std::promise<void> gone;
    std::shared_ptr<Exchange> held;
    auto server = test_server(plain(), [&](Request, std::unique_ptr<Exchange> exchange) {
      held = std::move(exchange);
      held->on_gone([&] { gone.set_value(); });
      asked.set_value();
    });
    {
      RawClient client(server->port());
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      asked.get_future().get();
      if (half) client.half_close();
      if (half) gone.get_future().get();
    }
    if (!half) gone.get_future().get();
    held->respond(text(200, "too late"));
  }
}

TEST(HttpServer, tells_nobody_of_the_end_of_a_client_that_was_answered) {
  std::atomic<int> gone = 0;
  {
    auto server = test_server(plain(), [&](Request, std::unique_ptr<Exchange> exchange) {
      exchange->on_gone([&] { ++gone; });
      exchange->respond(text(200, "well"));
    });
    RawClient client(server->port());
    for (int i = 0; i < 3; ++i) {
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      EXPECT_THAT(client.read_until("well"), HasSubstr("200 OK"));
    }
  }
  EXPECT_EQ(gone, 0);
}

/// What a client at that address gets; "" where nobody takes it.
std::string answer_at(const char* host, std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, host, &address.sin_addr);
  std::string out;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string ask = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    if (::write(fd, ask.data(), ask.size()) > 0) {
      char bytes[4096];
      for (ssize_t n = 0; (n = ::read(fd, bytes, sizeof bytes)) > 0;)
        out.append(bytes, static_cast<std::size_t>(n));
    }
  }
  ::close(fd);
  return out;
}

TEST(HttpServer, listens_at_more_addresses_with_one_port) {
  ServerOptions options;
  options.also = {{"127.0.0.2", "lo"}, {"127.0.0.3", ""}};
  std::uint16_t port = 0;
  {
    auto server = test_server(std::move(options), describe);
    port = server->port();
    for (const char* host : {"127.0.0.1", "127.0.0.2", "127.0.0.3"})
      EXPECT_THAT(answer_at(host, port), HasSubstr("GET /")) << host;
    EXPECT_EQ(answer_at("127.0.0.4", port), "");
  }
  for (const char* host : {"127.0.0.1", "127.0.0.2"}) EXPECT_EQ(answer_at(host, port), "");
}

TEST(HttpServer, does_not_start_where_one_of_its_addresses_is_taken) {
  auto other = test_server(plain(), describe);
  ServerOptions options;
  options.host = "127.0.0.2";
  options.port = other->port();
  options.also = {{"127.0.0.1", ""}};
  const auto refused = HttpServer::start(options, describe);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("listen tcp 127.0.0.1:"));
  // Nothing of it is left.
  options.also.clear();
  EXPECT_TRUE(HttpServer::start(options, describe).ok());
  options.also = {{"127.0.0.3", "no-such-device"}};
  EXPECT_THAT(HttpServer::start(options, describe).error().message(), HasSubstr("no-such-device"));
}

TEST(HttpServer, answers_over_tls_and_keeps_the_connection) {
  auto server = test_server(with_tls(), describe);
  auto client = test_client(*server, true);

  for (int i = 0; i < 20; ++i) {
    const auto response = client->send(get(cat("/", i)), kWait);
    ASSERT_TRUE(response.ok()) << response.error().message();
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, cat("GET /", i, "\n"));
    EXPECT_THAT(std::string(response->headers.get("Date")), HasSubstr(" GMT"));
  }
  EXPECT_EQ(server->stats().accepted, 1U);
  EXPECT_EQ(server->stats().requests, 20U);
}

TEST(HttpServer, takes_and_gives_large_bodies) {
  ServerOptions options = with_tls();
  options.max_body = 64 * 1024 * 1024;
  auto server = test_server(options, describe);
  auto client = test_client(*server, true);
  const std::string body(20 * 1024 * 1024 + 17, 'x');

  const auto response = client->send(post("/big", body), kWait);

  ASSERT_TRUE(response.ok()) << response.error().message();
  EXPECT_EQ(response->body.size(), body.size() + std::string_view("POST /big\n").size());
}

TEST(HttpServer, answers_many_clients_from_other_threads) {
  Mutex mutex;
  std::vector<std::thread> threads;
  auto server = test_server(with_tls(), [&](Request request, std::unique_ptr<Exchange> exchange) {
    MutexLock lock(mutex);
    threads.emplace_back([request = std::move(request), exchange = std::move(exchange)] {
      exchange->respond(text(200, request.target));
    });
  });
  auto client = test_client(*server, true);

  std::vector<std::thread> callers;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&, i] {
      for (int j = 0; j < 10; ++j) {
        const auto response = client->send(get(cat("/", i, "/", j)), kWait);
        if (response.ok() && response->body == cat("/", i, "/", j)) ++good;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 80);
}

TEST(HttpServer, serves_pipelined_requests_in_order) {
  auto server = test_server(plain(), describe);
  RawClient client(server->port());
  std::string all;
  for (int i = 0; i < 200; ++i) append(all, "GET /", i, " HTTP/1.1\r\nHost: h\r\n\r\n");

  client.send(all);
  client.half_close();
  const std::string answers = client.read_all();

  std::size_t at = 0;
  for (int i = 0; i < 200; ++i) {
    at = answers.find(cat("GET /", i, "\n"), at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST(HttpServer, sends_head_and_body_of_http_1_1) {
  auto server = test_server(plain(), [](Request, std::unique_ptr<Exchange> exchange) {
    Response response = text(404, "nothing");
    response.headers.add("X-Evil", "a\r\nSet-Cookie: b");
    response.headers.add("Content-Length", "99");
    exchange->respond(std::move(response));
  });
  RawClient client(server->port());

  client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string answer = client.read_all();

  EXPECT_THAT(answer, StartsWith("HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("X-Evil: a  Set-Cookie: b\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 7\r\nConnection: close\r\n\r\nnothing"));
  EXPECT_THAT(answer, Not(HasSubstr("99")));
}

TEST(HttpServer, omits_bodies_for_head_and_204) {
  auto server = test_server(plain(), [](Request request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(request.target == "/204" ? Response{204, {}, ""} : text(200, "four"));
  });
  RawClient client(server->port());

  client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\nGET /204 HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string first = client.read_until("\r\n\r\n");
  const std::string second = client.read_until("\r\n\r\n");

  EXPECT_THAT(first, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(second, StartsWith("HTTP/1.1 204 No Content\r\n"));
  EXPECT_THAT(second, Not(HasSubstr("Content-Length")));
}

TEST(HttpServer, closes_after_http_1_0) {
  auto server = test_server(plain(), describe);
  RawClient client(server->port());
  client.send("GET /old HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.read_all(), HasSubstr("GET /old"));
}

TEST(HttpServer, says_continue_when_asked) {
  auto server = test_server(plain(), describe);
  RawClient client(server->port());

  client.send("POST /c HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");

  EXPECT_THAT(client.read_until("body"), HasSubstr("200 OK"));
}

TEST(HttpServer, takes_chunked_bodies) {
  auto server = test_server(plain(), describe);
  RawClient client(server->port());
  client.send("POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.send("2\r\nde\r\n0\r\n\r\n");
  EXPECT_THAT(client.read_until("abcde"), HasSubstr("POST /c\n"));
}

struct BadCase {
  std::string request;
  std::string status;
  std::string body;
};

TEST(HttpServer, refuses_bad_requests_and_closes) {
  ServerOptions options;
  options.max_header_bytes = 4096;
  auto server = test_server(options, describe);
  const BadCase cases[] = {
      {"nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request", "400 Bad Request"},
      {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request",
       "400 Bad Request: missing required Host header"},
      {cat("GET / HTTP/1.1\r\nHost: h\r\nX: ", std::string(10000, 'x'), "\r\n\r\n"),
       "HTTP/1.1 431 Request Header Fields Too Large", "431 Request Header Fields Too Large"},
      {"POST / HTTP/1.1\r\nHost: h\r\nExpect: magic\r\nContent-Length: 1\r\n\r\n",
       "HTTP/1.1 417 Expectation Failed", "417 Expectation Failed"},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
       "HTTP/1.1 501 Not Implemented", "501 Not Implemented"},
  };
  for (const auto& test : cases) {
    RawClient client(server->port());
    client.send(test.request);
    const std::string answer = client.read_all();
    EXPECT_THAT(answer, StartsWith(test.status)) << test.request.substr(0, 60);
    EXPECT_THAT(answer, HasSubstr(test.body));
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  }
  EXPECT_EQ(server->stats().bad_requests, std::size(cases));
}

TEST(HttpServer, refuses_a_large_body_by_its_announcement) {
  ServerOptions options;
  options.max_body = 1000;
  options.body_too_large = [](const Request& request) {
    return text(413, cat("too large: ", request.target));
  };
  auto server = test_server(options, describe);
  RawClient client(server->port());

  client.send("POST /huge HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\nabc");

  const std::string answer = client.read_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 Request Entity Too Large"));
  EXPECT_THAT(answer, HasSubstr("too large: /huge"));
  EXPECT_EQ(server->stats().requests, 0U);
}

TEST(HttpServer, refuses_a_large_chunked_body_when_it_gets_there) {
  ServerOptions options = with_tls();
  options.max_body = 1000;
  options.body_too_large = [](const Request&) { return text(413, "limit"); };
  auto server = test_server(options, describe);
  auto client = test_client(*server, true);

  const auto response = client->send(post("/huge", std::string(5'000'000, 'x')), kWait);

  ASSERT_TRUE(response.ok()) << response.error().message();
  EXPECT_EQ(response->status, 413);
  EXPECT_EQ(response->body, "limit");
}

TEST(HttpServer, gives_up_on_slow_heads_bodies_and_idle_connections) {
  ServerOptions options;
  options.header_timeout = milliseconds(60);
  options.body_timeout = milliseconds(60);
  options.idle_timeout = milliseconds(60);
  auto server = test_server(options, describe);

  RawClient silent(server->port());
  EXPECT_EQ(silent.read_all(), "");
  RawClient slow_head(server->port());
  slow_head.send("GET / HTTP/1.1\r\nHos");
  EXPECT_EQ(slow_head.read_all(), "");
  RawClient slow_body(server->port());
  slow_body.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_EQ(slow_body.read_all(), "");
  RawClient idle(server->port());
  idle.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(idle.read_all(), HasSubstr("GET /"));
  EXPECT_EQ(server->stats().timeouts, 4U);
}

TEST(HttpServer, drops_a_reader_who_does_not_read) {
  ServerOptions options;
  options.write_timeout = milliseconds(60);
  auto server = test_server(options, [](Request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, std::string(50'000'000, 'x')));
  });
  RawClient client(server->port());
  client.shrink_receive_buffer();
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  client.read_until("200 OK");

  while (server->stats().slow_clients == 0) std::this_thread::yield();

  EXPECT_EQ(server->stats().timeouts, 1U);
}

TEST(HttpServer, sends_500_for_a_dropped_exchange) {
  auto server = test_server(plain(), [](Request, std::unique_ptr<Exchange>) {});
  auto client = test_client(*server, false);
  const auto response = client->send(get("/"), kWait);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 500);
}

TEST(HttpServer, refuses_more_connections_than_it_can_answer) {
  ServerOptions options;
  options.max_connections = 2;
  options.max_per_address = 1;
  std::vector<std::unique_ptr<Exchange>> kept;
  std::promise<void> asked;
  auto server = test_server(options, [&](Request, std::unique_ptr<Exchange> exchange) {
    kept.push_back(std::move(exchange));
    asked.set_value();
  });
  RawClient first(server->port());
  first.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  asked.get_future().wait();

  // Who waits for an answer makes no room.
  RawClient second(server->port());
  EXPECT_EQ(second.read_all(), "");
  EXPECT_EQ(server->stats().refused, 1U);
  EXPECT_EQ(server->stats().shed, 0U);
  kept.front()->respond(text(200, "late\n"));
  first.read_until("late\n");
}

TEST(HttpServer, lets_the_longest_idle_make_room) {
  for (const unsigned threads : {1U, 3U}) {
    ServerOptions options;
    options.threads = threads;
    options.max_connections = 64;
    options.max_per_address = 16;
    auto server = test_server(options, describe);
    std::vector<std::unique_ptr<RawClient>> idle;
    const auto ask = [&] {
      idle.push_back(std::make_unique<RawClient>(server->port()));
      idle.back()->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
      idle.back()->read_until("GET /\n");
    };
    for (int i = 0; i < 100; ++i) ask();
    EXPECT_EQ(server->stats().refused, 0U);
    EXPECT_GE(server->stats().shed, 100U - 16U - 2U);
    EXPECT_EQ(idle.front()->read_all(), "");
    // The last that came is there still.
    idle.back()->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    idle.back()->read_until("GET /\n");
  }
}

TEST(HttpServer, reports_an_address_in_use) {
  auto server = test_server(plain(), describe);
  ServerOptions options;
  options.port = server->port();
  const auto second = HttpServer::start(options, describe);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::unavailable);
  EXPECT_THAT(second.error().message(), HasSubstr("address already in use"));
}

TEST(HttpServer, drains) {
  std::promise<std::unique_ptr<Exchange>> arrived;
  auto server = test_server(with_tls(), [&](Request request, std::unique_ptr<Exchange> exchange) {
    if (request.target == "/slow") return arrived.set_value(std::move(exchange));
    exchange->respond(text(200, "fast"));
  });
  auto idle = test_client(*server, true);
  ASSERT_TRUE(idle->send(get("/fast"), kWait).ok());
  auto busy = test_client(*server, true);
  Result<Response> answer = Error::internal("none");
  std::thread caller([&] { answer = busy->send(get("/slow"), kWait); });
  auto exchange = arrived.get_future().get();

  std::thread drainer([&] { server->drain(kWait); });
  while (server->stats().open != 1) std::this_thread::yield();
  exchange->respond(text(200, "late"));
  caller.join();
  drainer.join();

  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(answer->body, "late");
  EXPECT_EQ(answer->headers.get("Connection"), "close");
  const auto refused = idle->send(get("/fast"), kWait);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("connect: connection refused"));
}

TEST(HttpServer, lets_clients_go_when_it_retires) {
  auto server = test_server(with_tls(), [](Request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, "fast"));
  });
  auto client = test_client(*server, true);
  ASSERT_TRUE(client->send(get("/"), kWait).ok());
  server->retire();
  // The open connection gets an answer, and so does a new one; both end.
  for (int i = 0; i < 2; ++i) {
    const auto answer = client->send(get("/"), kWait);
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    EXPECT_EQ(answer->headers.get("Connection"), "close");
  }
  while (server->stats().open > 0) std::this_thread::yield();
  EXPECT_EQ(server->stats().accepted, 2U);
}

TEST(HttpServer, answers_busy_clients_while_it_drains) {
  auto server = test_server(with_tls(), [](Request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, "fast"));
  });
  auto client = test_client(*server, true);
  ASSERT_TRUE(client->send(get("/"), kWait).ok());
  std::thread drainer([&] { server->drain(kWait); });
  // The connection has just been used: its next request is answered, not cut off.
  const auto answer = client->send(get("/"), kWait);
  drainer.join();
  ASSERT_TRUE(answer.ok()) << answer.error().message();
}

TEST(HttpServer, answers_whoever_comes_while_it_drains) {
  std::promise<std::unique_ptr<Exchange>> arrived;
  ServerOptions options = with_tls();
  options.answers_while_draining = true;
  auto server = test_server(options, [&](Request request, std::unique_ptr<Exchange> exchange) {
    if (request.target == "/slow") return arrived.set_value(std::move(exchange));
    exchange->respond(text(429, "later"));
  });
  auto idle = test_client(*server, true);
  ASSERT_TRUE(idle->send(get("/"), kWait).ok());
  auto busy = test_client(*server, true);
  std::thread caller([&] { EXPECT_TRUE(busy->send(get("/slow"), kWait).ok()); });
  auto exchange = arrived.get_future().get();
  std::thread drainer([&] { server->drain(kWait); });
  // Each answer from now on is the last of its connection, so the next is another's.
  for (int last = 0; last < 5;) {
    const auto answer = idle->send(get("/"), kWait);
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    EXPECT_EQ(answer->status, 429);
    if (answer->headers.get("Connection") == "close") ++last;
  }
  exchange->respond(text(200, "late"));
  caller.join();
  drainer.join();
  EXPECT_FALSE(idle->send(get("/"), kWait).ok());
}

TEST(HttpServer, drain_ends_at_its_deadline) {
  std::promise<std::shared_ptr<BodyStream>> opened;
  auto server = test_server(plain(), [&](Request, std::unique_ptr<Exchange> exchange) {
    opened.set_value(exchange->stream(text(200, "")));
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto stream = opened.get_future().get();
  server->drain(milliseconds(20));
  EXPECT_EQ(server->stats().open, 0U);
}

}  // namespace
}  // namespace dibs::net
