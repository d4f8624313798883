// What the scheduler makes of a node's NICs as devices: which node, which device, how often.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cluster/test_cluster.h"
#include "drivers/gpu/profile.h"
#include "drivers/net/host/slice_devices.h"
#include "drivers/net/host/testing/fake_host.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using json::test::from_text;
using test::FakeHost;

const client::Gvr kNodes = {"", "v1", "nodes"};
const client::Gvr kPods = {"", "v1", "pods"};
const client::Gvr kSlices = {"resource.k8s.io", "v1", "resourceslices"};
const client::Gvr kClasses = {"resource.k8s.io", "v1", "deviceclasses"};
const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};

cluster::Options with_scheduler() {
  cluster::Options options;
  options.server.ca_pem = "CA";
  options.controllers.emplace();
  options.scheduler.emplace();
  return options;
}

class AllocationTest : public testing::Test, protected cluster::test::TestCluster {
 protected:
  AllocationTest() : TestCluster(with_scheduler()) {
    for (const char* name : {"dra.spidernet.io", "gpu.example.com"}) {
      const std::string expression = cat("device.driver == '", name, "'");
      const Value selector = Value::object({{"cel", Value::object({{"expression", expression}})}});
      expect(api->create(
          kClasses, "",
          Value::object({{"metadata", Value::object({{"name", name}})},
                         {"spec", Value::object({{"selectors", Value::array({selector})}})}})));
    }
    // The namespace gets the account that its pods run as.
    sim.advance(std::chrono::seconds(1));
  }
  ~AllocationTest() override { close(); }

  NodeState facts(FakeHost& host, const std::string& node, const std::string& pools = "") {
    FactsOptions options = host.options(node);
    options.pools = *parse_pools_config(pools);
    HostFacts facts(host.links(), sim.runtime().clock, options);
    return *facts.read();
  }

  void add_node(const std::string& name) {
    create(kNodes, "", cat("{'metadata': {'name': '", name, "'}}"));
    sim.advance(std::chrono::milliseconds(100));
    Value node = get(kNodes, "", name);
    node.set("status", from_text(R"({'capacity': {'cpu': '8', 'memory': '8Gi', 'pods': '110'},
        'allocatable': {'cpu': '8', 'memory': '8Gi', 'pods': '110'},
        'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'KubeletReady'}]})"));
    expect(api->update_status(kNodes, "", node));
  }

  void publish(const std::string& driver, const std::string& node, const driver::Pool& pool) {
    const auto slices = driver::slices_of(pool);
    ASSERT_TRUE(slices.ok()) << slices.error().message();
    for (std::size_t i = 0; i < slices->size(); ++i) {
      Value spec = (*slices)[i];
      spec.set("driver", driver);
      spec.set("nodeName", node);
      spec.set("pool", Value::object({{"name", pool.name},
                                      {"generation", 1},
                                      {"resourceSliceCount", slices->size()}}));
      const Value metadata = Value::object({{"name", cat(node, "-", driver, "-", i)}});
      expect(api->create(kSlices, "",
                         Value::object({{"metadata", metadata}, {"spec", std::move(spec)}})));
    }
  }
  void publish(const NodeState& state) {
    publish("dra.spidernet.io", state.node,
            driver::make_pool(state.node, slice_devices(state, {})));
  }
  void publish_gpus(const std::string& node, const std::string& root) {
    ProfileOptions options;
    options.node_name = node;
    options.devices = 2;
    options.gpu_pcie_roots = {root};
    publish("gpu.example.com", node, make_gpu_profile(options)->pool());
  }

  /// A pod with one claim, and where it was placed; `devices` is spec.devices of the claim.
  std::string place(const std::string& name, const Value& devices) {
    expect(api->create(kClaims, "default",
                       Value::object({{"metadata", Value::object({{"name", name}})},
                                      {"spec", Value::object({{"devices", devices}})}})));
    Value pod = from_text(R"({'metadata': {}, 'spec': {
        'containers': [{'name': 'c', 'image': 'i', 'resources': {'claims': [{'name': 'n'}]}}],
        'resourceClaims': [{'name': 'n'}]}})");
    pod.mut("metadata").set("name", name);
    pod.mut("spec").mut("resourceClaims").mut(0).set("resourceClaimName", name);
    expect(api->create(kPods, "default", pod));
    sim.advance(std::chrono::seconds(3));
    return get(kPods, "default", name)["spec"]["nodeName"].str();
  }
  std::vector<std::string> devices_of(const std::string& claim) {
    std::vector<std::string> out;
    const Value object = get(kClaims, "default", claim);
    for (const auto& one : object["status"]["allocation"]["devices"]["results"].items()) {
      out.push_back(one["device"].str());
    }
    return out;
  }
  /// One device of which the attribute has this value.
  static Value nic(const std::string& attribute, const std::string& value) {
    Value devices = from_text(
        "{'requests': [{'name': 'nic', 'exactly': {'deviceClassName': 'dra.spidernet.io'}}]}");
    const std::string expression =
        cat("device.attributes['dra.spidernet.io'].", attribute, " == '", value, "'");
    devices.mut("requests")
        .mut(0)
        .mut("exactly")
        .set("selectors",
             Value::array({Value::object({{"cel", Value::object({{"expression", expression}})}})}));
    return devices;
  }
};

