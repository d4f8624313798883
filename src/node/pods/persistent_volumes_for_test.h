#pragma once
// Volumes of a node with claims and PersistentVolumes of a made-up API, a driver of CSI that is
// made up as well, and folders that are real.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "client/testing/fake_api.h"
#include "client/transport.h"
#include "node/plugins/fake_csi_driver.h"
#include "node/pods/node_paths.h"
#include "node/pods/volume_test_support.h"
#include "node/pods/volumes.h"
#include "runtime/sim_runtime.h"

namespace dibs::node {

inline constexpr const char* kNode = "/api/v1/nodes/node-0";

struct PersistentVolumesTest : testing::Test {
  runtime::SimRuntime sim;
  client::FakeApi api;
  rpc::MemoryNetwork network;
  test::TemporaryFolder root;
  test::TemporaryFolder data;
  NodeFacts facts;
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<PodObjects> objects;
  std::unique_ptr<test::FakeCsiDriver> driver;
  std::unique_ptr<CsiDrivers> drivers;
  std::unique_ptr<Volumes> volumes;
  bool report_in_use = true;
  std::vector<std::string> events;  // "Pod Reason note", a warning with an exclamation mark

  PersistentVolumesTest() {
    facts.root = root.path();
    facts.name = "node-0";
    put(kNode,
        "{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'node-0', 'uid': 'n', "
        "'labels': {'zone': 'a'}}, 'status': {}}");
    transport = client::make_in_process_transport(
        [this, inner = api.handler()](calls::Request request,
                                      std::unique_ptr<calls::Exchange> exchange) {
          if (!request.target.ends_with("/token")) {
            return inner(std::move(request), std::move(exchange));
          }
          const std::string ends = format_rfc3339(sim.now() + std::chrono::minutes(10));
          exchange->respond({201,
                             {},
                             cat("{\"status\": {\"token\": \"secret\", \"expirationTimestamp\": \"",
                                 ends, "\"}}")});
        },
        sim.runtime());
    client = std::make_unique<client::Client>(*transport);
    objects = make_pod_objects(*client, sim.runtime(), {});
    driver = std::make_unique<test::FakeCsiDriver>(network, root.path(), data.path() + "/driver");
    drivers = std::make_unique<CsiDrivers>(
        CsiDriversOptions{"node-0", test::FakeCsiDriver::paths(root.path()),
                          [this](const std::string& path) { return network.connect(path); }},
        *client, sim.runtime());
    start();
  }
  ~PersistentVolumesTest() override {
    volumes.reset();
    objects.reset();
    drivers.reset();
    sim.run_until_idle();
  }

