#include "net/testing/test_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <future>

#include "base/strings.h"

namespace dibs::net {
namespace {

template <typename T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "test support: %s\n", result.error().message().c_str());
    std::abort();
  }
  return std::move(result).value();
}

}  // namespace

Validity test_validity() {
  return {Time::from_seconds(1577836800), Time::from_seconds(1577836800 + 20LL * 365 * 86400)};
}

const Credential& test_ca() {
  static const Credential ca = must(make_ca("test-ca", test_validity()));
  return ca;
}

const Credential& test_server_certificate() {
  static const Credential certificate = must(issue_server_certificate(
      test_ca(), "test-server", {"localhost", "127.0.0.1", "::1"}, test_validity()));
  return certificate;
}

TlsServerOptions test_server_tls() {
  return {.certificate_pem = test_server_certificate().certificate_pem,
          .key_pem = test_server_certificate().key_pem,
          .client_ca_pem = test_ca().certificate_pem};
}

TlsClientOptions test_client_tls() {
  TlsClientOptions options;
  options.ca_pem = test_ca().certificate_pem;
  return options;
}

std::unique_ptr<HttpServer> test_server(ServerOptions options, Handler handler) {
  return must(HttpServer::start(std::move(options), std::move(handler)));
}

std::unique_ptr<HttpClient> test_client(const HttpServer& server, bool tls) {
  ClientOptions options;
  options.url = cat(tls ? "https" : "http", "://127.0.0.1:", server.port());
  options.tls = test_client_tls();
  return must(HttpClient::open(std::move(options)));
}

Request get(std::string target) {
  Request request;
  request.method = "GET";
  request.target = std::move(target);
  return request;
}

Request post(std::string target, std::string body) {
  Request request;
  request.method = "POST";
  request.target = std::move(target);
  request.body = std::move(body);
  return request;
}

Response text(int status, std::string body) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", "text/plain");
  response.body = std::move(body);
  return response;
}

RawClient::RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
}

RawClient::~RawClient() { ::close(fd_); }

void RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string RawClient::read_until(std::string_view mark) {
  while (true) {
    const auto at = mark.empty() ? std::string::npos : held_.find(mark);
    if (at != std::string::npos) {
      std::string out = held_.substr(0, at + mark.size());
      held_.erase(0, at + mark.size());
      return out;
    }
    char buffer[4096];
    const auto count = ::recv(fd_, buffer, sizeof buffer, 0);
    if (count <= 0) return std::exchange(held_, std::string());
    held_.append(buffer, static_cast<std::size_t>(count));
  }
}

std::string RawClient::read_all() { return read_until(""); }

void RawClient::half_close() { ::shutdown(fd_, SHUT_WR); }

Result<StreamAnswer> open_stream(StreamClient& client, const std::string& url,
                                 std::shared_ptr<TlsContext> tls, const Request& request,
                                 Duration timeout) {
  std::promise<Result<StreamAnswer>> opened;
  client.request(url, std::move(tls), request, timeout)->start([&](Result<StreamAnswer> answer) {
    opened.set_value(std::move(answer));
  });
  return opened.get_future().get();
}

Result<std::string> whole_body(const std::shared_ptr<BodySource>& body, Duration timeout) {
  std::promise<Result<std::string>> read;
  read_whole(body, 1 << 20, timeout,
             [&](Result<std::string> text) { read.set_value(std::move(text)); });
  return read.get_future().get();
}

SilentPort::SilentPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
  if (::listen(fd_, SOMAXCONN) != 0) std::abort();
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
}

SilentPort::~SilentPort() { ::close(fd_); }

int SilentPort::accept_one() const { return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }

void see_end(int fd) {
  char buffer[4096];
  while (::recv(fd, buffer, sizeof buffer, 0) > 0) {
  }
  ::close(fd);
}

void RawClient::shrink_receive_buffer() {
  const int size = 4096;
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

}  // namespace dibs::net
