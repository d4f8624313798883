#include "drivers/net/node/node_half.h"

#include <atomic>

#include "base/log.h"
#include "base/strings.h"
#include "client/informer.h"
#include "client/resource_versions.h"
#include "client/work_queue.h"
#include "driver/claim.h"
#include "drivers/net/host/node_state_writer.h"
#include "drivers/net/host/slice_devices.h"
#include "drivers/net/node/claims_driver.h"
#include "drivers/net/node/local_handler.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using client::WorkOutcome;
using json::Value;

/// The only key of its queue.
constexpr const char* kPublish = "publish";
/// Between two looks whether all is known that devices depend on.
constexpr Duration kPatience = std::chrono::milliseconds(200);
const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};

Result<std::unique_ptr<HostFacts>> open_facts(const driver::Environment& environment,
                                              const NodeHalfOptions& options) {
  FactsOptions how;
  how.node_name = options.node_name;
  how.roots = options.roots;
  how.include_interfaces = options.include_interfaces;
  how.exclude_interfaces = options.exclude_interfaces;
  if (!options.resource_pools.empty()) {
    auto text = environment.files.read(options.resource_pools);
    if (!text) return text.error().within("--resource-pools");
    auto pools = parse_pools_config(*text);
    if (!pools) return pools.error().within(cat("--resource-pools: ", options.resource_pools));
    how.pools = std::move(pools).value();
  }
  std::unique_ptr<Links> links;
  if (options.recorded_links.empty()) {
    DIBS_TRY(links, open_netlink());
  } else {
    links = recorded_links(environment.files, options.recorded_links);
  }
  return std::make_unique<HostFacts>(std::move(links), environment.runtime.clock, std::move(how));
}

/// Lives as long as the half runs.
class NodeHalf {
 public:
  NodeHalf(const driver::Environment& environment, const NodeHalfOptions& options,
           std::unique_ptr<HostFacts> facts)
      : options_(options),
        publishing_(environment.runtime, {}, [this](const std::string&) { return publish_now(); }),
        networks_(environment.api, environment.runtime, [this] { publish(); }),
        writer_(environment.api, environment.runtime, std::move(facts),
                {.changed = [this](const NodeState&) { publish(); },
                 .background_error =
                     [](const Error& error) {
                       log::warn("what this node has is not told", {{"error", error}});
                     }}),
        pods_(
            environment, networks_, [this] { return writer_.state(); }, options.node_name,
            options.ipam.selection),
        classic_(
            environment, pods_, [this] { return writer_.state(); }, {},
            claims_options(kClassicDriver)),
        today_(
            environment, pods_, [this] { return writer_.state(); }, [this] { return devices(); },
            claims_options(kDriver)),
        resources_(environment.api) {
    if (options.resource_pools.empty()) return;
    // Functions and shares that classic claims hold are not offered.
    claims_ = std::make_unique<client::Informer>(resources_, environment.runtime,
                                                 client::InformerOptions{.gvr = kClaims});
    client::InformerHandlers handlers;
    handlers.added = [this](const Value&, bool) { publish(); };
    handlers.updated = [this](const Value&, const Value&) { publish(); };
    handlers.removed = [this](const Value&) { publish(); };
    claims_->add_handler(std::move(handlers));
  }

  ~NodeHalf() {
    if (ipam_) ipam_->stop();
    if (local_service_) local_service_->stop();
    if (claims_) claims_->stop();
    networks_.stop();
    writer_.stop();
    publishing_.stop();
    for (auto* plugin : {&classic_plugin_, &today_plugin_}) {
      if (*plugin) (*plugin)->stop();
    }
    pods_.stop();
  }

  Result<> start(const driver::Environment& environment) {
    DIBS_TRY(classic_plugin_,
             driver::Plugin::start(classic_, environment, plugin_options(kClassicDriver)));
    if (!options_.only_classic) {
      DIBS_TRY(today_plugin_, driver::Plugin::start(today_, environment, plugin_options(kDriver)));
      publisher_ = today_plugin_.get();
      publish();
    }
    // It seldom assigns: the cluster is asked then, and not watched by every node.
    IpamOptions seldom = options_.ipam;
    seldom.watch = false;
    DIBS_TRY(ipam_, Ipam::start(environment, std::move(seldom)));
    if (claims_) claims_->start();
    writer_.start();
    // Pods of a simulated node have no interfaces, and nobody asks.
    if (options_.ipam_socket.empty() || environment.serve) return success();
    local_ = std::make_unique<NodeLocalHandler>(
        environment.api, *ipam_, networks_, pods_, [this] { return writer_.state(); },
        options_.node_name, options_.ipam.selection);
    auto service = LocalService::start(options_.ipam_socket, *local_);
    if (!service) return service.error().within("--ipam-socket");
    local_service_ = std::move(service).value();
    return success();
  }

