#include "node/plugins/node_devices.h"

#include <set>

#include "api/schema/features.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/gate.h"
#include "client/resource_versions.h"
#include "client/work_queue.h"
#include "node/plugins/claim_manager.h"
#include "node/plugins/driver_plugins.h"
#include "node/plugins/health_monitor.h"
#include "node/plugins/plugin_registry.h"
#include "node/plugins/pod_devices.h"
#include "node/plugins/pod_resources.h"
#include "node/plugins/resource_models.h"
#include "node/plugins/slice_wiper.h"
#include "rpc/server.h"

namespace dibs::node {
namespace {

using client::WorkOutcome;

constexpr std::size_t kMaxSocketPath = 107;
/// How often pods that are gone are looked for; how soon again when not all is done.
constexpr auto kReconcile = std::chrono::seconds(60);
constexpr auto kReconcileSoon = std::chrono::seconds(10);
constexpr auto kReconcileFirst = std::chrono::seconds(1);

Result<api::Features> features_of(const NodeDevicesOptions& options) {
  return api::Features::parse(options.release.empty() ? "1.37" : options.release,
                              options.feature_gates);
}

ClaimManagerOptions manager_options(const NodeDevicesOptions& options,
                                    const api::Features& features) {
  ClaimManagerOptions out;
  out.enabled = features.on("DynamicResourceAllocation");
  out.release = NodeRelease::parse(options.release);
  out.optional_operations = features.on("DRAOptionalNodeOperations");
  out.health = features.on("ResourceHealthStatus");
  out.health_message = features.on("ResourceHealthStatusMessage");
  return out;
}

Connect connect(const NodeDevicesOptions& options) {
  if (options.network != nullptr) {
    return [network = options.network](const std::string& path) { return network->connect(path); };
  }
  return [find = options.host_path](const std::string& path) {
    return rpc::connect_unix(find ? find(path) : path);
  };
}

class NodeDevicesImpl : public NodeDevices {
 public:
  NodeDevicesImpl(NodeDevicesOptions options, const api::Features& features,
                  ClaimManagerOptions manager, std::unique_ptr<ClaimCache> cache,
                  std::unique_ptr<DevicePlugins> device_plugins, client::Client& api,
                  runtime::Runtime& runtime, runtime::Files& files)
      : options_(std::move(options)),
        release_(manager.release),
        shows_claims_(manager.enabled && features.on("KubeletPodResourcesDynamicResources")),
        shows_pods_(features.on("KubeletPodResourcesGet")),
        api_(api),
        runtime_(runtime),
        metrics_(options_.metrics),
        cache_(std::move(cache)),
        device_plugins_(std::move(device_plugins)),
        health_(cat(options_.root, "/dra_health_state"), files, runtime.clock),
        wiper_(options_.node_name, release_, api_, runtime),
        plugins_(release_, connect(options_), runtime, wiper_, metrics_),
        claims_(manager, api_, runtime.clock, plugins_, *cache_, health_, metrics_),
        pods_(claims_, *device_plugins_),
        monitor_(runtime, health_,
                 [this](const std::string& driver, const std::vector<DeviceName>& devices) {
                   claims_.health_changed(driver, devices);
                 }),
        models_(options_.node_name, api_, runtime,
                [this](const std::string& driver) { return plugins_.usable(driver); }),
        registry_(runtime, connect(options_), handlers()),
        reconcile_(runtime, {}, [this](const std::string&) { return reconcile(); }) {
    plugins_.on_change = [this](const std::string& driver) { driver_changed(driver); };
    // From 1.31 on drivers publish themselves; the older ones are known by their version.
    const bool publish = !release_.exact || publishes_alone();
    plugins_.on_added = [this, publish, health = manager.health](const auto& plugin) {
      if (health) monitor_.add(plugin);
      if (publish) models_.add(plugin);
    };
    plugins_.on_removed = [this](const auto& plugin) {
      monitor_.remove(plugin);
      models_.remove(plugin);
    };
  }

  ~NodeDevicesImpl() override { stop(); }

  Result<> start() override {
    const std::string folder = cat(options_.root, "/plugins_registry");
    if (!options_.network) {
      // Drivers that start beside the agent expect both.
      DIBS_CHECK(runtime::system_files().make_dirs(folder, 0755));
      DIBS_CHECK(runtime::system_files().make_dirs(cat(options_.root, "/plugins"), 0755));
    }
    DIBS_CHECK(serve_pod_resources());
    // Simulated nodes have no sockets that a program could reach.
    if (!options_.network) DIBS_CHECK(device_plugins_->start());
    watcher_ = options_.network ? watch_network(*options_.network, folder)
                                : watch_folder(folder, runtime_);
    // Only then can drivers register: what they publish after that is safe from the first wipe.
    SliceWiper::Drivers drivers;
    drivers.usable = [this](const std::string& driver) { return plugins_.usable(driver); };
    drivers.settling = [this] { return registry_.settling(); };
    wiper_.begin([this] { watch(); }, std::move(drivers));
    if (publishes_alone()) models_.clean_up();
    reconcile_.add("pods");
    return success();
  }

  void cancel_calls() override { plugins_.cancel_calls(); }

  void stop() override {
    // First what starts others: the first wipe the watcher, the watcher the registry's steps.
    wiper_.stop();
    if (watcher_) watcher_->stop();
    if (server_) server_->stop();
    registry_.stop();
    device_plugins_->stop();
    reconcile_.stop();
    monitor_.stop();
    models_.stop();
    plugins_.stop();
  }

