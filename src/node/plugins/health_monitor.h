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
#include "runtime/runtime.h"

namespace dibs::node {

class HealthMonitor {
 public:
  using Changed =
      std::function<void(const std::string& driver, const std::vector<DeviceName>& devices)>;

  /// `runtime` and `health` must outlive it.
  HealthMonitor(runtime::Runtime& runtime, DeviceHealth& health, Changed changed);
  ~HealthMonitor();
  HealthMonitor(const HealthMonitor&) = delete;
  HealthMonitor& operator=(const HealthMonitor&) = delete;

  void add(const std::shared_ptr<DraPlugin>& plugin);
  void remove(const std::shared_ptr<DraPlugin>& plugin);
  /// The driver's connections changed.
  void retry(const std::string& driver);
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
