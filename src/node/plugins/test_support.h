#pragma once
// For tests of this library: a node with its drivers in one thread under virtual time. The drivers
// meet the node in a MemoryNetwork, the API server is client::FakeApi.

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "client/transport.h"
#include "json/test_text.h"
#include "node/plugins/node_devices.h"
#include "proto/dra_v1.pb.h"
#include "proto/plugin_registration.pb.h"
#include "rpc/memory_network.h"
#include "runtime/files.h"
#include "runtime/sim_runtime.h"

namespace dibs::node::test {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;

inline constexpr const char* kRoot = "/node";

using json::test::from_text;

template <typename Message>
Message decode(std::string_view bytes) {
  Message message;
  EXPECT_TRUE(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  return message;
}

inline rpc::Reply answer(const google::protobuf::MessageLite& message) {
  return {{}, message.SerializeAsString()};
}

struct DriverOptions {
  std::string name = "gpu.example.com";
  std::string instance = {};  // part of both sockets' names
  std::vector<std::string> versions = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};
  std::string type = "DRAPlugin";
  std::string service = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin";
  std::string endpoint = {};  // "": its own service socket
};

/// Prepares one device per claim, dev-<claim name>, and notes what it was asked.
class FakeDriver {
 public:
  using Serve = std::function<std::unique_ptr<rpc::Server>(const std::string&, rpc::Methods)>;

  FakeDriver(Serve serve, std::string root, DriverOptions options = {})
      : serve_(std::move(serve)), root_(std::move(root)), options_(std::move(options)) {}
  FakeDriver(rpc::MemoryNetwork& network, DriverOptions options = {})
      : FakeDriver([&network](const std::string& path,
                              rpc::Methods methods) { return network.serve(path, methods); },
                   kRoot, std::move(options)) {}

  std::string registration_path() const {
    return cat(root_, "/plugins_registry/", options_.name, options_.instance, "-reg.sock");
  }
  std::string service_path() const {
    return cat(root_, "/plugins/", options_.name, "/dra", options_.instance, ".sock");
  }

  void start() {
    start_service();
    register_it();
  }
  void start_service() { service_ = serve_(service_path(), service_methods()); }
  void register_it() { registration_ = serve_(registration_path(), registration_methods()); }
  void stop() {
    registration_.reset();
    service_.reset();
  }
  /// As kill -9 does: nobody answers, the registration socket stays.
  void kill_service() { service_.reset(); }

  /// "registered", "refused: …", "prepare a b", "unprepare a": claims by name.
  std::vector<std::string> log;
  std::set<std::string> prepared;  // uids
  /// In place of the usual answers.
  std::function<rpc::Reply(std::string_view)> on_prepare = {};
  std::function<rpc::Reply(std::string_view)> on_unprepare = {};
  std::function<rpc::Reply()> on_info = {};
  /// Called inside each call, after it did its work.
  std::function<void()> during = {};
  bool refuse_notification = false;
  rpc::Methods more = {};

 private:
  rpc::Methods registration_methods() {
    rpc::Methods methods;
    methods.unary["/pluginregistration.Registration/GetInfo"] = [this](std::string_view) {
      if (on_info) return on_info();
      pluginregistration::PluginInfo info;
      info.set_type(options_.type);
      info.set_name(options_.name);
      info.set_endpoint(options_.endpoint.empty() ? service_path() : options_.endpoint);
      for (const auto& version : options_.versions) info.add_supported_versions(version);
      return answer(info);
    };
    methods.unary["/pluginregistration.Registration/NotifyRegistrationStatus"] =
        [this](std::string_view bytes) -> rpc::Reply {
      const auto status = decode<pluginregistration::RegistrationStatus>(bytes);
      log.push_back(status.plugin_registered() ? "registered" : cat("refused: ", status.error()));
      if (refuse_notification) return {{rpc::Code::unknown, "no"}, {}};
      return {};
    };
    return methods;
  }

