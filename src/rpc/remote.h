#pragma once
// A gRPC client of a server somewhere on the network, in bytes: with TLS or without, many calls in
// flight at once, and streams of two ways.
//
// As in channel.h, callers encode and decode the messages themselves. Thread-safe. It connects with
// the first call and again after every loss, with growing pauses; a call while it cannot connect
// fails with `unavailable` and the reason. A peer that is gone without a word is noticed after ten
// seconds, where a stream is open.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "rpc/channel.h"

namespace dibs::rpc {

/// The contents of PEM files.
struct RemoteTls {
  std::string authorities = {};  // who may have signed the server's certificate
  std::string certificate = {};  // of the client, with those above it; "": none
  std::string key = {};
};

struct RemoteOptions {
  std::string address = {};  // "host:port"; the server's certificate must be for `host`
  bool tls = true;
  RemoteTls certificates = {};
};

/// Names in lower case.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// A stream of two ways that is open. Destroying it cancels; no handler runs after the destructor,
/// which waits for one in another thread.
class TwoWayStream {
 public:
  virtual ~TwoWayStream() = default;
  /// Sent in order, without waiting. Dropped when the stream has ended.
  virtual void write(std::string_view message) = 0;
};

class Remote {
 public:
  virtual ~Remote() = default;
  /// `done` is called once, from any thread, also after this is gone.
  virtual void call(const std::string& method, std::string_view request, Duration deadline,
                    const Metadata& metadata, std::function<void(Reply)> done) = 0;
  /// Handlers run one at a time; what comes in waits for them.
  virtual std::unique_ptr<TwoWayStream> open_stream(const std::string& method,
                                                    const Metadata& metadata,
                                                    StreamHandlers handlers) = 0;
};

/// What is wrong with the certificates of either side, where a connection fails for that: "" when
/// nothing is, or nobody is there. Takes some seconds at most.
std::string tls_reason(const RemoteOptions& options);

/// Nothing is tried before the first call.
std::unique_ptr<Remote> connect_remote(const RemoteOptions& options);

}  // namespace dibs::rpc
