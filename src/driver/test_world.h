#pragma once
// For tests of drivers: an API server, a node, folders and sockets in one thread, under virtual
// time.
//
//   TestWorld world;
//   auto plugin = Plugin::start(driver, world.environment(), world.options("d.example.com"));
//   world.settle();
//   auto reply = world.prepare(**plugin, {{"default", "claim", "uid"}});

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cluster/test_cluster.h"
#include "driver/plugin.h"
#include "proto/dra_v1.pb.h"
#include "proto/plugin_registration.pb.h"
#include "rpc/memory_network.h"

namespace dibs::driver::test {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;

inline const client::Gvr kSlices = {"resource.k8s.io", "v1", "resourceslices"};
inline const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
inline const client::Gvr kNodes = {"", "v1", "nodes"};

using cluster::test::from_text;

class TestWorld : public cluster::test::TestCluster {
 public:
  explicit TestWorld(cluster::Options options = {}) : TestCluster(std::move(options)) {
    for (const char* folder : {"/node/plugins_registry", "/node/plugins", "/node/cdi"}) {
      EXPECT_TRUE(files->make_dirs(folder).ok());
    }
    create(kNodes, "", "{'metadata': {'name': 'node-0'}}");
  }

  ~TestWorld() { close(); }

  void settle(Duration time = std::chrono::seconds(1)) {
    if (has_agent) register_plugins();
    sim.advance(time);
  }
  /// As a node's agent does it with every socket that it finds.
  void register_plugins() {
    pluginregistration::RegistrationStatus taken;
    taken.set_plugin_registered(true);
    for (const auto& path : network.paths("")) {
      if (path.find("/plugins_registry/") == std::string::npos) continue;
      network.connect(path)->call("/pluginregistration.Registration/NotifyRegistrationStatus",
                                  taken.SerializeAsString(), std::chrono::seconds(1));
    }
  }
  bool has_agent = true;

  Environment environment() { return environment(*files); }
  Environment environment(runtime::Files& given) {
    return {*api, sim.runtime(), given, nullptr,
            [this](const std::string& path,
                   rpc::Methods methods) -> Result<std::unique_ptr<rpc::Server>> {
              return network.serve(path, std::move(methods));
            }};
  }

  static PluginOptions options(const std::string& driver) {
    PluginOptions out;
    out.driver_name = driver;
    out.node_name = "node-0";
    out.registry_dir = "/node/plugins_registry";
    out.data_dir = "/node/plugins/" + driver;
    out.cdi_dir = "/node/cdi";
    return out;
  }

  std::vector<json::Value> slices() { return list(kSlices, ""); }

  /// A claim in namespace default with this allocation ({'devices': {'results': […]}}).
  json::Value make_claim(const std::string& name, const std::string& allocation) {
    json::Value claim = create(kClaims, "default", "{'metadata': {'name': '" + name + R"('},
        'spec': {'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': 'c'}}]}}})");
    claim.mut("status").set("allocation", from_text(allocation));
    return expect(api->update_status(kClaims, "default", claim));
  }

  static ClaimName name_of(const json::Value& claim) {
    return {claim["metadata"]["namespace"].str(), claim["metadata"]["name"].str(),
            claim["metadata"]["uid"].str()};
  }

  dra::NodePrepareResourcesResponse prepare(const Plugin& plugin,
                                            const std::vector<ClaimName>& claims,
                                            const std::string& service = kV1) {
    return call<dra::NodePrepareResourcesRequest, dra::NodePrepareResourcesResponse>(
        plugin, service + "NodePrepareResources", claims);
  }
  dra::NodeUnprepareResourcesResponse unprepare(const Plugin& plugin,
                                                const std::vector<ClaimName>& claims,
                                                const std::string& service = kV1) {
    return call<dra::NodeUnprepareResourcesRequest, dra::NodeUnprepareResourcesResponse>(
        plugin, service + "NodeUnprepareResources", claims);
  }

  static constexpr const char* kV1 = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/";

  /// Of the last prepare() or unprepare().
  rpc::Status status;
  rpc::MemoryNetwork network;

 private:
  template <typename Request, typename Response>
  Response call(const Plugin& plugin, const std::string& method,
                const std::vector<ClaimName>& claims) {
    Request request;
    for (const auto& name : claims) {
      auto* claim = request.add_claims();
      claim->set_namespace_(name.name_space);
      claim->set_name(name.name);
      claim->set_uid(name.uid);
    }
    const auto channel = network.connect(plugin.service_socket());
    const auto reply = channel->call(method, request.SerializeAsString(), std::chrono::seconds(45));
    status = reply.status;
    Response response;
    EXPECT_TRUE(response.ParseFromString(reply.bytes));
    return response;
  }
};

/// Files that die at the n-th change: from then on everything fails, as for a process that is
/// killed. What was written before stays.
class DyingFiles : public runtime::Files {
 public:
  DyingFiles(runtime::Files& files, int changes) : files_(files), left_(changes) {}

  bool died() const { return dead_; }

  Result<std::string> read(const std::string& path) override {
    if (dead_) return killed();
    return files_.read(path);
  }
  Result<> write(const std::string& path, std::string_view bytes, unsigned mode) override {
    if (!alive()) return killed();
    return files_.write(path, bytes, mode);
  }
  Result<> remove(const std::string& path) override {
    if (!alive()) return killed();
    return files_.remove(path);
  }
  bool exists(const std::string& path) override { return files_.exists(path); }
  Result<> make_dirs(const std::string& path, unsigned mode) override {
    return files_.make_dirs(path, mode);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    if (dead_) return killed();
    return files_.list(path);
  }
  Result<std::unique_ptr<runtime::FileLock>> lock(const std::string& path) override {
    return files_.lock(path);
  }

 private:
  static Error killed() { return Error::internal("killed"); }
  bool alive() {
    dead_ = dead_ || left_ == 0;
    --left_;
    return !dead_;
  }

  runtime::Files& files_;
  int left_;
  bool dead_ = false;
};

}  // namespace dibs::driver::test
