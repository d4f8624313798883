#pragma once
// One client connection with blocking calls that end at a deadline. For net itself, and for probes
// that only connect.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/channel.h"
#include "net/http.h"
#include "net/reach.h"
#include "net/tls.h"

namespace dibs::net {

using Deadline = std::chrono::steady_clock::time_point;

struct Url {
  bool tls = true;
  std::string host;  // an IPv6 address without its brackets
  std::uint16_t port = 0;
  std::string path;  // "" or "/prefix" without a slash at its end

  /// http:// and https:// only. Errors: invalid.
  static Result<Url> parse(std::string_view text);
  /// "host:port" as it stands in a Host header; the default port of the scheme is left out.
  std::string authority() const;
  std::string host_port() const;
};

/// The head of a request to that server. Host, length and framing are those of the message,
/// whatever its headers say. Errors: of check_sendable().
Result<std::string> request_head(const Request& request, const Url& url);

class ClientConnection {
 public:
  /// Connects and, with a context, shakes hands. Errors: unavailable, timeout; bad_request for an
  /// address out of reach.
  static Result<std::unique_ptr<ClientConnection>> dial(const Url& url,
                                                        std::shared_ptr<TlsContext> context,
                                                        Deadline deadline,
                                                        Reach reach = Reach::anywhere);

  /// Stops early, successfully, when the server begins to answer: it may have refused what is
  /// coming.
  Result<> write(std::string_view bytes, Deadline deadline);
  /// 0 at the end of the connection.
  Result<std::size_t> read(char* data, std::size_t size, Deadline deadline);
  /// False when the server has closed it or sent something unasked; never blocks.
  bool healthy();
  /// Gives the channel away, with what was read ahead of it; the connection is of no use then.
  std::unique_ptr<Channel> release(std::string& early) {
    early = std::move(early_);
    return std::move(channel_);
  }
  /// From any thread: reads and writes end soon.
  void cancel() { channel_->shutdown_both(); }

  /// Some bytes of an answer have come on this connection since the last request was begun.
  bool answered = false;
  bool reused = false;
  std::uint64_t generation = 0;  // of the TLS settings it was made with

 private:
  explicit ClientConnection(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}
  Result<> handshake(Deadline deadline);
  Result<> flush(Deadline deadline);

  std::unique_ptr<Channel> channel_;
  std::string early_;  // came while a request was still being written
};

}  // namespace dibs::net
