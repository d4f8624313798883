#pragma once
// Plugins as the node agent knows them: what sockets there should be (desired), what is registered,
// and the steps between.
//
// Each socket is asked who it is (GetInfo), handed to the handler of its type and told the outcome.
// A failure is told too and tried again, after 500 ms and then longer, up to 2 min 2 s. A socket
// that appears anew is a new plugin: the old registration ends first. One step at a time a socket;
// different sockets do not wait for each other.
//
// Thread-safe. Steps run on the runtime's executor.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "rpc/channel.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct PluginInfo {
  std::string type = {};
  std::string name = {};
  std::string endpoint = {};  // the service's socket
  std::vector<std::string> versions = {};
};

class PluginHandler {
 public:
  virtual ~PluginHandler() = default;
  virtual Result<> validate(const PluginInfo& info) = 0;
  virtual Result<> add(const PluginInfo& info) = 0;
  virtual void remove(const PluginInfo& info) = 0;
};

/// What the plugin at the socket `path` says of itself. Errors: unavailable where nobody listens.
Result<PluginInfo> ask_plugin(rpc::Channel& channel, const std::string& path);
/// Tells it what was made of that.
Result<> tell_plugin(rpc::Channel& channel, bool registered, const std::string& error);

using Connect = std::function<std::unique_ptr<rpc::Channel>(const std::string& path)>;

class PluginRegistry {
 public:
  /// Handlers by plugin type. All must outlive it.
  PluginRegistry(runtime::Runtime& runtime, Connect connect,
                 std::map<std::string, PluginHandler*> handlers);
  /// As stop().
  ~PluginRegistry();
  PluginRegistry(const PluginRegistry&) = delete;
  PluginRegistry& operator=(const PluginRegistry&) = delete;

  void appeared(const std::string& path);
  void gone(const std::string& path);
  /// A socket is there whose first registration has neither succeeded nor failed yet.
  bool settling() const;
  /// Registrations stay as they are. No step runs when it returns.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::node
