// Any bytes as the answers and streams of a driver, as a node's agent meets them: registration,
// prepare and unprepare in every version, health, and what drivers of 1.30 offer. What the agent
// keeps of it reads back, and what it tells the API server is JSON.
#include <google/protobuf/stubs/logging.h>

#include "base/log.h"
#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "client/transport.h"
#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "json/parse.h"
#include "node/plugins/health_monitor.h"
#include "node/plugins/node_devices.h"
#include "node/plugins/resource_models.h"
#include "proto/dra_health.pb.h"
#include "proto/plugin_registration.pb.h"
#include "rpc/memory_network.h"
#include "runtime/sim_runtime.h"

namespace dibs::fuzz {
namespace {

using namespace node;
using json::Value;

constexpr const char* kRoot = "/node";
constexpr const char* kRegistration = "/node/plugins_registry/d-reg.sock";
constexpr const char* kReleases[] = {"", "1.37", "1.34", "1.32", "1.36", "1.30", "1.27", ""};

struct Answers {
  std::string release;
  bool classic = false;   // the claim's model
  int unimplemented = 0;  // so many of the classic versions, newest first
  std::string_view info, prepare, unprepare, health, models;
};

bool is_json(const Value& value) {
  const auto again = json::parse(json::write(value));
  return again.ok() && *again == value;
}

/// An API server with one claim that is allocated by the driver.
class World {
 public:
  World(const std::string& driver, bool classic) {
    client::InProcessOptions in_process;
    in_process.pump = [this] { return sim.run_until_idle() > 0; };
    transport_ = client::make_in_process_transport(api.handler(), sim.runtime(), in_process);
    client = std::make_unique<client::Client>(*transport_);
    api.put("/apis/resource.k8s.io",
            *json::parse(R"({"versions": [{"version": "v1"}, {"version": "v1alpha2"}]})"));
    api.put("/api/v1/nodes/node-0",
            *json::parse(R"({"metadata": {"name": "node-0", "uid": "u"}})"));
    Value claim = *json::parse(
        R"({"kind": "ResourceClaim", "metadata": {"name": "a", "namespace": "default",
            "uid": "uid-a"}, "spec": {}, "status": {"allocation": {},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}]}})");
    Value& allocation = claim.mut("status").mut("allocation");
    const Value part = Value::object({{"driver", driver},
                                      {"driverName", driver},
                                      {"request", "r"},
                                      {"pool", "pool"},
                                      {"device", "d"},
                                      {"data", "handle"}});
    if (classic) {
      allocation.set("resourceHandles", Value::array({part}));
    } else {
      allocation.set("devices", Value::object({{"results", Value::array({part})}}));
    }
    for (const char* version : {"v1", "v1alpha2", "v1alpha1"}) {
      api.put(cat("/apis/resource.k8s.io/", version, "/namespaces/default/resourceclaims/a"),
              claim);
    }
  }

  runtime::SimRuntime sim;
  client::FakeApi api;
  std::unique_ptr<client::Client> client;

 private:
  std::unique_ptr<client::Transport> transport_;
};

const Value& pod() {
  static const Value pod = *json::parse(
      R"({"metadata": {"name": "p", "namespace": "default", "uid": "p"},
          "spec": {"resourceClaims": [{"name": "a", "resourceClaimName": "a"}],
                   "containers": [{"name": "c", "resources": {"claims": [{"name": "a"}]}}]}})");
  return pod;
}

rpc::Methods methods_of(const Answers& answers) {
  rpc::Methods methods;
  const auto say = [&](const std::string& path, std::string_view bytes) {
    methods.unary[path] = [bytes](std::string_view) { return rpc::Reply{{}, std::string(bytes)}; };
  };
  say("/pluginregistration.Registration/GetInfo", answers.info);
  say("/pluginregistration.Registration/NotifyRegistrationStatus", "");
  for (const char* service : {"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/",
                              "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/"}) {
    say(cat(service, "NodePrepareResources"), answers.prepare);
    say(cat(service, "NodeUnprepareResources"), answers.unprepare);
  }
  if (answers.unimplemented < 1) {
    say("/v1alpha3.Node/NodePrepareResources", answers.prepare);
    say("/v1alpha3.Node/NodeUnprepareResources", answers.unprepare);
  }
  if (answers.unimplemented < 2) {
    say("/v1alpha2.Node/NodePrepareResource", answers.prepare);
    say("/v1alpha2.Node/NodeUnprepareResource", answers.unprepare);
  }
  say("/v1alpha1.Node/NodePrepareResource", answers.prepare);
  say("/v1alpha1.Node/NodeUnprepareResource", answers.unprepare);
  return methods;
}

