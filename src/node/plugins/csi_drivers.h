#pragma once
// The storage drivers of a node: plugins of type CSIPlugin.
//
// A driver is registered when it has said who it is on this node and the cluster has been told
// (csi_node.h); the same name twice is refused unless the newcomer speaks a newer version, as with
// the kubelet. When its socket goes, so does its entry in the CSINode; volumes that it has mounted
// wait for it to come back.
//
// Thread-safe. Handlers run on the executor and block.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/semver.h"
#include "client/client.h"
#include "client/work_queue.h"
#include "node/plugins/csi_driver.h"
#include "node/plugins/plugin_registry.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct CsiDriversOptions {
  std::string node_name = {};
  CsiPaths paths = {};
  /// Empty: Unix sockets.
  Connect connect = {};
};

class CsiDrivers : public PluginHandler {
 public:
  /// Both must outlive it.
  CsiDrivers(CsiDriversOptions options, client::Client& client, runtime::Runtime& runtime);
  ~CsiDrivers() override;

  Result<> validate(const PluginInfo& info) override;
  Result<> add(const PluginInfo& info) override;
  void remove(const PluginInfo& info) override;

  /// Error: "driver name x not found in the list of registered CSI drivers".
  Result<std::shared_ptr<CsiDriver>> find(const std::string& driver) const;

  /// A driver came. Set before the first one.
  std::function<void(const std::string& driver)> on_change = {};

  void stop();

 private:
  struct Known {
    std::shared_ptr<CsiDriver> driver;
    SemanticVersion version;
  };
  Result<SemanticVersion> check(const PluginInfo& info) const;
  client::WorkOutcome take_back(const std::string& driver);

  const CsiDriversOptions options_;
  client::Client& client_;
  mutable Mutex mutex_;
  std::map<std::string, Known> drivers_ DIBS_GUARDED_BY(mutex_);
  client::WorkQueue gone_;
};

}  // namespace dibs::node
