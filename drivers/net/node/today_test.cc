// Claims of today's model, from the slices of nodes to the addresses of pods: with scheduler,
// controllers and both halves of the driver.
#include "drivers/net/control/today.h"

#include <gmock/gmock.h>

#include "driver/device_status.h"
#include "driver/driver.h"
#include "drivers/net/host/slice_devices.h"
#include "drivers/net/node/pod_networks_writer.h"
#include "drivers/net/node/test_node.h"

namespace dibs::drivers::net {
namespace {

using driver::test::DyingTransport;
using json::Value;
using test::from_text;
using test::kTodaysClaims;
using test::NodeWorld;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const client::Gvr kTodaysTemplates = {"resource.k8s.io", "v1", "resourceclaimtemplates"};
const client::Gvr kDeviceClasses = {"resource.k8s.io", "v1", "deviceclasses"};

class TodayWorld : public NodeWorld {
 public:
  TodayWorld() {
    host("node-0").pf({.name = "eth0", .pci = "0000:81:00.0", .address = "172.18.0.11/16"});
    host("node-1").pf({.name = "eth0", .pci = "0000:81:00.0", .address = "10.6.0.12/16"});
  }
  void start_all() {
    start();
    make_seed();
    for (const char* node : {"node-0", "node-1"}) start_node(node);
    settle(std::chrono::seconds(5));
  }
  void make_today(const std::string& name, const std::string& devices) {
    create(kTodaysTemplates, "default",
           cat("{'metadata': {'name': '", name, "'}, 'spec': {'spec': {'devices': {", devices,
               "}}}}"));
  }
  static std::string request(const std::string& name, const std::string& device_class) {
    return cat("{'name': '", name, "', 'exactly': {'deviceClassName': '", device_class, "'}}");
  }
  static constexpr const char* kClass = "macvlan-conf.kube-system.cni.spidernet.io";
  Value claim_of(const std::string& pod) {
    for (const Value& claim : list(kTodaysClaims, "default")) {
      if (claim["metadata"]["ownerReferences"][0]["name"].as_string() == pod) return claim;
    }
    return {};
  }
};

TEST(Today, a_pod_has_its_addresses_before_it_is_bound) {
  TodayWorld world;
  world.start_all();
  world.make_today("nic", cat("'requests': [", TodayWorld::request("r", TodayWorld::kClass), "]"));
  world.make_pod_of("a", "", {"nic"});
  world.settle(std::chrono::seconds(10));

  // The other node's interface is in another subnet.
  EXPECT_EQ(world.node_of("a"), "node-0")
      << testing::PrintToString(world.events("default", "a"))
      << json::write(world.get(kDeviceClasses, "", TodayWorld::kClass));
  EXPECT_THAT(world.addresses_of("a"), ElementsAre("eth0 172.18.30.131/16"));
  EXPECT_EQ(world.annotations_of("a")["v1.multus-cni.io/default-network"],
            "kube-system/macvlan-conf");
  const Value device = world.claim_of("a")["status"]["devices"][0];
  EXPECT_EQ(device["device"], "eth0");
  EXPECT_TRUE(driver::has_condition(device, kAddressesAssigned)) << json::write(device);

  world.delete_pod("a");
  world.settle(std::chrono::seconds(20));
  EXPECT_EQ(world.used_of("ippool-test"), 0);
}

TEST(Today, a_pool_that_is_too_small_keeps_the_pod_from_being_bound) {
  TodayWorld world;
  world.start();
  world.make_seed("172.18.30.131");
  world.start_node("node-0");
  world.make_today("nic", cat("'requests': [", TodayWorld::request("r", TodayWorld::kClass), "]"));
  world.make_pod_of("a", "", {"nic"});
  world.settle(std::chrono::seconds(5));
  world.make_pod_of("b", "", {"nic"});
  world.settle(std::chrono::seconds(10));
  EXPECT_EQ(world.node_of("a"), "node-0");
  EXPECT_EQ(world.node_of("b"), "");
  EXPECT_TRUE(world.says("b", "Warning AddressesRefused ", "ippool-test"))
      << testing::PrintToString(world.events("default", "b"));
  world.delete_pod("a");
  world.settle(std::chrono::minutes(6));
  EXPECT_EQ(world.node_of("b"), "node-0");
  EXPECT_THAT(world.addresses_of("b"), ElementsAre("eth0 172.18.30.131/16"));
}

TEST(Today, says_which_interface_and_which_subnet_is_missing) {
  TodayWorld world;
  world.start_all();
  world.make_macvlan("no-such-nic", "eth9");
  world.make_config("wrong-subnet",
                    "'cniType': 'macvlan', 'macvlan': {'master': ['eth0'], 'ippools': {'ipv4': "
                    "['elsewhere']}}");
  world.make_pool("elsewhere", "192.168.7.0/24", "192.168.7.10-192.168.7.20");
  for (const char* name : {"no-such-nic", "wrong-subnet"}) {
    world.make_today(
        name, cat("'requests': [",
                  TodayWorld::request("r", cat(name, ".kube-system.cni.spidernet.io")), "]"));
    world.make_pod_of(name, "", {name});
  }
  world.settle(std::chrono::seconds(15));
  EXPECT_TRUE(world.says("no-such-nic", "Warning UnsuitableNodes node-0, node-1: ",
                         "no interface \"eth9\" (kube-system/no-such-nic)"))
      << testing::PrintToString(world.events("default", "no-such-nic"));
  EXPECT_TRUE(world.says("wrong-subnet", "Warning UnsuitableNodes ", "192.168.7.0/24"))
      << testing::PrintToString(world.events("default", "wrong-subnet"));
}

TEST(Today, a_static_request_is_named_as_its_network) {
  TodayWorld world;
  world.start_all();
  world.make_macvlan("second");
  world.make_pool("more", "172.18.0.0/16", "172.18.40.1-172.18.40.9",
                  ", 'multusName': ['kube-system/second']");
  world.make_today("nics",
                   cat("'requests': [", TodayWorld::request("macvlan-conf", kStaticClass), ", ",
                       TodayWorld::request("second", kStaticClass),
                       "], 'config': [{'opaque': {'driver': 'dra.spidernet.io', 'parameters': "
                       "{'multusNamespace': 'kube-system', 'podDefaultRouteNic': 'net1'}}}]"));
  world.make_pod_of("a", "", {"nics"});
  world.settle(std::chrono::seconds(10));
  EXPECT_EQ(world.node_of("a"), "node-0") << testing::PrintToString(world.events("default", "a"));
  const Value annotations = world.annotations_of("a");
  EXPECT_EQ(annotations["v1.multus-cni.io/default-network"], "kube-system/macvlan-conf");
  EXPECT_EQ(annotations["k8s.v1.cni.cncf.io/networks"], "kube-system/second");
  EXPECT_EQ(annotations["ipam.spidernet.io/default-route-nic"], "net1");
  EXPECT_THAT(world.addresses_of("a"), ElementsAre("eth0 172.18.30.131/16", "net1 172.18.40.1/16"));
}

TEST(Today, a_configuration_of_the_whole_claim_names_its_interfaces) {
  TodayWorld world;
  world.start_all();
  world.make_today(
      "nics",
      cat("'requests': [", TodayWorld::request("r", "cni.spidernet.io"),
          "], 'config': [{'opaque': {'driver': 'dra.spidernet.io', 'parameters': "
          "{'secondaryNics': {'staticNics': [{'multusName': 'macvlan-conf', 'defaultRoute': "
          "true}]}}}}]"));
  world.make_pod_of("a", "", {"nics"});
  world.settle(std::chrono::seconds(10));
  EXPECT_NE(world.node_of("a"), "") << testing::PrintToString(world.events("default", "a"));
  const Value annotations = world.annotations_of("a");
  EXPECT_TRUE(annotations["v1.multus-cni.io/default-network"].is_null());
  EXPECT_EQ(annotations["k8s.v1.cni.cncf.io/networks"], "kube-system/macvlan-conf");
  EXPECT_EQ(annotations["ipam.spidernet.io/default-route-nic"], "net1");
}

TEST(Today, an_interface_that_is_there_stands_in_the_claims_status) {
  TodayWorld world;
  world.start_all();
  world.make_today("nic", cat("'requests': [", TodayWorld::request("r", TodayWorld::kClass), "]"));
  const Value pod = world.make_pod_of("a", "", {"nic"});
  world.settle(std::chrono::seconds(10));
  ASSERT_EQ(world.node_of("a"), "node-0");
  Networks networks(*world.api, world.sim.runtime());
  PodNetworksWriter writer(world.environment(), networks, [] { return std::nullopt; }, "node-0",
                           {});
  world.settle();
  AttachedNic attached;
  attached.pod = {"default", "a", pod["metadata"]["uid"].str()};
  attached.interface = "eth0";
  attached.mac = "0a:1b:2c:3d:4e:5f";
  attached.ips = {"172.18.30.131/16"};
  writer.attached(attached);
  world.settle();
  const Value device = world.claim_of("a")["status"]["devices"][0];
  EXPECT_EQ(device["networkData"],
            from_text("{'interfaceName': 'eth0', 'ips': ['172.18.30.131/16'], 'hardwareAddress': "
                      "'0a:1b:2c:3d:4e:5f'}"));
  EXPECT_TRUE(driver::has_condition(device, "Ready"));
  EXPECT_TRUE(driver::has_condition(device, kAddressesAssigned));
  writer.stop();
  networks.stop();
}

TEST(Today, prepares_the_claim_with_its_uid_for_every_request) {
  TodayWorld world;
  world.start();
  world.make_seed();
  driver::Plugin& plugin = world.start_node("node-0");
  const Value claim = world.TestWorld::make_claim(
      "c",
      "{'devices': {'results': [{'request': 'r', 'driver': 'dra.spidernet.io', 'pool': 'node-0', "
      "'device': 'eth0'}]}}");
  const auto response = world.prepare(plugin, {driver::claim_name(claim)});
  ASSERT_TRUE(world.status.ok()) << world.status.message;
  const std::string uid = claim["metadata"]["uid"].str();
  const auto& answer = response.claims().at(uid);
  ASSERT_EQ(answer.devices_size(), 1) << answer.error();
  EXPECT_EQ(answer.devices(0).cdi_device_ids(0), cat("k8s.dra.spidernet.io/claim=", uid));
  EXPECT_THAT(world.cdi_text("node-0", kDriver, uid), HasSubstr(cat("DRA_CLAIM_UID=", uid)));
}

/// GPUs that say on which PCIe root they are.
class Gpus : public driver::Driver {
 public:
  Gpus(std::string node, std::string root) : node_(std::move(node)), root_(std::move(root)) {}
  Result<std::vector<driver::Pool>> devices() override {
    driver::Device gpu("gpu-0");
    gpu.attribute("resource.kubernetes.io/pcieRoot", root_);
    return std::vector<driver::Pool>{driver::make_pool(node_, {gpu})};
  }
  Result<std::vector<driver::PreparedDevice>> prepare(const driver::Claim&) override {
    return std::vector<driver::PreparedDevice>();
  }
  Result<> unprepare(const driver::ClaimName&) override { return success(); }

