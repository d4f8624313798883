#include "node/agent.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/event_recorder.h"
#include "client/gate.h"
#include "node/plugins/csi_drivers.h"
#include "node/plugins/csi_node.h"
#include "node/plugins/declared_features.h"
#include "node/plugins/node_devices.h"
#include "node/pods/node_disk.h"
#include "node/pods/node_paths.h"
#include "node/pods/pod_events.h"
#include "node/pods/pod_workers.h"
#include "node/pods/storage_cache.h"
#include "node/runtime/pick_runtime.h"
#include "node/streams/node_access.h"
#include "node/streams/node_server.h"

namespace dibs::node {
namespace {

using json::Value;

// 107 less "/plugins_registry/" and a driver's name with "-reg.sock".
constexpr std::size_t kLongestRoot = 64;
constexpr Duration kLookAtRuntime = std::chrono::seconds(30);

const client::Gvr kServices{"", "v1", "services"};

Result<> make_folders(const AgentOptions& options, runtime::Files& files) {
  for (const char* folder :
       {"", "/pods", "/plugins", "/plugins_registry", "/pod-resources", "/device-plugins"}) {
    // What pods have in their volumes is no other user's.
    const unsigned mode = std::string_view(folder) == "/pods" ? 0750 : 0755;
    const auto made = files.make_dirs(cat(options.root, folder), mode);
    if (!made) return made.error().within(options.root_flag);
  }
  return success();
}

Result<ImageStoreOptions> image_options(const AgentOptions& options) {
  ImageStoreOptions out;
  auto aliases = builtin_aliases(options.image_aliases);
  if (!aliases) return Error::bad_request(aliases.error().message()).within("--image-alias");
  out.aliases = std::move(aliases).value();
  for (const auto& registry : options.insecure_registries) {
    if (registry.empty() || registry.find('/') != std::string::npos) {
      return Error::bad_request(
          cat("--insecure-registries ", quoted(registry), ": must be HOST or HOST:PORT"));
    }
  }
  out.insecure_registries = options.insecure_registries;
  return out;
}

Result<NodeDiskOptions> disk_options(const AgentOptions& options) {
  const DiskOptions& disk = options.disk;
  NodeDiskOptions out;
  auto thresholds = parse_thresholds(disk.eviction_hard);
  if (!thresholds) return thresholds.error().within("--eviction-hard");
  out.thresholds = std::move(thresholds).value();
  if (disk.pressure_transition < Duration(0)) {
    return Error::bad_request("--eviction-pressure-transition-period: must not be negative");
  }
  out.pressure_transition = disk.pressure_transition;
  if (disk.image_gc_low < 0 || disk.image_gc_high > 100 ||
      disk.image_gc_low >= disk.image_gc_high) {
    return Error::bad_request(cat("--image-gc-low-threshold ", disk.image_gc_low,
                                  ", --image-gc-high-threshold ", disk.image_gc_high,
                                  ": must be between 0 and 100, the low one below the high one"));
  }
  out.image_gc_high = disk.image_gc_high;
  out.image_gc_low = disk.image_gc_low;
  out.limits = disk.isolation;
  out.images = options.images.empty() ? default_image_folder() : options.images;
  DIBS_TRY(out.logs, parse_log_policy(disk.log_max_size, disk.log_max_files));
  return out;
}

/// The part of the node's disk below which pods are sent away.
std::int64_t disk_reserve(const NodeDiskOptions& options, std::int64_t disk_bytes) {
  for (const auto& threshold : options.thresholds) {
    if (threshold.signal != "nodefs.available") continue;
    return threshold.amount
               ? threshold.amount->value()
               : static_cast<std::int64_t>(static_cast<double>(disk_bytes) * threshold.part);
  }
  return 0;
}

}  // namespace

Result<> check_options(const AgentOptions& options) {
  if (options.name.empty()) return Error::bad_request("--name: a node needs a name");
  if (options.root.size() > kLongestRoot) {
    return Error::bad_request(cat(options.root_flag, " ", options.root, ": the node's folder has ",
                                  options.root.size(), " characters and may have at most ",
                                  kLongestRoot, ", because sockets of drivers lie below it"));
  }
  DIBS_CHECK(image_options(options));
  DIBS_CHECK(disk_options(options));
  DIBS_CHECK(SysctlRules::make(options.allowed_unsafe_sysctls, ""));
  return success();
}

struct Agent::State {
  State(AgentOptions how, client::Client& api, runtime::Runtime& world, runtime::Files& disk,
        Shared common)
      : options(std::move(how)), client(api), runtime(world), files(disk), shared(common) {}