  PodClaims& claims() override { return pods_; }
  DeviceAmounts amounts() const override { return device_plugins_->amounts(); }
  void on_amounts_change(std::function<void()> changed) override {
    device_plugins_->on_amounts_change(std::move(changed));
  }
  std::vector<std::string> drivers() const override { return plugins_.drivers(); }
  void on_driver_change(std::function<void(const std::string& driver)> changed) override {
    const MutexLock lock(mutex_);
    driver_listener_ = std::move(changed);
  }

 private:
  std::map<std::string, PluginHandler*> handlers() {
    auto all = options_.handlers;
    all["DRAPlugin"] = &plugins_;
    all["DevicePlugin"] = device_plugins_.get();
    return all;
  }

  void watch() {
    PluginWatcher::Handlers handlers;
    handlers.appeared = [this](const std::string& path) { registry_.appeared(path); };
    handlers.gone = [this](const std::string& path) { registry_.gone(path); };
    if (auto started = watcher_->start(std::move(handlers)); !started) {
      log::error("plugins cannot be watched for",
                 {{"node", options_.node_name}, {"error", started.error()}});
    }
    if (options_.watching) options_.watching();
  }

  Result<> serve_pod_resources() {
    if (!options_.pod_resources) return success();
    const std::string folder = cat(options_.root, "/pod-resources");
    const std::string path = cat(folder, "/kubelet.sock");
    PodResourcesSource source;
    source.pods = options_.active_pods;
    source.claim = [this](std::string_view name_space, std::string_view claim) {
      return claims_.find(name_space, claim);
    };
    source.devices = [this](std::string_view pod_uid, std::string_view container) {
      return device_plugins_->devices_of(pod_uid, container);
    };
    source.allocatable = [this] { return device_plugins_->allocatable(); };
    source.release = release_;
    source.claims = shows_claims_;
    source.get = shows_pods_;
    auto methods = pod_resources_methods(std::move(source), runtime_.clock);
    if (options_.network) {
      server_ = options_.network->serve(path, std::move(methods));
      return success();
    }
    DIBS_CHECK(runtime::system_files().make_dirs(folder, 0750));
    DIBS_TRY(server_, rpc::serve_unix(path, std::move(methods)));
    return success();
  }

  /// Slices of this node are the agent's alone.
  bool publishes_alone() const { return release_.exact && release_.minor == 30; }

  void driver_changed(const std::string& driver) {
    monitor_.retry(driver);
    reconcile_.add("pods");
    std::function<void(const std::string&)> listener;
    {
      const MutexLock lock(mutex_);
      listener = driver_listener_;
    }
    if (listener) listener(driver);
  }

  WorkOutcome reconcile() {
    bool known = false;
    const bool done = claims_.release_gone([&]() -> std::optional<std::set<std::string>> {
      const auto pods = options_.active_pods ? options_.active_pods() : std::nullopt;
      if (!pods) return std::nullopt;
      known = true;
      std::set<std::string> uids;
      for (const auto& pod : *pods) uids.insert(pod["metadata"]["uid"].str());
      device_plugins_->release_gone(uids);
      return uids;
    });
    if (done) return WorkOutcome::again_after(kReconcile);
    return WorkOutcome::again_after(known ? Duration(kReconcileSoon) : Duration(kReconcileFirst));
  }

  const NodeDevicesOptions options_;
  const NodeRelease release_;
  const bool shows_claims_;
  const bool shows_pods_;
  client::ResourceClient api_;
  runtime::Runtime& runtime_;
  PluginMetrics metrics_;
  const std::unique_ptr<ClaimCache> cache_;
  const std::unique_ptr<DevicePlugins> device_plugins_;
  DeviceHealth health_;
  SliceWiper wiper_;
  DriverPlugins plugins_;
  ClaimManager claims_;
  PodDevices pods_;
  HealthMonitor monitor_;
  ResourceModels models_;
  PluginRegistry registry_;
  std::unique_ptr<PluginWatcher> watcher_;
  std::unique_ptr<rpc::Server> server_;
  Mutex mutex_;
  std::function<void(const std::string&)> driver_listener_ DIBS_GUARDED_BY(mutex_);
  client::WorkQueue reconcile_;
};

}  // namespace

Result<std::unique_ptr<NodeDevices>> NodeDevices::open(NodeDevicesOptions options,
                                                       client::Client& api,
                                                       runtime::Runtime& runtime,
                                                       runtime::Files& files) {
  // The longest that is made here; drivers choose their own names, so leave them some room.
  const std::size_t longest =
      options.root.size() + std::string_view("/pod-resources/kubelet.sock").size();
  if (!options.network && longest > kMaxSocketPath) {
    return Error::invalid(cat("--root-dir ", options.root, ": too long by ",
                              longest - kMaxSocketPath,
                              " bytes for the sockets below it; choose a shorter --root-dir (or "
                              "--data-dir)"));
  }
  DIBS_TRY(const auto features, features_of(options));
  const ClaimManagerOptions manager = manager_options(options, features);
  DIBS_CHECK(files.make_dirs(options.root, 0755));
  DIBS_TRY(auto cache, ClaimCache::open(cat(options.root, "/dra_manager_state"), files));
  DevicePluginsOptions plugins;
  plugins.folder = cat(options.root, "/device-plugins");
  plugins.state = cat(options.root, "/device_plugins_state");
  plugins.health = manager.health;
  DIBS_TRY(auto device_plugins,
           DevicePlugins::open(std::move(plugins), connect(options), runtime, files));
  return std::unique_ptr<NodeDevices>(
      std::make_unique<NodeDevicesImpl>(std::move(options), features, manager, std::move(cache),
                                        std::move(device_plugins), api, runtime, files));
}

}  // namespace dibs::node