TEST_F(AllocationTest, finds_the_node_with_the_subnet_though_others_have_no_address) {
  FakeHost a;
  a.pf({.name = "eth0", .pci = "0000:81:00.0", .address = "172.18.0.11/16"});
  FakeHost b;
  b.pf({.name = "eth0", .pci = "0000:81:00.0", .address = "10.6.0.12/16"});
  FakeHost c;
  c.pf({.name = "eth1", .pci = "0000:81:00.0"});
  for (const char* name : {"node-a", "node-b", "node-c"}) add_node(name);
  publish(facts(c, "node-c"));
  publish(facts(b, "node-b"));
  publish(facts(a, "node-a"));

  EXPECT_EQ(place("p", nic("ipv4CIDR", "172.18.0.0/16")), "node-a");
  EXPECT_EQ(place("q", nic("name", "eth1")), "node-c");
  EXPECT_EQ(place("r", nic("name", "eth2")), "");
}

TEST_F(AllocationTest, shares_a_nic_among_pods_and_gives_a_function_once) {
  FakeHost host;
  host.pf({.name = "ens1", .pci = "0000:81:00.0", .vfs = 2});
  add_node("node-a");
  publish(facts(host, "node-a", "resourceList: [{resourceName: a}]"));

  const Value master = nic("name", "ens1");
  for (const char* name : {"m1", "m2", "m3"}) {
    EXPECT_EQ(place(name, master), "node-a") << name;
    EXPECT_THAT(devices_of(name), testing::ElementsAre("ens1"));
  }
  const Value function = nic("resourceName", "spidernet.io/a");
  EXPECT_EQ(place("f1", function), "node-a");
  EXPECT_EQ(place("f2", function), "node-a");
  EXPECT_EQ(place("f3", function), "");
  std::vector<std::string> given = devices_of("f1");
  given.push_back(devices_of("f2").at(0));
  EXPECT_THAT(given, testing::UnorderedElementsAre("vf-0000-81-00-2", "vf-0000-81-00-3"));
  // Nor is one had by asking a NIC for some of its functions.
  EXPECT_EQ(place("amount", from_text(R"({'requests': [{'name': 'nic', 'exactly': {
                      'deviceClassName': 'dra.spidernet.io',
                      'capacity': {'requests': {'capacity.spidernet.io/vfs': '1'}}}}]})")),
            "");
}

TEST_F(AllocationTest, counts_shares) {
  FakeHost host;
  host.pf({.name = "ens1", .pci = "0000:81:00.0", .rdma = "mlx5_0"});
  add_node("node-a");
  publish(
      facts(host, "node-a", "configList: [{resourceName: hca, rdmaHcaMax: 2, devices: [ens1]}]"));

  const Value share = nic("resourceName", "spidernet.io/hca");
  EXPECT_EQ(place("s1", share), "node-a");
  EXPECT_EQ(place("s2", share), "node-a");
  EXPECT_EQ(place("s3", share), "");
}

TEST_F(AllocationTest, finds_a_gpu_and_a_nic_of_one_pcie_root) {
  FakeHost a;
  a.pf({.name = "ens1", .pci = "0000:81:00.0", .root = "pci0000:80"});
  FakeHost b;
  b.pf({.name = "ens1", .pci = "0000:81:00.0", .root = "pci0000:80"});
  b.pf({.name = "ens2", .pci = "0000:c1:00.0", .root = "pci0000:c0", .port = "0000:c0:01.0"});
  add_node("node-a");
  add_node("node-b");
  publish(facts(a, "node-a"));
  publish(facts(b, "node-b"));
  publish_gpus("node-a", "pci0000:c0");
  publish_gpus("node-b", "pci0000:c0");

  EXPECT_EQ(place("pair", from_text(R"({'requests': [
      {'name': 'gpu', 'exactly': {'deviceClassName': 'gpu.example.com'}},
      {'name': 'nic', 'exactly': {'deviceClassName': 'dra.spidernet.io'}}],
      'constraints': [{'matchAttribute': 'resource.kubernetes.io/pcieRoot'}]})")),
            "node-b");
  EXPECT_THAT(devices_of("pair"), testing::ElementsAre("gpu-0", "ens2"));
}

}  // namespace
}  // namespace dibs::drivers::net
