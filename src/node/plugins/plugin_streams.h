#pragma once
// One stream per instance of a driver. A stream that breaks is opened again after five seconds,
// unless who reads it has no more use for it.
//
// Thread-safe. Handlers and tasks run on the executor, one at a time, and none once stop() has
// returned.

#include <functional>
#include <memory>
#include <string>

#include "node/plugins/dra_plugin.h"
#include "runtime/runtime.h"

namespace dibs::node {

class PluginStreams {
 public:
  struct Handlers {
    /// The gRPC method that an instance streams by.
    std::function<std::string(const DraPlugin& plugin)> method = {};
    std::function<void(const DraPlugin& plugin, const std::string& bytes)> message = {};
    /// False: leave the instance alone.
    std::function<bool(const DraPlugin& plugin, const rpc::Status& status)> ended = {};
    /// The instance was removed; `last` of its driver.
    std::function<void(const DraPlugin& plugin, bool last)> removed = {};
  };

  /// `runtime`, and what the handlers use, must outlive it.
  PluginStreams(runtime::Runtime& runtime, Handlers handlers);
  /// As stop().
  ~PluginStreams();
  PluginStreams(const PluginStreams&) = delete;
  PluginStreams& operator=(const PluginStreams&) = delete;

  void add(const std::shared_ptr<DraPlugin>& plugin);
  void remove(const std::shared_ptr<DraPlugin>& plugin);
  /// Opens at once what waits for its time, of the driver's connected instances.
  void retry(const std::string& driver);
  /// A task in line with the handlers.
  void later(Duration delay, std::function<void()> task);
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
