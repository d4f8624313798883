#include "driver/plugin.h"

#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/resource_versions.h"
#include "driver/claims_lock.h"
#include "driver/device_metadata.h"
#include "driver/dra_service.h"
#include "driver/fault_injection.h"
#include "driver/prepared_claims.h"
#include "driver/publisher.h"
#include "driver/registration.h"
#include "driver/sockets.h"

namespace dibs::driver {
namespace {

constexpr unsigned kFolderMode = 0750;

PreparedClaimsOptions claims_options(const PluginOptions& options, MetadataFiles* metadata) {
  PreparedClaimsOptions out;
  out.driver_name = options.driver_name;
  out.cdi_dir = options.cdi_dir;
  out.cdi_class = options.cdi_class;
  out.cdi_per_claim = options.cdi_per_claim;
  out.checkpoint_path = cat(options.data_dir, "/checkpoint.json");
  out.checkpoint_api_version = options.checkpoint_api_version;
  out.guard_devices = options.guard_devices;
  out.common_edits = options.common_edits;
  out.metadata = metadata;
  return out;
}

std::unique_ptr<MetadataFiles> make_metadata(runtime::Files& files, const PluginOptions& options) {
  if (!options.metadata) return nullptr;
  return std::make_unique<MetadataFiles>(files, options.driver_name, options.data_dir,
                                         options.cdi_dir);
}

}  // namespace

struct Plugin::State {
  State(Driver& given, Environment& environment, PluginOptions given_options)
      : options(std::move(given_options)),
        metrics(environment.metrics != nullptr ? *environment.metrics : own_registry,
                options.metrics_prefix),
        api(environment.api),
        faults(options.faults
                   ? std::make_unique<FaultInjection>(given, api, environment.runtime,
                                                      options.driver_name, options.node_name)
                   : nullptr),
        driver(faults ? *faults : given),
        metadata(make_metadata(environment.files, options)),
        claims(driver, environment.files, claims_options(options, metadata.get())),
        lock(environment.files, environment.runtime,
             options.pod_uid.empty() ? "" : cat(options.data_dir, "/serialize.lock")),
        service(driver, api, claims, options.serialize ? &lock : nullptr, metrics,
                environment.runtime) {
    if (!options.publish || options.named_resources) return;
    PublisherOptions publishing;
    publishing.driver_name = options.driver_name;
    publishing.node_name = options.node_name;
    publishing.held = true;
    publishing.may_have_successor = !options.pod_uid.empty();
    publishing.failed = [this](const Error& error) {
      metrics.background_error(false);
      if (options.background_error) options.background_error(error);
    };
    publisher = std::make_unique<Publisher>(api, environment.runtime, std::move(publishing));
  }

  const PluginOptions options;
  metrics::Registry own_registry;
  DriverMetrics metrics;
  client::ResourceClient api;
  std::unique_ptr<FaultInjection> faults;  // null: without
  Driver& driver;
  std::unique_ptr<MetadataFiles> metadata;
  PreparedClaims claims;
  ClaimsLock lock;
  DraService service;
  SocketPaths sockets;
  std::unique_ptr<Publisher> publisher;

  mutable Mutex mutex;
  std::optional<Result<>> registration DIBS_GUARDED_BY(mutex);
  std::unique_ptr<rpc::Server> service_server;
  std::unique_ptr<rpc::Server> registration_server;
  bool driver_knows = false;  // of its plugin

