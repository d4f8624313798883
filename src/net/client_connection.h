#pragma once
// One client connection with blocking calls that end at a deadline. For net itself, and for probes
// that only connect.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/channel.h"
#include "net/dial.h"
#include "net/http.h"
#include "net/lookups.h"
#include "net/reach.h"
#include "net/tls.h"

namespace dibs::net {

using Deadline = std::chrono::steady_clock::time_point;

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
                                                        Reach reach = Reach::anywhere,
                                                        const Lookups& lookups = Lookups());

  /// Stops early, successfully, when the server begins to answer: it may have refused what is
  /// coming.
  Result<> write(std::string_view bytes, Deadline deadline);
  /// 0 at the end of the connection.
  Result<std::size_t> read(char* data, std::size_t size, Deadline deadline);
  /// False when the server has closed it or sent something unasked; never blocks.
  bool healthy();
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
