#pragma once
// An HTTP/1.1 server with TLS.
//
// Life of a request: the acceptor gives a new socket to the io thread with the fewest connections,
// and it stays there. The thread reads, parses and calls the handler with the complete request; the
// exchange answers from any thread; the io thread writes. The next request of that connection is
// read only after the answer is out, so pipelined requests wait in the socket and cost nothing.
//
// Nothing a client does may hold memory or a thread without bound: heads, bodies, queues, the
// number of connections and every wait have limits here.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/http.h"
#include "net/tls.h"

namespace dibs::net {

/// Another address to listen at, with the port of the first.
struct Listen {
  std::string host = {};
  /// The network interface that connections must come in by; "": any. The machine answers for each
  /// of its addresses at all of its interfaces, so that an address alone keeps nobody out.
  std::string device = {};
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0 picks a free one
  std::vector<Listen> also = {};
  unsigned threads = 2;
  std::optional<TlsServerOptions> tls = {};  // plain TCP without it: for tests
  /// In all, and from one address (of IPv6: one /64). Less where the process may open fewer files:
  /// a quarter of those stays for everything else. Over a bound, whoever has been idle or slow to
  /// ask for longest makes room; where nobody has, the new connection is refused.
  std::size_t max_connections = 20000;
  std::size_t max_per_address = 10000;

  std::size_t max_header_bytes = 256 * 1024;
  std::size_t max_body = 3 * 1024 * 1024;
  /// Makes the answer to a request whose body is over max_body (it gets the head only); the
  /// connection closes after it. A plain 413 without it.
  std::function<Response(const Request&)> body_too_large = {};

  Duration header_timeout = std::chrono::seconds(32);  // TLS handshake included on a new connection
  Duration body_timeout = std::chrono::seconds(60);
  Duration idle_timeout = std::chrono::seconds(120);
  /// A client must take some of what is sent to it (16 KiB, or all of it) in every such span.
  Duration write_timeout = std::chrono::seconds(60);
  /// The same for upgraded connections and for answers to the requests that `patient` tells: people
  /// read them, and pause.
  Duration patient_write_timeout = std::chrono::hours(4);
  std::function<bool(const Request&)> patient = {};

  /// While requests are in flight, drain() lets others come and be answered, instead of turning
  /// them away.
  bool answers_while_draining = false;

  /// Of an HTTP/2 connection.
  std::uint32_t max_streams = 100;
  /// After so many requests an HTTP/2 client is sent away, to come again to whom it finds; 0:
  /// never.
  std::uint64_t goaway_every = 0;

  /// Bytes a BodyStream or a WebSocket may have waiting before its client counts as too slow.
  std::size_t max_queued = 16 * 1024 * 1024;
  std::size_t max_websocket_message = 4 * 1024 * 1024;
};

struct ServerStats {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;  // over a bound, and nobody made room
  std::uint64_t shed = 0;     // made room
  std::uint64_t open = 0;
  std::uint64_t requests = 0;
  std::uint64_t bad_requests = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t slow_clients = 0;
};

class HttpServer {
 public:
  /// Whether somebody could listen there now. Error: unavailable.
  static Result<> can_listen(const std::string& host, std::uint16_t port);
  /// Listens when it returns. Errors: unavailable for the address, invalid for the certificate.
  static Result<std::unique_ptr<HttpServer>> start(ServerOptions options, Handler handler);
  /// As stop().
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  /// New connections use the new certificate; open ones go on with theirs.
  Result<> set_tls(const TlsServerOptions& options);

  /// From now on every answer is the last of its connection and says so, that clients find another
  /// server in their own time. New connections are taken.
  void retire();
  /// Stops accepting, closes idle connections (both not before nothing is in flight, where they are
  /// answered while it drains), waits until the requests in flight are answered or
  /// `deadline` has passed, then stops. Not on an io thread.
  void drain(Duration deadline);
  /// Breaks everything off. Exchanges and streams stay valid and do nothing from then on.
  void stop();

  ServerStats stats() const;

 private:
  HttpServer();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dibs::net
