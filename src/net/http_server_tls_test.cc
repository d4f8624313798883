#include "net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "net/testing/test_support.h"

namespace dibs::net {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr Duration kWait = seconds(20);

/// Answers with what it got, one line each.
void describe(Request request, std::unique_ptr<Exchange> exchange) {
  exchange->respond(text(200, cat(request.method, ' ', request.target, '\n', request.body)));
}

ServerOptions with_tls() {
  ServerOptions options;
  options.tls = test_server_tls();
  return options;
}

void who(Request request, std::unique_ptr<Exchange> exchange) {
  exchange->respond(
      text(200, cat(request.peer.certificate, ' ', request.peer.certificate_invalid, ' ',
                    request.peer.common_name, ' ', join(request.peer.organizations, ","))));
}

Result<Response> ask_as(const HttpServer& server, const Credential& credential) {
  ClientOptions options;
  options.url = cat("https://127.0.0.1:", server.port());
  options.tls = test_client_tls();
  options.tls.certificate_pem = credential.certificate_pem;
  options.tls.key_pem = credential.key_pem;
  auto client = HttpClient::open(options);
  if (!client) return client.error();
  return (*client)->send(get("/"), kWait);
}

TEST(HttpServerTls, knows_who_shows_a_good_certificate) {
  auto server = test_server(with_tls(), who);
  const auto credential = issue_client_certificate(test_ca(), "system:node:a",
                                                   {"system:nodes", "two"}, test_validity());
  ASSERT_TRUE(credential.ok());
  const auto response = ask_as(*server, *credential);
  ASSERT_TRUE(response.ok()) << response.error().message();
  EXPECT_EQ(response->body, "true false system:node:a system:nodes,two");
}

TEST(HttpServerTls, knows_a_client_that_has_become_another) {
  auto server = test_server(with_tls(), who);
  ClientOptions options;
  options.url = cat("https://127.0.0.1:", server->port());
  options.tls = test_client_tls();
  auto client = HttpClient::open(options);
  ASSERT_TRUE(client.ok());
  for (const char* name : {"first", "second"}) {
    const auto credential = issue_client_certificate(test_ca(), name, {}, test_validity());
    ASSERT_TRUE(credential.ok());
    options.tls.certificate_pem = credential->certificate_pem;
    options.tls.key_pem = credential->key_pem;
    ASSERT_TRUE((*client)->set_tls(options.tls).ok());
    const auto response = (*client)->send(get("/"), kWait);
    ASSERT_TRUE(response.ok()) << response.error().message();
    EXPECT_EQ(response->body, cat("true false ", name, " "));
  }
  options.tls.key_pem = "no key";
  EXPECT_FALSE((*client)->set_tls(options.tls).ok());
  EXPECT_EQ((*client)->send(get("/"), kWait)->body, "true false second ");
}

// Signed by themselves with openssl ca -selfsign, for CN=carol with the uid u-7, and with a second
// one.
const Credential kOneUid = {R"(-----BEGIN CERTIFICATE-----
MIIBKjCB3aADAgECAgECMAUGAytlcDAkMQ4wDAYDVQQDDAVjYXJvbDESMBAGCSsG
AQQBg8JTAgwDdS03MCAXDTIwMDEwMTAwMDAwMFoYDzIwOTkwMTAxMDAwMDAwWjAk
MQ4wDAYDVQQDDAVjYXJvbDESMBAGCSsGAQQBg8JTAgwDdS03MCowBQYDK2VwAyEA
I1hlpE9qzJSf9DujMvv3nVNVchgWXEqaolKZVxC/FZijMjAwMA8GA1UdEwEB/wQF
MAMBAf8wHQYDVR0OBBYEFIHQJrqnGo983bKqyyW86D7EZT89MAUGAytlcANBAMzF
I3KXAa6Zu5CNiqXpzpS/dxXJvN3hCOWBxkaH/c5/HLIRbTiIlHFu+ZDimkwLP1uG
3gMF3DumjbhooQSAwgo=
-----END CERTIFICATE-----
)",
                            R"(-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIFXgIjCRRnenZC4zYJCQs6T1WYUwPY4bQ/N1uNmpb88I
-----END PRIVATE KEY-----
)"};
const Credential kTwoUids = {R"(-----BEGIN CERTIFICATE-----
MIIBUzCCAQWgAwIBAgIBAzAFBgMrZXAwODEOMAwGA1UEAwwFY2Fyb2wxEjAQBgkr
BgEEAYPCUwIMA3UtNzESMBAGCSsGAQQBg8JTAgwDdS04MCAXDTIwMDEwMTAwMDAw
MFoYDzIwOTkwMTAxMDAwMDAwWjA4MQ4wDAYDVQQDDAVjYXJvbDESMBAGCSsGAQQB
g8JTAgwDdS03MRIwEAYJKwYBBAGDwlMCDAN1LTgwKjAFBgMrZXADIQC9oru39p/z
9HE65MdBvFArIvs53d7ihqlh3TAU+osCyaMyMDAwDwYDVR0TAQH/BAUwAwEB/zAd
BgNVHQ4EFgQUW2q6auOHXmrLh6W2jOueGxHJc0swBQYDK2VwA0EANhdoRf7dv57k
/Ivh6QJRdc6c0cZjznn/cuWWmvb+6yaKpXzhs0zsBw7YaacLNAEJngPkDINCYMtd
NBV7WNw6Dg==
-----END CERTIFICATE-----
)",
                             R"(-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIKr76zy4nwgxEFZNMq5h1l/2NFQDMXm7beiIxr0wS+ON