  rpc::Methods service_methods() {
    rpc::Methods methods = more;
    methods.unary[cat(options_.service, "/NodePrepareResources")] = [this](std::string_view bytes) {
      return prepare(bytes);
    };
    methods.unary[cat(options_.service, "/NodeUnprepareResources")] =
        [this](std::string_view bytes) { return unprepare(bytes); };
    return methods;
  }

  rpc::Reply prepare(std::string_view bytes) {
    const auto request = decode<dra::NodePrepareResourcesRequest>(bytes);
    std::string line = "prepare";
    dra::NodePrepareResourcesResponse response;
    for (const auto& claim : request.claims()) {
      append(line, " ", claim.name());
      if (!on_prepare) prepared.insert(claim.uid());
      auto* device = (*response.mutable_claims())[claim.uid()].add_devices();
      device->set_pool_name("pool");
      device->set_device_name(cat("dev-", claim.name()));
      device->add_cdi_device_ids(cat("example.com/gpu=", claim.name()));
      device->add_request_names("gpu");
    }
    log.push_back(line);
    if (during) during();
    return on_prepare ? on_prepare(bytes) : answer(response);
  }

  rpc::Reply unprepare(std::string_view bytes) {
    const auto request = decode<dra::NodeUnprepareResourcesRequest>(bytes);
    std::string line = "unprepare";
    dra::NodeUnprepareResourcesResponse response;
    for (const auto& claim : request.claims()) {
      append(line, " ", claim.name());
      if (!on_unprepare) prepared.erase(claim.uid());
      (*response.mutable_claims())[claim.uid()];
    }
    log.push_back(line);
    if (during) during();
    return on_unprepare ? on_unprepare(bytes) : answer(response);
  }

  const Serve serve_;
  const std::string root_;
  const DriverOptions options_;
  std::unique_ptr<rpc::Server> service_;
  std::unique_ptr<rpc::Server> registration_;
};

/// Fails every write after the first `left`, as if the process had died there.
class DyingFiles : public runtime::Files {
 public:
  explicit DyingFiles(runtime::Files& files) : files_(files) {}

  int left = 1'000'000;
  int writes = 0;

  Result<std::string> read(const std::string& path) override { return files_.read(path); }
  Result<> write(const std::string& path, std::string_view bytes, unsigned mode) override {
    if (left <= 0) return Error::internal("dead");
    --left;
    ++writes;
    return files_.write(path, bytes, mode);
  }
  Result<> remove(const std::string& path) override { return files_.remove(path); }
  bool exists(const std::string& path) override { return files_.exists(path); }
  Result<> make_dirs(const std::string& path, unsigned mode) override {
    return files_.make_dirs(path, mode);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return files_.list(path);
  }
  Result<std::unique_ptr<runtime::FileLock>> lock(const std::string& path) override {
    return files_.lock(path);
  }

 private:
  runtime::Files& files_;
};

class TestNode {
 public:
  explicit TestNode(std::string release = "", std::string_view served_version = "v1")
      : disk(runtime::make_memory_files()), files(*disk), release_(std::move(release)) {
    client::InProcessOptions in_process;
    in_process.pump = [this] { return sim.run_until_idle() > 0; };
    transport_ = client::make_in_process_transport(api.handler(), sim.runtime(), in_process);
    client_ = std::make_unique<client::Client>(*transport_);
    api.put("/apis/resource.k8s.io",
            from_text(cat("{'versions': [{'version': '", served_version, "'}]}")));
    start();
  }
  ~TestNode() { stop(); }

  Result<> try_start() {
    NodeDevicesOptions options;
    options.node_name = "node-0";
    options.root = kRoot;
    options.release = release_;
    options.feature_gates = gates;
    options.active_pods = [this] { return active(); };
    options.metrics = &metrics;
    options.network = &network;
    DIBS_TRY(devices, NodeDevices::open(std::move(options), *client_, sim.runtime(), files));
    devices->on_driver_change([this](const std::string& driver) { changes.push_back(driver); });
    DIBS_CHECK(devices->start());
    sim.run_until_idle();
    return success();
  }
  void start() {
    auto started = try_start();
    ASSERT_TRUE(started.ok()) << started.error().message();
  }
  void stop() {
    if (devices) devices->stop();
    devices.reset();
    sim.run_until_idle();
  }
  void restart() {
    stop();
    start();
  }
  void settle(Duration time = std::chrono::seconds(1)) { sim.advance(time); }