 private:
  const std::string node_;
  const std::string root_;
};

TEST(Today, a_gpu_and_a_nic_of_one_pcie_root_are_found_on_the_node_that_has_both) {
  TodayWorld world;
  world.host("node-1").pf({.name = "eth1",
                           .pci = "0000:c1:00.0",
                           .root = "pci0000:c0",
                           .port = "0000:c0:01.0",
                           .rdma = "mlx5_0",
                           .address = "172.18.0.12/16"});
  world.start();
  world.make_seed();
  world.make_macvlan("far", "eth1");
  world.make_pool("far", "172.18.0.0/16", "172.18.40.1-172.18.40.9",
                  ", 'multusName': ['kube-system/far']");
  std::vector<std::unique_ptr<driver::Driver>> drivers;
  std::vector<std::unique_ptr<driver::Plugin>> plugins;
  // node-0: the NIC is on pci0000:80, the GPU is not. node-1: both are on pci0000:c0.
  for (const auto& [node, root] : {std::pair{"node-0", "pci0000:40"}, {"node-1", "pci0000:c0"}}) {
    drivers.push_back(std::make_unique<Gpus>(node, root));
    driver::PluginOptions options;
    options.driver_name = "gpu.test";
    options.node_name = node;
    options.registry_dir = cat("/", node, "/plugins_registry");
    options.plugins_dir = cat("/", node, "/plugins");
    options.cdi_dir = cat("/", node, "/cdi");
    ASSERT_TRUE(world.files->make_dirs(options.registry_dir).ok());
    auto plugin = driver::Plugin::start(*drivers.back(), world.environment(), options);
    ASSERT_TRUE(plugin.ok());
    plugins.push_back(std::move(plugin).value());
    world.start_node(node);
  }
  world.create(kDeviceClasses, "",
               "{'metadata': {'name': 'gpu'}, 'spec': {'selectors': [{'cel': {'expression': "
               "'device.driver == \\'gpu.test\\''}}]}}");
  world.make_today("pair", cat("'requests': [", TodayWorld::request("gpu", "gpu"), ", ",
                               TodayWorld::request("nic", kDynamicClass),
                               "], 'constraints': [{'requests': ['gpu', 'nic'], 'matchAttribute': "
                               "'resource.kubernetes.io/pcieRoot'}]"));
  world.make_today("plain", cat("'requests': [", TodayWorld::request("gpu", "gpu"), ", ",
                                TodayWorld::request("nic", "cni.spidernet.io"),
                                "], 'constraints': [{'requests': ['gpu', 'nic'], 'matchAttribute': "
                                "'resource.kubernetes.io/pcieRoot'}]"));
  world.settle(std::chrono::seconds(5));
  world.make_pod_of("a", "", {"plain"});
  world.settle(std::chrono::seconds(10));
  EXPECT_EQ(world.node_of("a"), "node-1") << testing::PrintToString(world.events("default", "a"));
  std::vector<std::string> devices;
  for (const Value& result :
       world.claim_of("a")["status"]["allocation"]["devices"]["results"].items()) {
    devices.push_back(cat(result["driver"].as_string(), "/", result["device"].as_string()));
  }
  EXPECT_THAT(devices, ElementsAre("gpu.test/gpu-0", "dra.spidernet.io/eth1"));

  // A dynamic NIC is a further interface, on the network that uses the device.
  world.delete_pod("a");
  world.settle(std::chrono::seconds(20));
  world.make_pod_of("b", "", {"pair"});
  world.settle(std::chrono::seconds(10));
  EXPECT_EQ(world.node_of("b"), "node-1") << testing::PrintToString(world.events("default", "b"));
  EXPECT_EQ(world.annotations_of("b")["k8s.v1.cni.cncf.io/networks"], "kube-system/far");
  EXPECT_THAT(world.addresses_of("b"), ElementsAre("net1 172.18.40.1/16"));
  for (auto& plugin : plugins) plugin->stop();
}

/// Whatever write the cluster's half is killed at, the next one brings the pods to an end. True:
/// the write arrives, and its answer is lost.
class KilledTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Writes, KilledTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "arrives" : "is_lost"; });

