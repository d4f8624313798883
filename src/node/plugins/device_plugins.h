#pragma once
// Device plugins: programs that have devices of an extended resource, register with the node by
// <root>/device-plugins/kubelet.sock, list their devices for as long as they run, and say what a
// container needs that gets some of them.
//
// A pod gets its devices when it comes, before anything of it is made; what a container was given
// is kept in a file and used again at every start of it. Plugins are told that the agent is new by
// its socket: all others in the folder are removed at the start, as the kubelet does.
//
// Thread-safe. grant() and start_container() block on plugins.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "node/plugins/plugin_registry.h"
#include "node/plugins/pod_claims.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct DevicePluginsOptions {
  std::string folder = {};  // of sockets
  std::string state = {};   // a file
  bool health = true;       // gate ResourceHealthStatus
};

/// Of one resource, for the node's status.
struct DeviceAmount {
  std::int64_t capacity = 0;
  std::int64_t allocatable = 0;
  bool operator==(const DeviceAmount&) const = default;
};
using DeviceAmounts = std::map<std::string, DeviceAmount>;

/// Devices of one resource, for PodResources.
struct DeviceShare {
  std::string resource = {};
  std::vector<std::string> ids = {};
  std::vector<std::int64_t> numa_nodes = {};
};

class DevicePlugins : public PluginHandler {
 public:
  /// `runtime` and `files` must outlive it. The error of a damaged file says what to do.
  static Result<std::unique_ptr<DevicePlugins>> open(DevicePluginsOptions options, Connect connect,
                                                     runtime::Runtime& runtime,
                                                     runtime::Files& files);
  /// As stop().
  ~DevicePlugins() override;
  DevicePlugins(const DevicePlugins&) = delete;
  DevicePlugins& operator=(const DevicePlugins&) = delete;

  /// Lets plugins register.
  Result<> start();
  void stop();

  // Those that register in plugins_registry/ instead.
  Result<> validate(const PluginInfo& info) override;
  Result<> add(const PluginInfo& info) override;
  void remove(const PluginInfo& info) override;
  /// What the call Register does; `endpoint` is a socket's name in the folder.
  Result<> register_plugin(const std::string& version, const std::string& endpoint,
                           const std::string& resource);

  DeviceAmounts amounts() const;
  /// On the executor. Set before start().
  void on_amounts_change(std::function<void()> changed);
  void on_health_change(std::function<void(const std::string& pod_uid)> changed);

  Result<> grant(const json::Value& pod);
  std::set<std::string> granted(std::string_view pod_uid) const;
  void release(std::string_view pod_uid);
  /// Of all but these.
  void release_gone(const std::set<std::string>& active);
  /// What the container gets; its plugins are told first, where they want to be.
  Result<ContainerDevices> start_container(std::string_view pod_uid, std::string_view container);
  json::Value health_of(std::string_view pod_uid, std::string_view container) const;
  std::vector<DeviceShare> devices_of(std::string_view pod_uid, std::string_view container) const;
  /// All healthy ones.
  std::vector<DeviceShare> allocatable() const;

 private:
  struct State;
  explicit DevicePlugins(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace dibs::node