  PodClaims& claims() { return devices->claims(); }
  /// "" when it succeeded.
  std::string prepare(const json::Value& pod) { return text(claims().prepare(pod)); }
  std::string unprepare(const json::Value& pod) { return text(claims().unprepare(pod)); }
  std::vector<std::string> ids(const json::Value& pod, std::string_view container = "c") {
    auto found = claims().devices_of(pod, container);
    if (!found) return {found.error().message()};
    return std::move(found->cdi_ids);
  }
  static std::string text(const Result<>& result) {
    return result ? std::string() : result.error().message();
  }

  /// A claim with an allocation of one device of `driver`, reserved for the pods with these uids.
  void put_claim(const std::string& name, const std::vector<std::string>& pod_uids,
                 const std::vector<std::string>& drivers = {"gpu.example.com"}) {
    json::Value reserved = json::Value::array();
    for (const auto& uid : pod_uids) {
      reserved.push(json::Value::object({{"resource", "pods"}, {"name", uid}, {"uid", uid}}));
    }
    json::Value results = json::Value::array();
    for (const auto& driver : drivers) {
      results.push(json::Value::object(
          {{"request", "gpu"}, {"driver", driver}, {"pool", "pool"}, {"device", "d"}}));
    }
    put_object(name,
               json::Value::object(
                   {{"allocation", json::Value::object(
                                       {{"devices", json::Value::object({{"results", results}})}})},
                    {"reservedFor", reserved}}));
  }
  void put_object(const std::string& name, const json::Value& status) {
    json::Value claim = from_text(
        "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {}, "
        "'spec': {}}");
    claim.mut("metadata").set("name", name);
    claim.mut("metadata").set("namespace", "default");
    claim.mut("metadata").set("uid", cat("uid-", name));
    claim.set("status", status);
    api.put(claim_path(name), claim);
  }
  static std::string claim_path(const std::string& name, const std::string& version = "v1") {
    return cat("/apis/resource.k8s.io/", version, "/namespaces/default/resourceclaims/", name);
  }

  /// A pod with these claims, all used by its container "c". Its uid is its name.
  static json::Value pod(const std::string& name, const std::vector<std::string>& claims) {
    json::Value listed = json::Value::array();
    json::Value used = json::Value::array();
    for (const auto& claim : claims) {
      listed.push(json::Value::object({{"name", claim}, {"resourceClaimName", claim}}));
      used.push(json::Value::object({{"name", claim}}));
    }
    json::Value pod = from_text("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {}, 'spec': {}}");
    pod.mut("metadata").set("name", name);
    pod.mut("metadata").set("namespace", "default");
    pod.mut("metadata").set("uid", name);
    pod.mut("spec").set("resourceClaims", listed);
    pod.mut("spec").set(
        "containers",
        json::Value::array({json::Value::object(
            {{"name", "c"}, {"resources", json::Value::object({{"claims", used}})}})}));
    return pod;
  }

  std::vector<std::string> requests_with(const std::string& part) {
    std::vector<std::string> out;
    for (const auto& request : api.requests()) {
      if (request.find(part) != std::string::npos) out.push_back(request);
    }
    return out;
  }

  runtime::SimRuntime sim;
  client::FakeApi api;
  rpc::MemoryNetwork network;
  metrics::Registry metrics;
  std::unique_ptr<runtime::Files> disk;
  DyingFiles files;
  std::string gates;
  std::vector<json::Value> pods;
  bool pods_known = true;
  std::vector<std::string> changes;
  std::unique_ptr<NodeDevices> devices;

 private:
  std::optional<std::vector<json::Value>> active() {
    if (!pods_known) return std::nullopt;
    return pods;
  }

  const std::string release_;
  std::unique_ptr<client::Transport> transport_;
  std::unique_ptr<client::Client> client_;
};

}  // namespace dibs::node::test
