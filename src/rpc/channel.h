#pragma once
// A gRPC client over a Unix socket, in bytes.
//
// Callers encode and decode the messages (proto/) themselves, so that gRPC's own headers, which are
// slow to compile, stay in this folder. A method is named by its path,
// "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources".
//
// Thread-safe. The channel connects by itself and again after every loss.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace dibs::rpc {

/// gRPC's numbers.
enum class Code : int {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};

struct Status {
  Code code = Code::ok;
  std::string message = {};

  bool ok() const { return code == Code::ok; }
  /// As Go programs print it: "rpc error: code = Unavailable desc = ...".
  std::string text() const;
};

struct Reply {
  Status status = {};
  std::string bytes = {};  // the message, when status is ok
};

/// A server stream that is open. Destroying it cancels; no handler runs after the destructor.
class Stream {
 public:
  virtual ~Stream() = default;
};

struct StreamHandlers {
  std::function<void(std::string_view message)> message = {};
  /// Once, at the end.
  std::function<void(const Status& status)> ended = {};
};

class Channel {
 public:
  virtual ~Channel() = default;
  /// Waits for the answer; fails at once when the socket cannot be reached.
  virtual Reply call(const std::string& method, std::string_view request, Duration deadline) = 0;
  /// Calls that wait for an answer end at once, and so do later ones: who waits for them wants to
  /// end.
  virtual void cancel_calls() {}
  virtual std::unique_ptr<Stream> open_stream(const std::string& method, std::string_view request,
                                              StreamHandlers handlers) = 0;
  /// Connects without a call, now and after each loss, and tells every change: true when the peer
  /// is there. Handlers run on a thread of this folder, one at a time; at most one watch a channel.
  virtual void watch_connection(std::function<void(bool connected)> changed) = 0;
};

/// `socket_path` is absolute. Nothing is tried before the first call or watch.
std::unique_ptr<Channel> connect_unix(const std::string& socket_path);

}  // namespace dibs::rpc