TEST_P(KilledTest, binds_pods_with_one_address_each) {
  TodayWorld world;
  world.start_all();
  world.make_today("nic", cat("'requests': [", TodayWorld::request("r", TodayWorld::kClass), "]"));
  for (int write = 0;; ++write) {
    SCOPED_TRACE(write);
    DyingTransport dying(world.way(), write, GetParam());
    dying.count_all_writes();
    client::Client mortal(dying);
    world.take_over(mortal);
    const std::string a = cat("a", write);
    const std::string b = cat("b", write);
    world.make_pod_of(a, "", {"nic"});
    world.make_pod_of(b, "", {"nic"});
    world.settle(std::chrono::seconds(5));
    world.take_over(*world.api);
    world.settle(std::chrono::seconds(40));
    for (const auto& pod : {a, b}) {
      EXPECT_EQ(world.node_of(pod), "node-0");
      EXPECT_EQ(world.addresses_of(pod).size(), 1u);
    }
    EXPECT_NE(world.addresses_of(a), world.addresses_of(b));
    world.delete_pod(a);
    world.delete_pod(b);
    world.settle(std::chrono::seconds(70));
    EXPECT_EQ(world.used_of("ippool-test"), 0);
    if (!dying.died() || HasFailure()) break;
  }
}

}  // namespace
}  // namespace dibs::drivers::net