  const AgentOptions options;
  client::Client& client;
  runtime::Runtime& runtime;
  runtime::Files& files;
  const Shared shared;

  NodeFacts facts;
  NodeOptions node_options;
  PickedRuntime picked;
  std::unique_ptr<client::EventRecorder> recorder;
  std::unique_ptr<client::Informer> own_services;
  std::unique_ptr<CsiDrivers> storage;  // none on a simulated node
  std::unique_ptr<NodeDevices> devices;
  std::unique_ptr<PodObjects> objects;
  std::unique_ptr<Volumes> volumes;
  std::unique_ptr<NodeObject> node;
  std::unique_ptr<PodWorkers> workers;
  NodeDiskOptions disk_how;
  std::unique_ptr<NodeDisk> disk;
  std::unique_ptr<NodeAccess> access;
  std::unique_ptr<StorageCache> disk_usage;
  std::unique_ptr<NodeServer> server;
  std::shared_ptr<client::Gate> gate = std::make_shared<client::Gate>();
  std::atomic<bool> registered{false};
  bool stopped = false;
  Mutex mutex;
  std::vector<std::string> volumes_in_use DIBS_GUARDED_BY(mutex);

  Result<> open() {
    DIBS_CHECK(check_options(options));
    DIBS_CHECK(make_folders(options, files));
    RuntimeOptions how;
    how.kind = options.runtime;
    how.root = cat(options.root, "/containers");
    how.cdi_directories = cdi_folders();
    facts.root = options.root;
    facts.places = node_places(options.root, log_root());
    how.host_path = [this](const std::string& path) { return node_path(facts, path); };
    how.cdi_newest = options.cdi_newest;
    how.images = options.images;
    DIBS_TRY(how.image_options, image_options(options));
    DIBS_TRY(disk_how, disk_options(options));
    disk_how.log_root = log_root();
    // Ten times too large, it starts anew: rotation comes every ten seconds only.
    how.log_bound = std::min<std::int64_t>(disk_how.logs.max_size, 1LL << 50) * 10;
    how.network = options.network;
    how.own_cni_plugins = options.own_cni_plugins;
    // Where a driver of this node listens to them.
    how.cni_environment = {cat("SPIDERPOOL_SOCKET=", options.root, "/spiderpool.sock")};
    how.sim_addresses = shared.sim_addresses;
    DIBS_TRY(picked, pick_runtime(how, runtime));
    const bool simulated = picked.simulated;

    node_options.machine = read_machine();
    if (!options.node_ip.empty()) node_options.machine.address = options.node_ip;
    node_options.kubelet_version = options.kubelet_version;
    const RuntimeVersion version = picked.runtime->version();
    node_options.runtime_version = cat(version.name, "://", version.version);
    node_options.addresses = {node_options.machine.address};
    node_options.agent = options.agent;
    node_options.labels = options.labels;
    node_options.capacity = options.capacity;
    node_options.max_pods = options.max_pods;
    DIBS_TRY(node_options.declared_features,
             declared_features(options.release, options.feature_gates));
    node_options.watch = shared.pods == nullptr;
    if (options.disk.isolation) {
      node_options.machine.disk_bytes = static_cast<std::int64_t>(room_of(options.root).capacity);
      node_options.disk_reserve = disk_reserve(disk_how, node_options.machine.disk_bytes);
    }
    facts.name = options.name;
    facts.addresses = node_options.addresses;
    facts.cluster_dns = options.cluster_dns;
    facts.cluster_domain = options.cluster_domain;
    facts.network_namespaces = options.network_namespaces;
    facts.simulated = simulated;
    DIBS_TRY(facts.sysctls, SysctlRules::make(options.allowed_unsafe_sysctls,
                                              node_options.machine.kernel_version));
    fill_amounts(facts, node_options);

    client::EventRecorderOptions events;
    events.controller = "kubelet";
    events.core = true;
    events.host = options.name;
    recorder = std::make_unique<client::EventRecorder>(client, runtime, std::move(events));

    if (!simulated) {
      storage = std::make_unique<CsiDrivers>(CsiDriversOptions{options.name, csi_paths(), {}},
                                             client, runtime);
    }
    NodeDevicesOptions device_options;
    if (storage) device_options.handlers["CSIPlugin"] = storage.get();
    device_options.node_name = options.name;
    device_options.root = options.root;
    device_options.host_path = [this](const std::string& path) { return node_path(facts, path); };
    device_options.release = options.release;
    device_options.feature_gates = options.feature_gates;
    device_options.metrics = options.metrics;
    device_options.active_pods = [this] { return active_pods(); };
    device_options.watching = options.drivers_may_start;
    device_options.network = options.drivers;
    device_options.pod_resources = options.drivers == nullptr;
    DIBS_TRY(devices, NodeDevices::open(std::move(device_options), client, runtime, files));

    PodObjectsOptions object_options;
    object_options.watch = !simulated;
    objects = make_pod_objects(client, runtime, object_options);
    volumes = std::make_unique<Volumes>(client, runtime, *objects, facts, surroundings());
    PodWorkersOptions pods;
    pods.concurrency = options.concurrency;
    pods.log_root = log_root();
    pods.node = [this](bool fresh) {
      if (!node) return Value();
      return fresh ? node->read() : node->object();
    };
    pods.disk_pressure = [this] { return disk != nullptr && disk->under_pressure(); };
    pods.services = [this] { return services(); };
    workers = std::make_unique<PodWorkers>(client, runtime, *picked.runtime, devices->claims(),
                                           *volumes, *objects, *recorder, facts, std::move(pods));
    return success();
  }