  driver::Plugin* plugin() { return today_plugin_ ? today_plugin_.get() : classic_plugin_.get(); }

 private:
  ClaimsDriverOptions claims_options(std::string_view driver) const {
    ClaimsDriverOptions out;
    out.driver_name = driver;
    out.node_name = options_.node_name;
    out.host_device_path = options_.host_device_path;
    out.roots = options_.roots;
    out.network_devices = options_.network_devices;
    return out;
  }

  driver::PluginOptions plugin_options(std::string_view driver) const {
    driver::PluginOptions out;
    out.driver_name = driver;
    out.node_name = options_.node_name;
    out.registry_dir = options_.registry_dir;
    out.plugins_dir = options_.plugins_dir;
    out.cdi_dir = options_.cdi_root;
    out.cdi_per_claim = true;
    out.pod_uid = options_.pod_uid;
    // The interfaces of a node are shared by all, and a function is guarded by being there.
    out.guard_devices = false;
    out.classic = true;
    out.publish = driver == kDriver;
    return out;
  }

  void publish() { publishing_.add(kPublish); }

  WorkOutcome publish_now() {
    driver::Plugin* plugin = publisher_;
    if (plugin == nullptr) return WorkOutcome::done();
    const auto published = plugin->publish();
    if (published) return WorkOutcome::done();
    if (published.error().code() == Code::unavailable) return WorkOutcome::again_after(kPatience);
    log::warn("devices not published", {{"error", published.error()}});
    return WorkOutcome::retry();
  }

  Result<std::vector<driver::Device>> devices() {
    const auto state = writer_.state();
    if (!state || !networks_.synced() || (claims_ && !claims_->synced())) {
      return Error::unavailable("what this node has is not known yet");
    }
    SliceOptions how;
    how.install_namespace = options_.ipam.selection.install_namespace;
    how.include_virtual = options_.include_interfaces;
    how.binding_conditions = true;
    Used taken;
    if (claims_) {
      for (const Value& claim : claims_->list()) add_claim(claim, *state, taken, how);
    }
    return slice_devices(*state, networks_.all(), taken, how);
  }

  void add_claim(const Value& claim, const NodeState& state, Used& taken, SliceOptions& how) {
    for (const auto& handle : driver::handles_of(claim, kClassicDriver)) {
      const auto grant = parse_handle(handle.data);
      if (grant && grant->node == options_.node_name) taken.add(*grant);
    }
    for (const NicDevice& device : nic_devices(claim)) {
      if (device.pool != options_.node_name) continue;
      const auto what = find_device(state, device.device);
      if (what && !what->vf.empty()) how.prepared.insert(what->vf);
    }
  }

  const NodeHalfOptions options_;
  /// Set once there is one: others may want to publish before.
  std::atomic<driver::Plugin*> publisher_ = nullptr;
  client::WorkQueue publishing_;
  Networks networks_;
  NodeStateWriter writer_;
  PodNetworksWriter pods_;
  ClaimsDriver classic_;
  ClaimsDriver today_;
  client::ResourceClient resources_;
  std::unique_ptr<client::Informer> claims_;
  std::unique_ptr<driver::Plugin> classic_plugin_;
  std::unique_ptr<driver::Plugin> today_plugin_;
  std::unique_ptr<Ipam> ipam_;
  std::unique_ptr<NodeLocalHandler> local_;
  std::unique_ptr<LocalService> local_service_;
};

}  // namespace

NodeHalfOptions options_for_node(std::string node_name, const std::string& folder) {
  NodeHalfOptions options;
  options.node_name = std::move(node_name);
  options.registry_dir = cat(folder, "/plugins_registry");
  options.plugins_dir = cat(folder, "/plugins");
  options.cdi_root = cat(folder, "/cdi");
  options.ipam_socket = cat(folder, "/spiderpool.sock");
  options.network_devices = cat(folder, "/network-devices");
  return options;
}

Result<driver::Running> start_node_half(driver::Environment environment,
                                        const NodeHalfOptions& options) {
  DIBS_TRY(auto facts, open_facts(environment, options));
  auto half = std::make_shared<NodeHalf>(environment, options, std::move(facts));
  DIBS_CHECK(half->start(environment));
  driver::Plugin* plugin = half->plugin();
  return driver::Running{std::move(half), plugin};
}

}  // namespace dibs::drivers::net