  /// As a new agent: it knows what is on the disk.
  void start() {
    VolumeSurroundings around;
    around.drivers = drivers.get();
    around.node = [this] { return *api.get(kNode); };
    around.in_use = [this](const std::vector<std::string>& names) {
      if (!report_in_use) return;
      json::Value node = *api.get(kNode);
      json::Value list = json::Value::array();
      for (const auto& name : names) list.push(name);
      node.mut("status").set("volumesInUse", list);
      api.put(kNode, node);
    };
    around.event = [this](const json::Value& object, bool warning, const std::string& reason,
                          const std::string& note) {
      const std::string kind = object["kind"].str();
      events.push_back(cat(kind.empty() ? "Pod" : kind, warning ? "! " : " ", reason, ' ', note));
    };
    volumes = std::make_unique<Volumes>(*client, sim.runtime(), *objects, facts, around);
  }
  void register_driver(const std::string& name = "fake.csi") {
    const auto added = drivers->add({"CSIPlugin", name, test::FakeCsiDriver::kEndpoint, {"1.0.0"}});
    ASSERT_TRUE(added.ok()) << added.error().message();
  }
  void put_settings(const std::string& spec) {
    put("/apis/storage.k8s.io/v1/csidrivers/fake.csi",
        "{'apiVersion': 'storage.k8s.io/v1', 'kind': 'CSIDriver', 'metadata': {'name': "
        "'fake.csi'}, 'spec': " +
            spec + "}");
  }
  void put(const std::string& path, const std::string& text) {
    api.put(path, test::from_text(text));
  }
  void put_claim(const std::string& name, const std::string& volume,
                 const std::string& phase = "Bound", const std::string& metadata = "") {
    put("/api/v1/namespaces/ns/persistentvolumeclaims/" + name,
        "{'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': '" + name +
            "', 'namespace': 'ns', 'uid': 'uid-" + name + "'" + metadata +
            "}, 'spec': {'volumeName': '" + volume + "'}, 'status': {'phase': '" + phase + "'}}");
  }
  void put_volume(const std::string& name, const std::string& claim, const std::string& spec) {
    put("/api/v1/persistentvolumes/" + name,
        "{'apiVersion': 'v1', 'kind': 'PersistentVolume', 'metadata': {'name': '" + name +
            "'}, 'spec': {'claimRef': {'name': '" + claim + "', 'uid': 'uid-" + claim + "'}, " +
            spec + "}}");
  }
  /// A volume of the fake driver, with its claim.
  void put_csi(const std::string& more = "'accessModes': ['ReadWriteOnce']") {
    put_claim("data", "pv");
    put_volume("pv", "data",
               "'csi': {'driver': 'fake.csi', 'volumeHandle': 'h1', 'fsType': 'ext4', "
               "'volumeAttributes': {'a': 'b'}}, " +
                   more);
  }
  /// One of a driver that can enlarge it: `size` of the volume, and what its claim's status says.
  void put_sizes(const std::string& size, const std::string& status) {
    json::Value volume = *api.get("/api/v1/persistentvolumes/pv");
    volume.mut("spec").set("capacity", json::Value::object({{"storage", size}}));
    api.put("/api/v1/persistentvolumes/pv", volume);
    json::Value claim = *api.get(kClaim);
    claim.set("status", test::from_text(status));
    claim.mut("status").set("phase", "Bound");
    api.put(kClaim, claim);
  }
  void put_growing() {
    put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
    put_csi();
    put_sizes("1Gi", "{'capacity': {'storage': '1Gi'}}");
    driver->abilities.push_back(test::FakeCsiDriver::Rpc::EXPAND_VOLUME);
    register_driver();
  }
  /// As a resizer leaves it that has done its part.
  void grow_to(const std::string& size, const std::string& before = "1Gi") {
    put_sizes(size, "{'capacity': {'storage': '" + before +
                        "'}, 'allocatedResources': {'storage': '" + size +
                        "'}, 'allocatedResourceStatuses': {'storage': 'NodeResizePending'}, "
                        "'conditions': [{'type': 'FileSystemResizePending', 'status': 'True'}, "
                        "{'type': 'Other', 'status': 'True'}]}");
  }
  json::Value claim_status() const { return (*api.get(kClaim))["status"]; }
  /// Another look at the pod, some time later.
  std::vector<std::string> look(const json::Value& pod) {
    sim.advance(std::chrono::seconds(11));
    auto out = set_up(pod);
    sim.run_until_idle();
    return out;
  }
  static constexpr const char* kClaim = "/api/v1/namespaces/ns/persistentvolumeclaims/data";
  static std::string expanded(const std::string& uid, const char* bytes) {
    return cat("expand h1 ", target(uid), ' ', bytes);
  }
  static json::Value pod_of(const std::string& uid, const std::string& volume,
                            const std::string& more = "",
                            const std::string& uses =
                                "'volumeMounts': [{'name': 'v', 'mountPath': "
                                "'/v'}]") {
    return test::from_text("{'metadata': {'name': 'p-" + uid + "', 'namespace': 'ns', 'uid': '" +
                           uid + "'}, 'spec': {" + more + "'volumes': [{'name': 'v', " + volume +
                           "}], 'containers': [{'name': 'c', " + uses + "}]}}");
  }
  static json::Value claimer(const std::string& uid, const std::string& more = "") {
    return pod_of(uid, "'persistentVolumeClaim': {'claimName': 'data'}", more);
  }
  std::vector<std::string> set_up(const json::Value& pod) {
    std::vector<std::string> out;
    for (const auto& failure : volumes->set_up(pod)) {
      out.push_back(failure.waits ? "waits: " + failure.message : failure.message);
    }
    return out;
  }
  std::string error(const json::Value& pod) {
    const auto all = set_up(pod);
    return all.size() == 1 ? all[0] : cat(all.size(), " failures");
  }
  std::string tear_down(const std::string& uid) {
    const auto gone = volumes->tear_down(uid);
    return gone ? "" : gone.error().message();
  }
  std::vector<Mount> mounts(const json::Value& pod) {
    auto made = volumes->mounts(pod, pod["spec"]["containers"][0], {});
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made ? *made : std::vector<Mount>();
  }
  static bool can_mount() { return ::geteuid() == 0; }
  std::string staging() const {
    return cat("/var/lib/kubelet/plugins/kubernetes.io/csi/fake.csi/", sha256_hex("h1"),
               "/globalmount");
  }
  static std::string target(const std::string& uid) {
    return cat("/var/lib/kubelet/pods/", uid, "/volumes/kubernetes.io~csi/pv/mount");
  }
  /// Nothing mounted, staged, or recorded.
  void expect_clean() {
    EXPECT_THAT(driver->staged, testing::IsEmpty());
    EXPECT_THAT(driver->published, testing::IsEmpty());
    EXPECT_THAT(mounts_below(root.path()), testing::IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(root.path() + "/pods/u1"));
    EXPECT_FALSE(std::filesystem::exists(
        cat(root.path(), "/plugins/kubernetes.io/csi/fake.csi/", sha256_hex("h1"))));
  }
};

}  // namespace dibs::node
