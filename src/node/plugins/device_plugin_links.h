#pragma once
// The device plugins that are connected, and the devices that they list.
//
// A plugin that registers is asked what it can do, then it lists its devices in a stream that lasts
// as long as it does. Whoever came last speaks for a resource. When the last plugin of a resource
// is gone its devices count as unhealthy, and after five minutes as none.
//
// Thread-safe. `changed` runs on the executor, one call at a time, and not once stop() has
// returned.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/plugins/plugin_registry.h"
#include "rpc/channel.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct PluginDevice {
  bool healthy = false;
  std::vector<std::int64_t> numa_nodes = {};
};
using PluginDevices = std::map<std::string, PluginDevice>;  // by id

struct DevicePluginLink {
  std::string resource = {};
  std::string socket = {};
  std::unique_ptr<rpc::Channel> channel = {};
  bool wants_start = false;
  bool has_preferences = false;
};
using DevicePluginLinkPtr = std::shared_ptr<DevicePluginLink>;

/// "/v1beta1.DevicePlugin/Allocate"
std::string device_plugin_method(std::string_view name);

class DevicePluginLinks {
 public:
  /// `devices`: those whose health is another than before.
  using Changed =
      std::function<void(const std::string& resource, const std::set<std::string>& devices)>;

  /// `known`: resources that there was a plugin for before. `runtime` must outlive it.
  DevicePluginLinks(runtime::Runtime& runtime, Connect connect,
                    const std::set<std::string, std::less<>>& known, Changed changed);
  /// As stop().
  ~DevicePluginLinks();
  DevicePluginLinks(const DevicePluginLinks&) = delete;
  DevicePluginLinks& operator=(const DevicePluginLinks&) = delete;

  void begin(const std::string& resource, const std::string& socket);
  void end(const std::string& resource, const std::string& socket);
  void stop();

  /// There is or was a plugin for it.
  bool known(std::string_view resource) const;
  /// Null when none is connected.
  DevicePluginLinkPtr speaker(std::string_view resource) const;
  PluginDevices devices(std::string_view resource) const;
  std::map<std::string, PluginDevices> all() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