-----END PRIVATE KEY-----
)"};

TEST(HttpServerTls, knows_the_uid_in_a_certificate_and_which_one_it_is) {
  ServerOptions options = with_tls();
  append(options.tls->client_ca_pem, kOneUid.certificate_pem, kTwoUids.certificate_pem);
  auto server = test_server(options, [](Request request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, cat(request.peer.certificate, ' ', request.peer.certificate_invalid,
                                    ' ', request.peer.uid, ' ', request.peer.credential_id)));
  });
  EXPECT_EQ(ask_as(*server, kOneUid)->body,
            "true false u-7 "
            "X509SHA256=c88d6b6b47667afaa1dd7e12d529dc145843b9dbdf035b8db0189f9e84dd78fc");
  EXPECT_EQ(ask_as(*server, kTwoUids)->body, "false true  ") << "who is that?";
}

TEST(HttpServerTls, tells_front_proxies_from_clients) {
  const auto proxies = make_ca("proxies", test_validity());
  ServerOptions options = with_tls();
  options.tls->front_proxy_ca_pem = proxies->certificate_pem;
  auto server = test_server(options, [](Request request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, cat(request.peer.certificate, ' ', request.peer.certificate_invalid,
                                    ' ', request.headers.get(kFrontProxyField))));
  });
  const auto proxy = issue_client_certificate(*proxies, "front-proxy-client", {}, test_validity());
  const auto client =
      issue_client_certificate(test_ca(), "front-proxy-client", {}, test_validity());

  EXPECT_EQ(ask_as(*server, *proxy)->body, "false true front-proxy-client");
  EXPECT_EQ(ask_as(*server, *client)->body, "true false ");

  // Nobody says it himself.
  ServerOptions plain;
  auto other = test_server(plain, [](Request request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, cat("[", request.headers.get(kFrontProxyField), "]")));
  });
  RawClient raw(other->port());
  raw.send("GET / HTTP/1.1\r\nHost: h\r\n:front-proxy: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(raw.read_all(), HasSubstr("400 Bad Request"));
}

TEST(HttpServerTls, knows_a_certificate_that_both_authorities_issued) {
  ServerOptions options = with_tls();
  options.tls->front_proxy_ca_pem = test_ca().certificate_pem;
  auto server = test_server(options, [](Request request, std::unique_ptr<Exchange> exchange) {
    exchange->respond(text(200, cat(request.peer.certificate, ' ', request.peer.common_name, ' ',
                                    request.headers.get(kFrontProxyField))));
  });
  const auto both = issue_client_certificate(test_ca(), "both", {}, test_validity());
  EXPECT_EQ(ask_as(*server, *both)->body, "true both both");
}

