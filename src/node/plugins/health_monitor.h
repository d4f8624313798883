#pragma once
// Follows the health streams of drivers into DeviceHealth.
//
// A stream that ends is opened again after five seconds, or at once when the driver's connection
// comes back; a driver that says it has no such service is left alone until it registers anew.
//
// Thread-safe; its work runs on the executor, one task at a time.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "node/plugins/device_health.h"
#include "node/plugins/dra_plugin.h"
#include "node/plugins/plugin_streams.h"
#include "runtime/runtime.h"

namespace dibs::node {

class HealthMonitor {
 public:
  using Changed =
      std::function<void(const std::string& driver, const std::vector<DeviceName>& devices)>;

  /// `runtime` and `health` must outlive it.
  HealthMonitor(runtime::Runtime& runtime, DeviceHealth& health, Changed changed);

  void add(const std::shared_ptr<DraPlugin>& plugin);
  void remove(const std::shared_ptr<DraPlugin>& plugin) { streams_.remove(plugin); }
  /// The driver's connections changed.
  void retry(const std::string& driver) { streams_.retry(driver); }
  void stop() { streams_.stop(); }

 private:
  PluginStreams::Handlers handlers();
  void received(const std::string& driver, const std::string& bytes);
  void expire_later();
  void tell(const std::string& driver, const std::vector<DeviceName>& devices);

  DeviceHealth& health_;
  const Changed changed_;
  bool expiring_ = false;  // only tasks of streams_ use it
  PluginStreams streams_;  // last: its handlers use what stands above
};

}  // namespace dibs::node
