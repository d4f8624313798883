#pragma once
// The node's agent, as the driver meets it: finds its registration socket, asks who it is, tells it
// that it is registered, calls it.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "node/plugins/dra_plugin.h"
#include "node/plugins/plugin_metrics.h"
#include "node/plugins/plugin_watcher.h"
#include "node/plugins/versions.h"

namespace dibs::trial {

class Agent {
 public:
  Agent(runtime::Runtime& runtime, const std::string& registry, Duration call_timeout);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  Result<> watch();
  /// The program is not there any more, and what its sockets were: they have to come anew.
  void forget();

  /// Waits for a socket and takes what is behind it, as an agent of the newest release does; gives
  /// up early where `goes_on` says so. Errors are what a check says of it.
  Result<> find_driver(Duration timeout, const std::function<bool()>& goes_on);
  bool has_driver() const { return plugin_ != nullptr; }
  const node::PluginInfo& info() const { return plugin_->info(); }
  const std::string& socket() const { return socket_; }
  rpc::Channel& channel() { return plugin_->channel(); }
  bool offers(std::string_view version) const;

  /// The driver in the version that was agreed upon, and in another one that it offers.
  node::DraPlugin& driver() { return *plugin_; }
  std::unique_ptr<node::DraPlugin> driver_in(node::DraApi api);

 private:
  Result<std::string> next_socket(Duration timeout, const std::function<bool()>& goes_on);
  Result<> take(const std::string& socket, Duration timeout);

  runtime::Runtime& runtime_;
  const std::string registry_;
  const Duration call_timeout_;
  node::PluginMetrics metrics_{nullptr};
  std::unique_ptr<node::PluginWatcher> watcher_;
  Mutex mutex_;
  CondVar appeared_;
  std::set<std::string> sockets_ DIBS_GUARDED_BY(mutex_);  // not taken yet
  std::unique_ptr<node::DraPlugin> plugin_;
  std::string socket_;
};

}  // namespace dibs::trial