TEST(HttpServerTls, shows_the_certificate_of_the_name_that_is_asked_for) {
  const auto other_ca = make_ca("other", test_validity());
  const auto other = issue_server_certificate(
      *other_ca, "o", {"api.example.com", "*.wild.example.com"}, test_validity());
  ServerOptions options = with_tls();
  options.tls->by_name.push_back({other->certificate_pem, other->key_pem, {}});
  auto server = test_server(options, who);
  const auto ask_for = [&](const std::string& name, const std::string& ca) {
    ClientOptions client;
    client.url = cat("https://127.0.0.1:", server->port());
    client.tls.ca_pem = ca;
    client.tls.server_name = name;
    return (*HttpClient::open(client))->send(get("/"), kWait);
  };
  EXPECT_TRUE(ask_for("api.example.com", other_ca->certificate_pem).ok());
  EXPECT_TRUE(ask_for("a.wild.example.com", other_ca->certificate_pem).ok());
  EXPECT_FALSE(ask_for("a.b.wild.example.com", other_ca->certificate_pem).ok());
  EXPECT_TRUE(ask_for("localhost", test_ca().certificate_pem).ok());
  EXPECT_TRUE(ask_for("", test_ca().certificate_pem).ok());
}

// Made with openssl ca -selfsign for a key of ed25519 and DNS:ed.example, good until 2099.
constexpr const char* kEdCertificate = R"(-----BEGIN CERTIFICATE-----
MIIBEzCBxqADAgECAgEBMAUGAytlcDANMQswCQYDVQQDDAJlZDAgFw0yMDAxMDEw
MDAwMDBaGA8yMDk5MDEwMTAwMDAwMFowDTELMAkGA1UEAwwCZWQwKjAFBgMrZXAD
IQBU7wh631mEOY4sNXKe4Dta5EZVGLw3hYztEwodyT9zO6NJMEcwDwYDVR0TAQH/
BAUwAwEB/zAVBgNVHREEDjAMggplZC5leGFtcGxlMB0GA1UdDgQWBBQ0vr5v4uoJ
RTJlNvR7HypYoR0pxjAFBgMrZXADQQA/n9DoP2ujT0Qdjhhx2rR/4D3cvXEdMQ2+
T49CE5nGGU1Nemw9Q1xgH+oIClLcS1fS8JD8PmuDnOfO5Z9jTlwI
-----END CERTIFICATE-----
)";
constexpr const char* kEdKey = R"(-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIMP2+jafwlGtwCfGHtkPviuf2fj2mv1d8nKU98zaxaNH
-----END PRIVATE KEY-----
)";

TEST(HttpServerTls, shows_the_certificate_of_a_name_whatever_kind_its_key_is_of) {
  ServerOptions options = with_tls();
  options.tls->by_name.push_back({kEdCertificate, kEdKey, {}});
  auto server = test_server(options, who);
  ClientOptions client;
  client.url = cat("https://127.0.0.1:", server->port());
  client.tls.ca_pem = kEdCertificate;
  client.tls.server_name = "ed.example";
  const auto answer = (*HttpClient::open(client))->send(get("/"), kWait);
  EXPECT_TRUE(answer.ok()) << answer.error().message();
}

