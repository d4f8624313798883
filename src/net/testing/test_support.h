#pragma once
// For tests of net and of what stands on it: a CA with certificates, a server around a handler, and
// a raw socket for what a well-behaved client would not send. Real sockets on port 0, no sleeping:
// a test waits on bytes, or on the end of a connection.

#include <memory>
#include <string>
#include <string_view>

#include "net/http_client.h"
#include "net/http_server.h"
#include "net/stream_client.h"
#include "net/x509.h"

namespace dibs::net {

/// Valid for ten years from 2020.
Validity test_validity();
/// Made once per process.
const Credential& test_ca();
const Credential& test_server_certificate();

TlsServerOptions test_server_tls();
TlsClientOptions test_client_tls();

/// `options.tls` stays as it is; a test that wants TLS sets test_server_tls().
std::unique_ptr<HttpServer> test_server(ServerOptions options, Handler handler);
std::unique_ptr<HttpClient> test_client(const HttpServer& server, bool tls);

Request get(std::string target);
Request post(std::string target, std::string body);
Response text(int status, std::string body);

/// Waits for what comes of the request.
Result<StreamAnswer> open_stream(StreamClient& client, const std::string& url,
                                 std::shared_ptr<TlsContext> tls, const Request& request,
                                 Duration timeout);
/// Waits for the end of the body.
Result<std::string> whole_body(const std::shared_ptr<BodySource>& body, Duration timeout);

/// A port that takes connections and never a byte, nor answers any.
class SilentPort {
 public:
  SilentPort();
  ~SilentPort();
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;
  std::uint16_t port() const { return port_; }
  /// Waits for a connection; see_end() takes it.
  int accept_one() const;

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

/// Waits until the other side of a socket has ended, and closes it.
void see_end(int fd);

/// A plain TCP connection to 127.0.0.1.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  void send(std::string_view bytes);
  /// Until the text has come, or the connection ended.
  std::string read_until(std::string_view mark);
  /// Until the connection ended.
  std::string read_all();
  void half_close();
  /// Makes the kernel take little, so that a server feels a reader who does not read.
  void shrink_receive_buffer();
  int fd() const { return fd_; }

 private:
  int fd_;
  std::string held_;
};

}  // namespace dibs::net
