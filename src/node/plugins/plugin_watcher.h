#pragma once
// Which registration sockets there are: the folder that plugins put them into, watched.
//
// A socket's file is the registration: its creation asks for one, its removal takes it back, the
// death of the process does neither. A file that was removed and made again is a new one, even at
// the same path. Folders below are looked into; names that begin with a dot and whatever is not a
// socket are passed over.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "rpc/memory_network.h"
#include "runtime/runtime.h"

namespace dibs::node {

class PluginWatcher {
 public:
  struct Handlers {
    std::function<void(const std::string& path)> appeared = {};
    std::function<void(const std::string& path)> gone = {};
  };

  virtual ~PluginWatcher() = default;
  /// Tells of every socket there is, then of every change, one at a time, from any thread.
  virtual Result<> start(Handlers handlers) = 0;
  /// No handler runs when it returns.
  virtual void stop() = 0;
};

/// By inotify; where the machine has no more of those, by looking every second. The folder is made
/// if it is missing. Takes a thread of the executor while it runs. `runtime` must outlive it.
std::unique_ptr<PluginWatcher> watch_folder(const std::string& folder, runtime::Runtime& runtime);

/// The servers of `network` below `folder`. `network` must outlive it.
std::unique_ptr<PluginWatcher> watch_network(rpc::MemoryNetwork& network,
                                             const std::string& folder);

}  // namespace dibs::node