TEST(HttpServerTls, takes_cipher_suites_by_name) {
  TlsServerOptions options = test_server_tls();
  options.cipher_suites = {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"};
  EXPECT_TRUE(TlsContext::server(options).ok());
  options.cipher_suites = {"TLS_MADE_UP"};
  const auto refused = TlsContext::server(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(), "Cipher suite TLS_MADE_UP not supported or doesn't exist");
}

TEST(HttpServerTls, lets_bad_certificates_in_without_an_identity) {
  auto server = test_server(with_tls(), who);
  const auto other_ca = make_ca("other", test_validity());
  const Validity past{Time::from_seconds(1577836800), Time::from_seconds(1577836800 + 3600)};
  ASSERT_TRUE(other_ca.ok());
  const Result<Credential> bad[] = {
      issue_client_certificate(*other_ca, "admin", {"system:masters"}, test_validity()),
      issue_client_certificate(test_ca(), "admin", {"system:masters"}, past),
      // Not for clients.
      issue_server_certificate(test_ca(), "admin", {"localhost"}, test_validity()),
  };
  for (const auto& credential : bad) {
    ASSERT_TRUE(credential.ok());
    // Twice: the second connection resumes the session and must not gain by it.
    ClientOptions options;
    options.url = cat("https://127.0.0.1:", server->port());
    options.tls = test_client_tls();
    options.tls.certificate_pem = credential->certificate_pem;
    options.tls.key_pem = credential->key_pem;
    options.max_idle = 0;
    auto client = HttpClient::open(options);
    ASSERT_TRUE(client.ok());
    for (int i = 0; i < 2; ++i) {
      const auto response = (*client)->send(get("/"), kWait);
      ASSERT_TRUE(response.ok()) << response.error().message();
      EXPECT_EQ(response->body, "false true  ") << i;
    }
  }
}

TEST(HttpServerTls, keeps_the_identity_in_a_resumed_session) {
  auto server = test_server(with_tls(), who);
  const auto credential = issue_client_certificate(test_ca(), "u", {"g"}, test_validity());
  ASSERT_TRUE(credential.ok());
  ClientOptions options;
  options.url = cat("https://localhost:", server->port());
  options.tls = test_client_tls();
  options.tls.certificate_pem = credential->certificate_pem;
  options.tls.key_pem = credential->key_pem;
  options.max_idle = 0;
  auto client = HttpClient::open(options);
  ASSERT_TRUE(client.ok());
  for (int i = 0; i < 3; ++i) {
    const auto response = (*client)->send(get("/"), kWait);
    ASSERT_TRUE(response.ok()) << response.error().message();
    EXPECT_EQ(response->body, "true false u g");
  }
  EXPECT_EQ(server->stats().accepted, 3U);
}

TEST(HttpServerTls, serves_without_a_certificate) {
  auto server = test_server(with_tls(), who);
  const auto response = test_client(*server, true)->send(get("/"), kWait);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->body, "false false  ");
}

TEST(HttpServerTls, takes_a_new_certificate_while_running) {
  auto server = test_server(with_tls(), describe);
  auto old = test_client(*server, true);
  ASSERT_TRUE(old->send(get("/"), kWait).ok());
  const auto other_ca = make_ca("other", test_validity());
  const auto renewed = issue_server_certificate(*other_ca, "s", {"127.0.0.1"}, test_validity());
  ASSERT_TRUE(renewed.ok());

  ASSERT_TRUE(server->set_tls({renewed->certificate_pem, renewed->key_pem, ""}).ok());

  EXPECT_TRUE(old->send(get("/"), kWait).ok());
  const auto refused = test_client(*server, true)->send(get("/"), kWait);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(),
              HasSubstr("x509: certificate signed by unknown authority"));
  ClientOptions options;
  options.url = cat("https://127.0.0.1:", server->port());
  options.tls.ca_pem = other_ca->certificate_pem;
  EXPECT_TRUE((*HttpClient::open(options))->send(get("/"), kWait).ok());
}

TEST(HttpServerTls, tells_a_plain_client_so) {
  auto server = test_server(with_tls(), describe);
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.read_all(),
            "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
}

TEST(HttpServerTls, refuses_a_key_that_does_not_match) {
  ServerOptions options = with_tls();
  options.tls->key_pem = test_ca().key_pem;
  const auto server = HttpServer::start(options, describe);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().message(), "private key does not match the certificate");
}

}  // namespace
}  // namespace dibs::net
