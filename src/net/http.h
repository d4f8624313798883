#pragma once
// HTTP messages, and what a server hands to its handler. Nothing here knows sockets
// (http_server.h does), so a handler can also be called without any.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace dibs::net {

/// Header fields in order; names compare without case.
class Headers {
 public:
  void add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  /// Replaces the first field of that name and drops the others.
  void set(std::string_view name, std::string value);
  void remove(std::string_view name);
  void reserve(std::size_t fields) { fields_.reserve(fields); }
  /// The first value, or "".
  std::string_view get(std::string_view name) const;
  bool has(std::string_view name) const;
  std::vector<std::string_view> all(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// Who is at the other end, as far as the connection knows.
struct Peer {
  std::string address;               // "127.0.0.1:40312"
  bool certificate = false;          // a client certificate was verified against the client CA
  bool certificate_invalid = false;  // one was shown, but it is expired or of another CA
  bool http2 = false;                // what it asks shares its connection with other requests
  std::string common_name;           // of that certificate
  std::vector<std::string> organizations;  // of that certificate
  std::string uid = {};                    // of who has it; "": it says none
  std::string credential_id = {};          // "X509SHA256=…", which tells it from all others
};

struct Request {
  std::string method;
  std::string target;  // as sent: path and query
  Headers headers;
  std::string body;
  Peer peer;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

/// A response whose body goes out piece by piece (chunked). Methods may be called from any thread.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  /// Queues a piece; never blocks. False once the client is gone or too slow (queue over its
  /// bound): then stop writing.
  virtual bool write(SharedBytes piece) = 0;
  /// Bytes queued and not yet taken by the socket.
  virtual std::size_t queued() const = 0;
  /// `drained` is called (any thread, no locks) every time the queue has become empty, and soon
  /// after this call when it is empty now.
  virtual void on_drained(std::function<void()> drained) = 0;
  /// `closed` is called once when the client goes away before finish(); soon when it is gone
  /// already.
  virtual void on_closed(std::function<void()> closed) = 0;
  /// Ends the body properly. Dropping the stream without it breaks the connection off.
  virtual void finish() = 0;
};

/// Bytes both ways after an upgrade. Methods may be called from any thread. Dropping it closes it.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// `data` gets what comes, on an io thread, and must not block there; `closed` is called once at
  /// the end.
  virtual void start(std::function<void(std::string_view bytes)> data,
                     std::function<void()> closed) = 0;
  /// Queues; never blocks. A peer that lets more than the bound wait is cut off.
  virtual void write(std::string bytes) = 0;
  /// While held, nothing is read: for a receiver that cannot keep up. Some that was read already
  /// may still come.
  virtual void hold(bool held) = 0;
  /// Bytes written and not yet taken by the socket.
  virtual std::size_t queued() const = 0;
  /// `drained` is called every time everything written has left, and soon when nothing waits now.
  virtual void on_drained(std::function<void()> drained) = 0;
  /// Ends it after what is queued.
  virtual void close() = 0;
  /// Ends it after that time, whatever the peer does.
  virtual void expire(std::chrono::nanoseconds span) = 0;
};

/// A WebSocket after its handshake. Methods may be called from any thread. Dropping it closes it.
class WebSocket {
 public:
  virtual ~WebSocket() = default;
  virtual void send_binary(std::string message) = 0;
  virtual void send_text(std::string message) = 0;
  /// `message` gets every data message, `closed` is called once at the end.
  virtual void start(std::function<void(std::string, bool binary)> message,
                     std::function<void()> closed) = 0;
  virtual void close(std::uint16_t code, std::string_view reason) = 0;
  /// Bytes sent and not yet taken by the socket: a sender that can wait does so above some bound. A
  /// peer that lets the server's own bound be passed is cut off.
  virtual std::size_t queued() const = 0;
  /// `drained` is called every time everything sent has left, and soon when nothing waits now.
  virtual void on_drained(std::function<void()> drained) = 0;
  /// While held, nothing is read.
  virtual void hold(bool held) = 0;
};

/// One request's way to answer: exactly one of respond(), stream(), upgrade(), upgrade_to() is
/// called, from any thread. Destroying it unanswered sends a 500.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void respond(Response response) = 0;
  /// Sends status and headers now; the body follows through the stream.
  virtual std::shared_ptr<BodyStream> stream(Response head) = 0;
  /// Answers a WebSocket handshake with the chosen sub-protocol ("" for none); `ready` gets null on
  /// failure.
  virtual void upgrade(std::string protocol,
                       std::function<void(std::shared_ptr<WebSocket>)> ready) = 0;
  /// Answers with this head (101) and leaves HTTP; `ready` gets null on failure. A transport that
  /// has no connection answers 400.
  virtual void upgrade_to(Response head, std::function<void(std::shared_ptr<ByteStream>)> ready);
  /// Before any of these, by whoever lets the client wait for somebody else: `gone` is called (any
  /// thread) when the client has hung up and not been answered. A transport that has no connection
  /// never calls it.
  virtual void on_gone(std::function<void()> gone);
};

/// Called on the connection's thread with a complete request: must not block there.
using Handler = std::function<void(Request, std::unique_ptr<Exchange>)>;

/// "Not Found" of 404; "" for a code without a name.
std::string_view reason_phrase(int status);

/// True for a GET that asks to go on as a WebSocket.
bool is_websocket_upgrade(const Request& request);

/// True when a list header ("Connection: keep-alive, Upgrade") holds the token, without case.
bool has_token(std::string_view list, std::string_view token);

/// A target split into its decoded path and its query parameters in order.
struct Target {
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;

  /// Errors: bad_request on a broken %-escape in the path; a broken query parameter is left out, as
  /// Go's servers do.
  static Result<Target> parse(std::string_view target);
  /// The first value, or "".
  std::string_view get(std::string_view name) const;
  bool has(std::string_view name) const;
};

}  // namespace dibs::net
