#include "net/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "net/client_connection.h"
#include "net/gzip.h"
#include "net/stream_client.h"
#include "net/testing/test_support.h"

namespace dibs::net {
namespace {

using testing::HasSubstr;

constexpr Duration kWait = std::chrono::seconds(20);

TEST(Url, parses) {
  const auto url = Url::parse("https://[::1]:6443/prefix/");
  ASSERT_TRUE(url.ok());
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, 6443);
  EXPECT_EQ(url->path, "/prefix");
  EXPECT_EQ(url->authority(), "[::1]:6443");
  EXPECT_EQ(Url::parse("http://a")->authority(), "a");
  EXPECT_EQ(Url::parse("https://a:443")->authority(), "a");
  for (const auto* bad :
       {"", "a:1", "ftp://a", "https://", "https://a:x", "https://a:0", "https://a:99999",
        "https://[::1", "https://u@a", "http://a b", "http://a\r\nX: y", "http://a/b c"}) {
    EXPECT_FALSE(Url::parse(bad).ok()) << bad;
  }
}

TEST(ClientConnection, reaches_others_only_where_it_is_told) {
  const Deadline soon = std::chrono::steady_clock::now() + kWait;
  for (const auto* host : {"127.0.0.1", "127.9.9.9", "localhost", "[::1]", "[::ffff:127.0.0.1]",
                           "0.0.0.0", "[::]", "169.254.169.254", "[fe80::1]", "224.0.0.1",
                           "[ff02::1]", "255.255.255.255", "2130706433"}) {
    const auto url = Url::parse(cat("http://", host, ":1"));
    ASSERT_TRUE(url.ok()) << host;
    const auto dialled = ClientConnection::dial(*url, nullptr, soon, Reach::others);
    ASSERT_FALSE(dialled.ok()) << host;
    EXPECT_EQ(dialled.error().message(), "address not allowed") << host;
  }
}

TEST(HttpClient, puts_its_path_before_the_target) {
  auto server = test_server({}, [](Request request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(
        200, cat(request.target, ' ', request.headers.get("Host"), ' ', request.headers.get("A"))));
  });
  ClientOptions options;
  options.url = cat("http://localhost:", server->port(), "/base");
  auto client = HttpClient::open(options);
  Request request = get("/x?y=1");
  request.headers.add("A", "b");
  const auto response = (*client)->send(request, kWait);
  ASSERT_TRUE(response.ok()) << response.error().message();
  EXPECT_EQ(response->body, cat("/base/x?y=1 localhost:", server->port(), " b"));
}

TEST(HttpClient, dials_another_place_than_the_one_it_names) {
  auto server = test_server({}, [](Request request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, std::string(request.headers.get("Host"))));
  });
  ClientOptions options;
  options.url = "http://name.space.svc:8443";
  options.at_host = "127.0.0.1";
  options.at_port = server->port();
  auto client = HttpClient::open(options);
  const auto response = (*client)->send(get("/"), kWait);
  ASSERT_TRUE(response.ok()) << response.error().message();
  EXPECT_EQ(response->body, "name.space.svc:8443");
}

/// Requests of which each would be two on the wire, or have a header more.
std::vector<Request> smuggled() {
  std::vector<Request> out(7);
  for (Request& one : out) {
    one.method = "GET";
    one.target = "/";
  }
  out[0].target = "/a HTTP/1.1\r\nX: y\r\n\r\nGET /b";
  out[1].target = "/a b";
  out[2].target = std::string("/a\0b", 4);
  out[3].headers.add("A", "b\r\nX: y");
  out[4].headers.add("A: b\r\nX", "y");
  out[5].headers.add("", "y");
  out[6].method = "GET / HTTP/1.1\r\nX: y\r\n\r\nGET";
  return out;
}

TEST(HttpClient, sends_nothing_that_would_be_another_request) {
  int asked = 0;
  auto server = test_server({}, [&](Request, std::unique_ptr<Exchange> exchange) {
    ++asked;
    exchange->respond(text(200, ""));
  });
  ClientOptions options;
  options.url = cat("http://127.0.0.1:", server->port());
  auto client = HttpClient::open(options);
  ASSERT_TRUE(client.ok());
  StreamClient streams;
  for (const Request& request : smuggled()) {
    EXPECT_FALSE((*client)->send(request, kWait).ok());
    EXPECT_FALSE((*client)->open_stream(request, kWait).ok());
    EXPECT_FALSE(open_stream(streams, options.url, nullptr, request, kWait).ok());
  }
  Request tab;
  tab.method = "GET";
  tab.target = "/?a=%20b";
  tab.headers.add("A", "b\tc \xc3\xa4");
  EXPECT_TRUE((*client)->send(tab, kWait).ok());
  server->stop();
  EXPECT_EQ(asked, 1);
}