  CsiPaths csi_paths() const {
    return {[this](const std::string& path) { return node_path(facts, path); },
            [this](const std::string& path) { return kubelet_path(facts, path); }};
  }

  VolumeSurroundings surroundings() {
    VolumeSurroundings out;
    out.drivers = storage.get();
    out.node = [this] { return node ? node->object() : Value(); };
    out.in_use = [this](std::vector<std::string> names) {
      if (node) node->set_volumes_in_use(names);
      const MutexLock lock(mutex);
      volumes_in_use = std::move(names);
    };
    out.event = [this](const Value& object, bool warning, std::string reason, std::string note) {
      PodEvents events(*recorder);
      if (warning) {
        events.warning(object, "", std::move(reason), std::move(note));
      } else {
        events.normal(object, "", std::move(reason), std::move(note));
      }
    };
    return out;
  }

  /// Those of the machine, then the node's own, which count more.
  std::vector<std::string> cdi_folders() const {
    std::vector<std::string> out = options.cdi_directories;
    if (out.empty()) out = {"/etc/cdi", "/var/run/cdi"};
    for (auto& folder : own_cdi_folders(options.root)) {
      if (std::find(out.begin(), out.end(), folder) == out.end()) out.push_back(std::move(folder));
    }
    return out;
  }

  std::string log_root() const {
    return options.log_root.empty() ? cat(options.root, "/logs") : options.log_root;
  }

  std::vector<Value> services() const {
    if (shared.services != nullptr) return shared.services->list();
    return own_services ? own_services->list() : std::vector<Value>();
  }

  std::optional<std::vector<Value>> active_pods() const {
    if (!workers || !workers->listed()) return std::nullopt;
    return workers->unended();
  }

  Result<> start() {
    if (shared.services == nullptr) {
      client::InformerOptions how;
      how.gvr = kServices;
      own_services = std::make_unique<client::Informer>(client, runtime, std::move(how));
      own_services->start();
    }
    if (options.port >= 0) DIBS_CHECK(start_server());
    node_options.kubelet_port = server ? server->port() : 0;
    node = std::make_unique<NodeObject>(client, runtime, *recorder, facts, node_options);
    devices->on_driver_change([this](const std::string&) { workers->wake_all(); });
    devices->on_amounts_change([this] { node->set_devices(devices->amounts()); });
    if (storage) storage->on_change = [this](const std::string&) { workers->wake_all(); };
    DIBS_CHECK(devices->start());
    // Of plugins that have not come back yet there is nothing, whatever was told before.
    node->set_devices(devices->amounts());
    if (storage) {
      const MutexLock lock(mutex);
      node->set_volumes_in_use(volumes_in_use);
    }
    node->start([this](const Value&) {
      registered = true;
      if (storage) runtime.executor.post([this, held = gate] { make_csi_node(*held); });
    });
    look_at_runtime();
    if (!facts.simulated) {
      disk = std::make_unique<NodeDisk>(runtime, *picked.runtime, *workers, *node, *recorder, facts,
                                        disk_how);
      disk->start();
    }
    std::unique_ptr<PodSource> source = shared.pods != nullptr
                                            ? shared.pods->of_node(options.name)
                                            : watch_own_pods(client, runtime, options.name);
    return workers->start(std::move(source));
  }

