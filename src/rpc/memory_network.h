#pragma once
// Sockets of the mind: servers and channels that meet by path inside one object, without files,
// threads or bytes on a wire.
//
// For tests and for simulated nodes, where thousands of drivers live in one thread under virtual
// time. A call runs the handler inside the caller. Server streams need a thread of their own, so
// here they are answered with "unimplemented"; a test that wants one writes its own Channel.
//
// Thread-safe. Handlers of `changed` and watch_connection() run inside serve() and stop().

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rpc/server.h"

namespace dibs::rpc {

class MemoryNetwork {
 public:
  MemoryNetwork();
  ~MemoryNetwork();
  MemoryNetwork(const MemoryNetwork&) = delete;
  MemoryNetwork& operator=(const MemoryNetwork&) = delete;

  /// As serve_unix(); a server that is at the path already is replaced.
  std::unique_ptr<Server> serve(const std::string& path, Methods methods);
  /// As connect_unix().
  std::unique_ptr<Channel> connect(const std::string& path);

  /// Servers below a folder.
  std::vector<std::string> paths(const std::string& folder) const;
  /// Tells of every path below the folder that appears (true) or goes. Returns what ends it.
  std::function<void()> listen(const std::string& folder,
                               std::function<void(const std::string& path, bool there)> changed);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::rpc