TEST(HttpClient, says_itself_how_long_a_body_is) {
  auto server = test_server({}, [](Request request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, cat(request.body, '|', request.headers.get("Transfer-Encoding"))));
  });
  ClientOptions options;
  options.url = cat("http://127.0.0.1:", server->port());
  Request request;
  request.method = "POST";
  request.target = "/";
  request.body = "abc";
  request.headers.add("Transfer-Encoding", "chunked");
  request.headers.add("Content-Length", "1");
  auto answer = (*HttpClient::open(options))->send(request, kWait);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->body, "abc|");
}

TEST(HttpClient, explains_a_refused_connection) {
  auto server = test_server({}, [](Request, std::unique_ptr<Exchange>) {});
  const auto port = server->port();
  auto client = test_client(*server, false);
  server->stop();
  const auto response = client->send(get("/x"), kWait);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code(), Code::unavailable);
  EXPECT_EQ(response.error().message(),
            cat("Get \"http://127.0.0.1:", port, "/x\": dial tcp 127.0.0.1:", port,
                ": connect: connection refused"));
}

TEST(HttpClient, ends_at_its_deadline) {
  std::vector<std::unique_ptr<Exchange>> held;
  auto server = test_server({}, [&](Request, std::unique_ptr<Exchange> exchange) {
    held.push_back(std::move(exchange));
  });
  auto client = test_client(*server, false);
  const auto response = client->send(get("/"), std::chrono::milliseconds(20));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code(), Code::timeout);
  server->stop();
}

TEST(HttpClient, survives_a_server_that_restarts) {
  const Handler ok = [](Request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, "ok"));
  };
  ServerOptions options;
  options.tls = test_server_tls();
  auto server = test_server(options, ok);
  auto client = test_client(*server, true);
  ASSERT_TRUE(client->send(get("/"), kWait).ok());
  options.port = server->port();
  server->stop();
  server = test_server(options, ok);
  EXPECT_TRUE(client->send(get("/"), kWait).ok());
  EXPECT_TRUE(client->send(post("/", "x"), kWait).ok());
}

TEST(HttpClient, unpacks_gzip) {
  const std::string body(100'000, 'j');
  auto server = test_server({}, [&](Request, std::unique_ptr<Exchange> exchange) {
    Response response = text(200, gzip(body));
    response.headers.add("Content-Encoding", "gzip");
    exchange->respond(std::move(response));
  });
  const auto response = test_client(*server, false)->send(get("/"), kWait);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->body, body);
  EXPECT_FALSE(response->headers.has("Content-Encoding"));
}

TEST(HttpClient, skips_verification_only_when_told) {
  ServerOptions options;
  options.tls = test_server_tls();
  auto server = test_server(options, [](Request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, "ok"));
  });
  ClientOptions client;
  client.url = cat("https://127.0.0.1:", server->port());
  client.tls.ca_pem = make_ca("x", test_validity())->certificate_pem;
  EXPECT_FALSE((*HttpClient::open(client))->send(get("/"), kWait).ok());
  client.tls.insecure = true;
  EXPECT_TRUE((*HttpClient::open(client))->send(get("/"), kWait).ok());
  client.tls = test_client_tls();
  client.tls.server_name = "elsewhere.example";
  const auto wrong = (*HttpClient::open(client))->send(get("/"), kWait);
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message(), HasSubstr("ostname mismatch"));
}

TEST(HttpClient, refuses_broken_options) {
  ClientOptions options;
  options.url = "https://a";
  options.tls.ca_pem = "rubbish";
  EXPECT_FALSE(HttpClient::open(options).ok());
  options.tls = {};
  options.tls.certificate_pem = "rubbish";
  EXPECT_THAT(HttpClient::open(options).error().message(),
              HasSubstr("client certificate: certificate: no PEM certificate found"));
}

}  // namespace
}  // namespace dibs::net