  /// So that it is there before the first driver: who counts volumes looks for it.
  void make_csi_node(client::Gate& held) {
    client::GateEntry inside(held);
    if (!inside) return;
    if (auto made = ensure_csi_node(client, options.name); !made) {
      log::warn("the CSINode comes with the first driver",
                {{"node", options.name}, {"error", made.error()}});
    }
  }

  /// Whether it can run pods, and which images it has: now and from time to time.
  void look_at_runtime() {
    client::GateEntry inside(*gate);
    if (!inside) return;
    node->set_ready(picked.runtime->ready());
    if (auto images = picked.runtime->list_images()) node->set_images(std::move(images).value());
    // A simulated runtime does not change.
    if (facts.simulated) return;
    runtime.timers.after(kLookAtRuntime, [this, held = gate] {
      // `this` is there as long as the gate is open.
      if (!held->closed()) look_at_runtime();
    });
  }

  Result<> start_server() {
    NodeServerOptions how;
    how.host = options.host.empty() ? node_options.machine.address : options.host;
    how.port = static_cast<std::uint16_t>(options.port);
    how.tls = options.tls;
    how.node_name = options.name;
    how.addresses = node_options.addresses;
    how.pod = [this](const std::string& name_space,
                     const std::string& name) -> std::optional<Value> {
      Value pod = workers->find(name_space, name);
      if (pod.is_null()) return std::nullopt;
      return pod;
    };
    how.pods = [this] { return workers->pods(); };
    access = std::make_unique<NodeAccess>(client, runtime, options.name);
    how.authenticate = [this](const net::Request& request) {
      return access->authenticate(request);
    };
    how.authorize = [this](const Caller& caller, const std::string& verb,
                           const std::string& subresource) {
      return access->authorize(caller, verb, subresource);
    };
    how.probe_metrics = [this] { return workers->probe_metrics(); };
    if (!facts.simulated) {
      disk_usage = std::make_unique<StorageCache>(runtime, *picked.runtime, facts, log_root());
      how.disk = [this]() -> std::optional<FileSystemUsage> {
        const FileSystemRoom room = room_of(options.root);
        return FileSystemUsage{room.capacity, room.available, room.inodes, room.inodes_free};
      };
      how.storage = [this](const Value& pod) -> std::optional<PodStorage> {
        const PodUsage usage = disk_usage->of(pod);
        PodStorage out;
        out.total = usage.total();
        for (const auto& one : usage.containers) {
          out.containers.push_back({one.name, one.written, one.logs});
        }
        return out;
      };
    }
    if (options.metrics != nullptr) {
      how.metrics = [this] { return options.metrics->expose() + volumes->certificate_metrics(); };
    }
    DIBS_TRY(server, NodeServer::start(runtime, *picked.runtime, std::move(how)));
    return success();
  }

  void stop() {
    if (stopped) return;
    stopped = true;
    gate->close();
    server.reset();
    if (disk) disk->stop();
    devices->cancel_calls();
    workers->stop();
    devices->stop();
    if (storage) storage->stop();
    if (node) node->stop();
    if (own_services) own_services->stop();
  }
};

Agent::Agent(std::unique_ptr<State> state) : state_(std::move(state)) {}
Agent::~Agent() { stop(); }

Result<std::unique_ptr<Agent>> Agent::open(AgentOptions options, client::Client& client,
                                           runtime::Runtime& runtime, runtime::Files& files,
                                           Shared shared) {
  auto state = std::make_unique<State>(std::move(options), client, runtime, files, shared);
  DIBS_CHECK(state->open());
  return std::unique_ptr<Agent>(new Agent(std::move(state)));
}

Result<> Agent::start() { return state_->start(); }
void Agent::stop() { state_->stop(); }
const std::string& Agent::runtime_explanation() const { return state_->picked.explanation; }
int Agent::port() const { return state_->server ? state_->server->port() : 0; }
ContainerRuntime& Agent::containers() { return *state_->picked.runtime; }
bool Agent::is_ready() const { return state_->registered && state_->workers->listed(); }

}  // namespace dibs::node