  Result<> prepare_folders(runtime::Files& files, bool has_sockets);
  Result<> listen(const Serve& serve);
};

Result<> Plugin::State::prepare_folders(runtime::Files& files, bool has_sockets) {
  auto made = files.make_dirs(options.data_dir, kFolderMode);
  if (!made) return made.error().within("plugin folder");
  made = files.make_dirs(options.cdi_dir, kFolderMode);
  if (!made) return made.error().within("CDI folder");
  // The folder is the agent's: where it is missing, nobody would ever look.
  if (has_sockets && !files.exists(options.registry_dir)) {
    return Error::not_found(cat("registry folder ", options.registry_dir, ": no such folder"));
  }
  DIBS_TRY(const auto held, lock.acquire());
  DIBS_CHECK(claims.write_common());
  if (auto cleaned = claims.collect_garbage(); !cleaned) {
    log::warn("cleaning up failed", {{"error", cleaned.error()}});
  }
  return success();
}

Result<> Plugin::State::listen(const Serve& serve) {
  auto listening = serve(sockets.service, service.methods(options.named_resources));
  if (!listening) return listening.error().within("service socket");
  service_server = std::move(listening).value();
  RegistrationInfo info;
  info.driver_name = options.driver_name;
  info.endpoint = sockets.service;
  info.supported_versions = supported_versions(options, driver.reports_health());
  auto told = [this](Result<> outcome) {
    if (outcome) {
      log::info("registered with the node's agent", {{"driver", options.driver_name}});
      if (publisher) publisher->begin();
    } else {
      log::error("the node's agent refused the driver", {{"error", outcome.error()}});
    }
    const MutexLock guard(mutex);
    registration = std::move(outcome);
  };
  listening = serve(sockets.registration, registration_methods(std::move(info), std::move(told)));
  if (!listening) {
    service_server->stop();
    return listening.error().within("registration socket");
  }
  registration_server = std::move(listening).value();
  return success();
}

Plugin::Plugin() = default;

Plugin::~Plugin() { stop(); }

Result<std::unique_ptr<Plugin>> Plugin::start(Driver& driver, Environment environment,
                                              PluginOptions options) {
  if (options.driver_name.empty()) return Error::invalid("a driver needs a name");
  if (options.node_name.empty()) return Error::invalid("a driver needs a node name");
  if (options.data_dir.empty()) {
    options.data_dir = cat(options.plugins_dir, "/", options.driver_name);
  }
  // The agent, which is told the socket's path, works in another folder.
  for (std::string* folder : {&options.registry_dir, &options.data_dir, &options.cdi_dir}) {
    *folder = std::filesystem::absolute(*folder).lexically_normal().string();
  }
  DIBS_TRY(auto sockets, socket_paths(options.registry_dir, options.data_dir, options.driver_name,
                                      options.pod_uid));
  std::unique_ptr<Plugin> plugin(new Plugin());
  plugin->state_ = std::make_unique<State>(driver, environment, std::move(options));
  State& state = *plugin->state_;
  state.sockets = std::move(sockets);
  DIBS_CHECK(state.prepare_folders(environment.files, !environment.serve));
  DIBS_CHECK(state.listen(environment.serve ? environment.serve : Serve(rpc::serve_unix)));
  if (auto published = plugin->publish();
      !published && published.error().code() != Code::unavailable) {
    return published.error();
  }
  state.driver_knows = true;
  state.driver.started(*plugin);
  if (state.faults) {
    state.faults->begin([plugin = plugin.get()] {
      if (auto published = plugin->publish();
          !published && published.error().code() != Code::unavailable) {
        log::error("devices cannot be published", {{"error", published.error()}});
      }
      plugin->health_changed();
    });
  }
  return plugin;
}

Result<> Plugin::publish() {
  state_->service.devices_changed();
  if (!state_->publisher) return success();
  DIBS_TRY(const auto pools, state_->driver.devices());
  return state_->publisher->update(pools);
}

bool Plugin::is_published() const { return !state_->publisher || state_->publisher->is_done(); }

void Plugin::health_changed() { state_->service.health_changed(); }

std::optional<Result<>> Plugin::registration() const {
  const MutexLock guard(state_->mutex);
  return state_->registration;
}

const std::string& Plugin::registration_socket() const { return state_->sockets.registration; }

const std::string& Plugin::service_socket() const { return state_->sockets.service; }

void Plugin::end_waiting() {
  if (state_->faults) state_->faults->end_waiting();
}

void Plugin::stop() {
  if (!state_) return;
  if (state_->faults) state_->faults->stop();
  if (std::exchange(state_->driver_knows, false)) state_->driver.stopping();
  if (state_->service_server) state_->service_server->stop();
  if (state_->registration_server) state_->registration_server->stop();
  if (state_->publisher) state_->publisher->stop();
}

Result<Running> start_driver(std::unique_ptr<Driver> driver, Environment environment,
                             PluginOptions options) {
  struct Kept {
    std::unique_ptr<Driver> driver;
    std::unique_ptr<Plugin> plugin;  // ends before the driver it calls
  };
  auto kept = std::make_shared<Kept>();
  kept->driver = std::move(driver);
  DIBS_TRY(kept->plugin, Plugin::start(*kept->driver, std::move(environment), std::move(options)));
  Plugin* plugin = kept->plugin.get();
  return Running{std::move(kept), plugin};
}

}  // namespace dibs::driver
