#pragma once
// A driver that runs: registered with the node's agent, its devices published, its claims served.
//
// Life: start() cleans up after a predecessor, listens on the service socket and then on the
// registration socket, which the agent watches. Devices are published once the agent has said that
// the driver is registered, or after ten seconds where none does: one that starts takes slices of
// drivers that it does not know for left over. At last the driver is handed its plugin
// (Driver::started), which it may use until it is told that it ends (Driver::stopping). stop()
// takes the sockets away, which is how the agent learns of it. Slices and prepared claims stay: the
// next instance goes on where this one stopped.
//
// Clock, threads, files, API and sockets come from outside. Thread-safe.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "client/client.h"
#include "driver/driver.h"
#include "rpc/server.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::driver {

using Serve = std::function<Result<std::unique_ptr<rpc::Server>>(const std::string& socket_path,
                                                                 rpc::Methods methods)>;

/// What a plugin needs of the world. All must outlive it.
struct Environment {
  client::Client& api;
  runtime::Runtime& runtime;
  runtime::Files& files = runtime::system_files();
  metrics::Registry* metrics = nullptr;
  /// Null: rpc::serve_unix.
  Serve serve = {};
};

struct PluginOptions {
  std::string driver_name = {};
  std::string node_name = {};
  /// Where the agent looks for registration sockets.
  std::string registry_dir = "/var/lib/kubelet/plugins_registry";
  /// Where drivers have their folders.
  std::string plugins_dir = "/var/lib/kubelet/plugins";
  /// The driver's own folder; "": <plugins_dir>/<driver>. Made where it is missing.
  std::string data_dir = {};
  std::string cdi_dir = "/var/run/cdi";
  /// CDI devices are named "k8s.<driver>/<class>=…".
  std::string cdi_class = "claim";
  /// CDI files as drivers of the classic model write them: one device for the whole claim, named by
  /// its uid, keys by the alphabet, readable by root alone.
  bool cdi_per_claim = false;
  cdi::ContainerEdits common_edits = {};
  /// Of this instance's pod; set, two instances may overlap in a rolling update.
  std::string pod_uid = {};
  /// Never two calls of prepare() or unprepare() at once.
  bool serialize = true;
  /// Off: the driver publishes by other means, or in another process.
  bool publish = true;
  /// Registers with agents of releases 1.26 to 1.31, too, which know a driver by a number. Claims
  /// of the classic model are served in any case.
  bool classic = false;
  /// As `classic`; and devices are offered to the node's agent, which publishes them as
  /// release 1.30 does (named resources), and not published here.
  bool named_resources = false;
  /// Give containers files that describe their devices.
  bool metadata = false;
  bool guard_devices = true;
  /// Devices can be given faults, to see what becomes of those who use them (faults.h,
  /// docs/device-faults.md). The driver has to be allowed to watch nodes.
  bool faults = false;
  std::string checkpoint_api_version = "checkpoint.dibs.dev/v1";
  std::string metrics_prefix = "dra_driver";
  /// Told of failures that the plugin gets over by itself, such as one to publish.
  std::function<void(const Error& error)> background_error = {};
};

class Plugin {
 public:
  /// `driver` must outlive it. Errors name the folder or socket.
  static Result<std::unique_ptr<Plugin>> start(Driver& driver, Environment environment,
                                               PluginOptions options);
  /// As stop().
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  /// Asks the driver for its devices again. Errors: the driver's, or a mistake in a pool.
  Result<> publish();
  /// All that publish() asked for is written.
  bool is_published() const;
  void health_changed();

  /// What the agent said of the registration; nothing when it has not asked yet.
  std::optional<Result<>> registration() const;
  const std::string& registration_socket() const;
  const std::string& service_socket() const;

  /// Calls that wait for a device with the fault "slow" fail now, and so do later ones: for who has
  /// to end before stop() and waits for such a call.
  void end_waiting();
  void stop();

 private:
  Plugin();
  struct State;
  std::unique_ptr<State> state_;
};

/// A driver with its plugin: it ends when `keep` is dropped.
struct Running {
  std::shared_ptr<void> keep = {};
  Plugin* plugin = nullptr;
};
/// Errors: as Plugin::start().
Result<Running> start_driver(std::unique_ptr<Driver> driver, Environment environment,
                             PluginOptions options);

}  // namespace dibs::driver