/// Registers, prepares, restarts, unprepares.
void run_claims(const Answers& answers, const std::string& driver, const std::string& endpoint) {
  World world(driver, answers.classic);
  rpc::MemoryNetwork network;
  const auto files = runtime::make_memory_files();
  const auto registration = network.serve(kRegistration, methods_of(answers));
  const auto service = endpoint.empty() || endpoint == kRegistration
                           ? nullptr
                           : network.serve(endpoint, methods_of(answers));
  const auto start = [&] {
    NodeDevicesOptions options;
    options.node_name = "node-0";
    options.root = kRoot;
    options.release = answers.release;
    options.active_pods = [] { return std::optional(std::vector<Value>{pod()}); };
    options.network = &network;
    auto devices =
        NodeDevices::open(std::move(options), *world.client, world.sim.runtime(), *files);
    require(devices.ok(), devices.ok() ? "" : devices.error().message().c_str());
    require((*devices)->start().ok(), "an agent starts");
    world.sim.advance(std::chrono::seconds(1));
    return std::move(devices).value();
  };
  const auto file = [&] { return *files->read(cat(kRoot, "/dra_manager_state")); };
  const auto entries = [&] {
    const auto claims = decode_checkpoint(file());
    require(claims.ok(), "the checkpoint reads back");
    std::vector<const ClaimInfo*> pointers;
    for (const auto& claim : *claims) pointers.push_back(&claim);
    require(pointers.empty() || encode_checkpoint(pointers) == file(), "and is written the same");
    return claims->size();
  };

  auto devices = start();
  const bool prepared = devices->claims().prepare(pod()).ok();
  if (prepared) {
    // Up to 1.30 an annotation names them, which not every text can be.
    require(devices->claims().devices_of(pod(), "c").ok() || answers.release == "1.30" ||
                answers.release == "1.27",
            "a prepared pod has its devices");
    require(devices->claims().holds("p") && entries() == 1, "a prepared claim is noted");
  }
  (void)entries();
  devices->stop();
  devices = start();
  require(!prepared || devices->claims().holds("p"), "also after a restart");
  require(is_json(devices->claims().health_of(pod(), "c")), "health is JSON");
  if (devices->claims().unprepare(pod()).ok()) {
    require(!devices->claims().holds("p") && entries() == 0, "an unprepared claim is forgotten");
  }
  devices->stop();
  world.sim.run_until_idle();
}

/// Says one message on every stream.
class StreamChannel : public rpc::Channel {
 public:
  explicit StreamChannel(std::string_view message) : message_(message) {}
  rpc::Reply call(const std::string&, std::string_view, Duration) override { return {}; }
  std::unique_ptr<rpc::Stream> open_stream(const std::string&, std::string_view,
                                           rpc::StreamHandlers handlers) override {
    handlers.message(message_);
    return std::make_unique<rpc::Stream>();
  }
  void watch_connection(std::function<void(bool)> changed) override { changed(true); }

 private:
  std::string_view message_;
};

std::shared_ptr<DraPlugin> streaming(World& world, PluginMetrics& metrics, std::string_view said) {
  Negotiated spoken;
  spoken.health = HealthApi::v1;
  spoken.semver = "1.0.0";
  return std::make_shared<DraPlugin>(PluginInfo{"DRAPlugin", "d", "/d.sock", {}}, spoken,
                                     std::make_unique<StreamChannel>(said),
                                     world.sim.runtime().clock, metrics);
}

void run_health(std::string_view said) {
  World world("d", false);
  const auto files = runtime::make_memory_files();
  PluginMetrics metrics(nullptr);
  DeviceHealth health("health", *files, world.sim.runtime().clock);
  std::vector<DeviceName> seen;
  HealthMonitor monitor(world.sim.runtime(), health,
                        [&](const std::string&, const std::vector<DeviceName>& devices) {
                          seen.insert(seen.end(), devices.begin(), devices.end());
                        });
  const auto plugin = streaming(world, metrics, said);
  monitor.add(plugin);
  world.sim.run_until_idle();

  ClaimInfo claim;
  for (const auto& name : seen) {
    claim.drivers["d"].devices.push_back({"d", name.pool, name.device, "", {}, {}});
  }
  const Value shown = health.describe(claim, {}, true);
  require(is_json(shown), "what a pod's status says is JSON");
  const DeviceHealth again("health", *files, world.sim.runtime().clock);
  require(seen.empty() || again.describe(claim, {}, true) == shown, "health reads back");
  world.sim.advance(std::chrono::minutes(1));
  monitor.stop();
}

void run_models(std::string_view said) {
  World world("d", true);
  PluginMetrics metrics(nullptr);
  ResourceModels models("node-0", *world.client, world.sim.runtime(),
                        [](const std::string&) { return true; });
  models.add(streaming(world, metrics, said));
  world.sim.run_until_idle();
  models.stop();
  world.sim.run_until_idle();
}

}  // namespace

int fuzz_plugin(const std::uint8_t* data, std::size_t size) {
  log::set_level(log::Level::off);
  // It tells of every text that is none.
  google::protobuf::SetLogHandler(nullptr);
  Texts texts(data, size);
  const unsigned choice = texts.byte();
  Answers answers;
  answers.release = kReleases[choice % 8];
  answers.classic = (choice & 8) != 0;
  answers.unimplemented = static_cast<int>(choice >> 4) % 3;
  answers.info = texts.next();
  answers.prepare = texts.next();
  answers.unprepare = texts.next();
  answers.health = texts.next();
  answers.models = texts.next();
  if (!answers.health.empty()) run_health(answers.health);
  if (!answers.models.empty()) run_models(answers.models);
  pluginregistration::PluginInfo info;
  // By its own words, so that what follows the registration is met as well.
  if (!info.ParseFromArray(answers.info.data(), static_cast<int>(answers.info.size())))
    info.Clear();
  run_claims(answers, info.name(), info.endpoint());
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_plugin)
