#pragma once
// The drivers of a node, each with one or more instances: a rolling update runs two side by side.
//
// A call goes to the instance that registered last among those that are connected, so prepare and
// unprepare of a claim may reach different instances. A driver is usable while one of its instances
// is connected; one that is not loses its ResourceSlices after a while (slice_wiper.h).
//
// Thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/gate.h"
#include "client/serial.h"
#include "node/plugins/dra_plugin.h"
#include "node/plugins/plugin_registry.h"
#include "node/plugins/slice_wiper.h"

namespace dibs::node {

class DriverPlugins : public PluginHandler {
 public:
  /// All must outlive it.
  DriverPlugins(NodeRelease release, Connect connect, runtime::Runtime& runtime, SliceWiper& wiper,
                PluginMetrics& metrics);
  ~DriverPlugins() override;

  Result<> validate(const PluginInfo& info) override;
  Result<> add(const PluginInfo& info) override;
  void remove(const PluginInfo& info) override;

  /// Error: "DRA driver x is not registered".
  Result<std::shared_ptr<DraPlugin>> pick(const std::string& driver) const;
  bool usable(const std::string& driver) const;
  std::vector<std::string> drivers() const;

  /// Set before the first plugin; all run on the executor.
  std::function<void(const std::string& driver)> on_change = {};
  std::function<void(const std::shared_ptr<DraPlugin>& plugin)> on_added = {};
  std::function<void(const std::shared_ptr<DraPlugin>& plugin)> on_removed = {};

  /// Ends all connections. Nothing calls back when it returns.
  /// Drivers that are being called need not answer any more.
  void cancel_calls();
  void stop();

 private:
  /// Tells of a change, and whether slices must go.
  void changed(const std::string& driver);

  const NodeRelease release_;
  const Connect connect_;
  runtime::Runtime& runtime_;
  SliceWiper& wiper_;
  PluginMetrics& metrics_;
  const std::shared_ptr<client::Serial> serial_;
  const std::shared_ptr<client::Gate> gate_;
  mutable Mutex mutex_;
  /// By driver, in the order of registration.
  std::map<std::string, std::vector<std::shared_ptr<DraPlugin>>> drivers_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::node
