#pragma once
// An HTTP/1.1 client for one server, with blocking calls and a pool of kept connections.
//
// Thread-safe: calls from many threads use a connection each. A request on a kept connection that
// the server closed meanwhile is sent once more on a fresh one, when that cannot do anything twice.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/http.h"
#include "net/reach.h"
#include "net/tls.h"

namespace dibs::net {

class ClientConnection;

struct ClientOptions {
  std::string url =
      {};  // "https://127.0.0.1:6443", may end in a path that goes before every target
  /// Where that server is dialled, if not at its own host and port.
  std::string at_host = {};
  std::uint16_t at_port = 0;
  Reach reach = Reach::anywhere;
  TlsClientOptions tls = {};
  Duration dial_timeout = std::chrono::seconds(30);
  std::size_t max_idle = 32;
  std::size_t max_response = 1024UL * 1024 * 1024;
};

/// A response whose body is read as it comes. One reader; cancel() from any thread.
class ResponseStream {
 public:
  virtual ~ResponseStream() = default;
  virtual int status() const = 0;
  virtual const Headers& headers() const = 0;
  /// Some bytes, at least one; "" at the end. Errors: timeout, unavailable when broken off or
  /// cancelled.
  virtual Result<std::string> read_some(Duration timeout) = 0;
  virtual void cancel() = 0;
};

/// The client's end of a WebSocket, with blocking calls. One reader, one writer; cancel() from any
/// thread.
class ClientWebSocket {
 public:
  struct Message {
    std::string data;
    bool binary = false;
    bool closed = false;  // the end; `code` says why
    std::uint16_t code = 0;
  };
  virtual ~ClientWebSocket() = default;
  virtual const std::string& protocol() const = 0;
  virtual Result<> send(std::string_view message, bool binary, Duration timeout) = 0;
  /// Answers pings on the way.
  virtual Result<Message> receive(Duration timeout) = 0;
  virtual Result<> close(std::uint16_t code, std::string_view reason, Duration timeout) = 0;
  virtual void cancel() = 0;
};

class HttpClient {
 public:
  /// Opens no connection yet. Errors: invalid.
  static Result<std::unique_ptr<HttpClient>> open(ClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Of connections that are opened from now on; those that are kept are not used again.
  Result<> set_tls(const TlsClientOptions& tls);

  /// The whole response; every HTTP status is a success here. A gzip body comes unpacked.
  /// Errors: unavailable, timeout, too_large.
  Result<Response> send(const Request& request, Duration timeout);
  /// Returns with the response's head; `timeout` is for that.
  Result<std::unique_ptr<ResponseStream>> open_stream(const Request& request, Duration timeout);
  /// Errors also: bad_request when the server answers with anything but 101.
  Result<std::unique_ptr<ClientWebSocket>> open_websocket(const Request& request,
                                                          const std::vector<std::string>& protocols,
                                                          Duration timeout);

 private:
  HttpClient();
  friend class OpenStream;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace dibs::net
