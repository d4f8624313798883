#pragma once
// A gRPC server on a Unix socket, in bytes (see channel.h).
//
// Handlers may run at once in several threads and may block. A method that nobody registered is
// answered with "unimplemented", as gRPC does.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "rpc/channel.h"

namespace dibs::rpc {

/// Where a server stream's handler writes. write() waits for room; false when the client is gone
/// or the server stops: then return.
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;
  virtual bool write(std::string_view message) = 0;
  /// Waits until the client is gone, the server stops or `timeout` has passed; false at the
  /// timeout.
  virtual bool wait_gone(Duration timeout) = 0;
};

using UnaryHandler = std::function<Reply(std::string_view request)>;
using StreamHandler = std::function<Status(std::string_view request, StreamWriter& writer)>;

struct Methods {
  std::map<std::string, UnaryHandler> unary = {};
  std::map<std::string, StreamHandler> streams = {};
};

class Server {
 public:
  virtual ~Server() = default;
  /// Lets calls in flight finish for a moment, breaks off the rest, removes the socket file.
  virtual void stop() = 0;
};

/// A stale socket file is removed first; the folder must exist. Listens when it returns.
Result<std::unique_ptr<Server>> serve_unix(const std::string& socket_path, Methods methods);
/// On a TCP port of all addresses, for probes; `port` 0 picks one and tells it.
Result<std::unique_ptr<Server>> serve_tcp(int& port, Methods methods);

}  // namespace dibs::rpc
