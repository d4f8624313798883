#pragma once
// Everything that a node does about devices: drivers and device plugins register, their connections
// are watched, claims of pods are prepared and taken back, health reaches pod statuses, monitoring
// agents are answered. The agent makes one of these per node and talks to it as PodClaims.
//
// Life: open() reads the checkpoint and fails when it is damaged; start() looks for slices that
// are left from before, then begins to watch for plugins; stop() ends all calls of its own. What is
// prepared stays prepared across stop() and the next open().
//
// Thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "client/client.h"
#include "json/value.h"
#include "node/plugins/device_plugins.h"
#include "node/plugins/plugin_registry.h"
#include "node/plugins/plugin_watcher.h"
#include "node/plugins/pod_claims.h"
#include "rpc/channel.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct NodeDevicesOptions {
  std::string node_name = {};
  /// The kubelet's root folder: plugins_registry/, dra_manager_state, … are below it.
  std::string root = {};
  /// Where a path that a driver names lies on the machine: it may be in a pod that has a folder of
  /// its node mounted in the place of the kubelet's. Empty: there.
  std::function<std::string(const std::string& path)> host_path = {};
  /// "1.32"; "" is the newest, which takes drivers of older releases too.
  std::string release = {};
  /// "Gate=true,…": of the node.
  std::string feature_gates = {};
  /// The pods that are to run here (API objects, terminal ones left out); nothing until all are
  /// known. Called on the executor.
  std::function<std::optional<std::vector<json::Value>>()> active_pods = {};
  /// Where metrics go; null for none. One per node.
  metrics::Registry* metrics = nullptr;
  /// Serve <root>/pod-resources/kubelet.sock.
  bool pod_resources = true;
  /// Called once on the executor: slices from before are gone and drivers are watched for, so that
  /// one of this process may start.
  std::function<void()> watching = {};
  /// Drivers that live in this process, in place of sockets: simulated nodes.
  rpc::MemoryNetwork* network = nullptr;
  /// Who takes plugins of other types, by type. They outlive it.
  std::map<std::string, PluginHandler*> handlers = {};
};

class NodeDevices {
 public:
  /// `api`, `runtime` and `files` must outlive it. The error of a damaged checkpoint says what the
  /// operator has to do.
  static Result<std::unique_ptr<NodeDevices>> open(NodeDevicesOptions options, client::Client& api,
                                                   runtime::Runtime& runtime,
                                                   runtime::Files& files);
  virtual ~NodeDevices() = default;

  virtual Result<> start() = 0;
  /// Calls of drivers end at once: for who has to end before stop() and waits for one.
  virtual void cancel_calls() = 0;
  virtual void stop() = 0;

  virtual PodClaims& claims() = 0;
  /// What device plugins have; nothing where there are no sockets.
  virtual DeviceAmounts amounts() const = 0;
  /// Set before start(); runs on the executor.
  virtual void on_amounts_change(std::function<void()> changed) = 0;
  /// Called with a driver's name whenever it registers, connects or goes: pods that wait for it
  /// should try again. Set before start(); runs on the executor.
  virtual void on_driver_change(std::function<void(const std::string& driver)> changed) = 0;
  /// Drivers with a registered instance, by name.
  virtual std::vector<std::string> drivers() const = 0;
};

}  // namespace dibs::node
