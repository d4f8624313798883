// Classic claims of the network driver, with scheduler and controllers, as the releases that had
// them and as today's.
#include "drivers/net/control/allocator.h"

#include <gmock/gmock.h>

#include "drivers/net/control/test_control.h"

namespace dibs::drivers::net {
namespace {

using driver::test::DyingTransport;
using json::Value;
using test::ControlWorld;
using test::from_text;
using test::nic;
using testing::ElementsAre;
using testing::IsEmpty;

class ClassicTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Releases, ClassicTest, testing::Values("", "1.27", "1.30"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.empty() ? "newest" : "as_" + name.substr(2);
                         });

TEST_P(ClassicTest, the_documents_pods_get_addresses_and_give_them_back) {
  ControlWorld world(GetParam());
  world.start();
  world.make_seed();
  world.report("node-0", {nic("eth0", "172.18.0.11/16")});
  world.report("node-1", {nic("eth1", "172.18.0.12/16")});
  world.make_pod_of("a");
  world.settle(std::chrono::seconds(5));
  world.make_pod_of("b");
  world.settle(std::chrono::seconds(5));

  // Only one node has the interface.
  EXPECT_EQ(world.node_of("a"), "node-0");
  EXPECT_EQ(world.node_of("b"), "node-0");
  EXPECT_THAT(world.addresses_of("a"), ElementsAre("eth0 172.18.30.131/16"));
  EXPECT_THAT(world.addresses_of("b"), ElementsAre("eth0 172.18.30.132/16"));
  EXPECT_EQ(world.used_of("ippool-test"), 2);
  const Value handle = world.handle_of_pod("a");
  EXPECT_EQ(handle["version"], 1);
  EXPECT_EQ(handle["node"], "node-0");
  EXPECT_EQ(handle["nics"],
            from_text("[{'interface': 'eth0', 'multus': 'kube-system/macvlan-conf', 'cniType': "
                      "'macvlan', 'master': 'eth0'}]"));
  EXPECT_EQ(handle["addresses"], from_text("[{'interface': 'eth0', 'ipv4': '172.18.30.131/16'}]"));

  world.delete_pod("a");
  world.delete_pod("b");
  world.settle(std::chrono::seconds(20));
  EXPECT_THAT(world.list(driver::kClassicClaims, "default"), IsEmpty());
  EXPECT_THAT(world.list(kEndpoints, "default"), IsEmpty());
  EXPECT_EQ(world.used_of("ippool-test"), 0);
}

TEST_P(ClassicTest, a_pool_that_is_too_small_leaves_the_pod_without_a_node) {
  ControlWorld world(GetParam());
  world.start();
  world.make_seed("172.18.30.131");
  world.report("node-0", {nic("eth0", "172.18.0.11/16")});
  world.report("node-1", {nic("eth0", "172.18.0.12/16")});
  world.make_pod_of("a");
  world.settle(std::chrono::seconds(5));
  world.make_pod_of("b");
  world.settle(std::chrono::seconds(10));
  EXPECT_NE(world.node_of("a"), "");
  EXPECT_EQ(world.node_of("b"), "");
  EXPECT_TRUE(world.says("b", "Warning UnsuitableNodes node-0, node-1: ", "ippool-test"))
      << testing::PrintToString(world.events("default", "b"));

  world.delete_pod("a");
  world.settle(std::chrono::seconds(60));
  EXPECT_NE(world.node_of("b"), "");
  EXPECT_THAT(world.addresses_of("b"), ElementsAre("eth0 172.18.30.131/16"));
}

TEST(Classic, says_which_interface_and_which_subnet_is_missing) {
  ControlWorld world;
  world.start();
  world.make_seed();
  world.report("node-0", {nic("eth1", "172.18.0.11/16")});
  world.report("node-1", {nic("eth0", "10.6.0.12/16")});
  world.make_pod_of("a");
  world.settle(std::chrono::seconds(10));
  EXPECT_EQ(world.node_of("a"), "");
  EXPECT_TRUE(world.says("a", "Warning UnsuitableNodes ",
                         "node-0: no interface \"eth0\" (kube-system/macvlan-conf)"))
      << testing::PrintToString(world.events("default", "a"));
  EXPECT_TRUE(world.says("a", "Warning UnsuitableNodes ", "172.18.0.0/16"))
      << testing::PrintToString(world.events("default", "a"));

  // The node gets the address: the pod need not wait for anything else.
  world.report("node-1", {nic("eth0", "172.18.0.12/16")});
  world.settle(std::chrono::seconds(40));
  EXPECT_EQ(world.node_of("a"), "node-1");
}

TEST(Classic, writes_the_annotations_of_a_pod_whose_claim_alone_names_interfaces) {
  ControlWorld world;
  world.start();
  world.make_macvlan("first", "eth0");
  world.make_macvlan("second", "eth1");
  world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.9", ", 'default': true");
  world.report("node-0", {nic("eth0", "172.18.0.11/16"), nic("eth1", "172.18.0.12/16")});
  world.make_parameter(
      "demo",
      ", 'spec': {'defaultNic': {'multusName': 'first', 'namespace': 'kube-system'}, "
      "'secondaryNics': [{'multusName': 'second', 'namespace': 'kube-system', 'defaultRoute': "
      "true}]}");
  world.make_template("demo", ControlWorld::refer("demo"));
  world.make_pod_of("a", "");
  world.settle(std::chrono::seconds(10));
  EXPECT_EQ(world.node_of("a"), "node-0");
  const Value annotations = world.annotations_of("a");
  EXPECT_EQ(annotations["v1.multus-cni.io/default-network"], "kube-system/first");
  EXPECT_EQ(annotations["k8s.v1.cni.cncf.io/networks"], "kube-system/second");
  EXPECT_EQ(annotations["ipam.spidernet.io/default-route-nic"], "net1");
  EXPECT_THAT(world.addresses_of("a"), ElementsAre("eth0 172.18.30.1/16", "net1 172.18.30.2/16"));
}

TEST(Classic, interfaces_of_several_claims_come_in_the_pods_order) {
  ControlWorld world;
  world.start();
  world.make_macvlan("first", "eth0");
  world.make_macvlan("second", "eth1");
  world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.9", ", 'default': true");
  world.report("node-0", {nic("eth0"), nic("eth1")});
  for (const char* name : {"first", "second"}) {
    world.make_parameter(name, cat(", 'spec': {'staticNics': [{'multusConfigName': '", name,
                                   "', 'namespace': 'kube-system'}]}"));
    world.make_template(name, ControlWorld::refer(name));
  }
  world.make_pod_of("a", "", {"second", "first"});
  world.settle(std::chrono::seconds(10));
  EXPECT_EQ(world.node_of("a"), "node-0");
  EXPECT_EQ(world.annotations_of("a")["k8s.v1.cni.cncf.io/networks"],
            "kube-system/second,kube-system/first");
}

TEST(Classic, says_what_is_wrong_with_networks_and_parameters) {
  ControlWorld world;
  world.start();
  world.make_seed();
  world.report("node-0", {nic("eth0", "172.18.0.11/16")});
  world.make_pod_of("absent", "'v1.multus-cni.io/default-network': 'kube-system/nosuch'");
  world.make_macvlan("other");
  world.make_parameter("other",
                       ", 'spec': {'defaultNic': {'multusName': 'other', 'namespace': "
                       "'kube-system'}}");
  world.make_template("other", ControlWorld::refer("other"));
  world.make_pod_of("torn", ControlWorld::kOnMacvlan, {"other"});
  world.make_template("group", ControlWorld::refer("demo", "SpiderClaimParameter", "x.io"));
  world.make_pod_of("group", "", {"group"});
  world.make_template("kind", ControlWorld::refer("demo", "SpiderIPPool"));
  world.make_pod_of("kind", "", {"kind"});
  world.make_template("gone", ControlWorld::refer("gone"));
  world.make_pod_of("gone", "", {"gone"});
  world.make_config("ipvlan", "'cniType': 'ipvlan', 'ipvlan': {'master': ['eth0']}");
  world.make_parameter("mixed",
                       ", 'spec': {'secondaryNics': [{'multusName': 'other', 'namespace': "
                       "'kube-system'}, {'multusName': 'ipvlan', 'namespace': 'kube-system'}]}");
  world.make_template("mixed", ControlWorld::refer("mixed"));
  world.make_pod_of("mixed", "", {"mixed"});
  world.make_template("none", "");
  world.make_pod_of("none", "", {"none"});
  world.settle(std::chrono::seconds(10));
  for (const char* pod : {"absent", "torn", "group", "kind", "gone", "mixed"}) {
    EXPECT_EQ(world.node_of(pod), "") << pod;
  }
  EXPECT_NE(world.node_of("none"), "");
  EXPECT_TRUE(world.says("absent", "Warning UnsuitableNodes ", "kube-system/nosuch"));
  EXPECT_TRUE(world.says("torn", "Warning UnsuitableNodes ", "kube-system/other"));
  EXPECT_TRUE(world.says("mixed", "Warning Failed ", "all must be of one cniType"));
  EXPECT_TRUE(world.says("group", "Warning Failed ", "incorrect API Group: x.io"));
  EXPECT_TRUE(world.says("kind", "Warning Failed ", "incorrect kind: SpiderIPPool"));
  EXPECT_TRUE(world.says("gone", "Warning Failed ",
                         "failed to getting SpiderClaimParameters default/gone"));
}

TEST(Classic, gives_the_last_function_to_one_pod_alone) {
  ControlWorld world;
  world.start();
  world.make_config("sriov",
                    "'cniType': 'sriov', 'sriov': {'resourceName': 'spidernet.io/sriov_a'}");
  world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.9", ", 'default': true");
  Interface pf = nic("ens1f0");
  pf.pci_address = "0000:81:00.0";
  Sriov functions;
  functions.total_vfs = functions.num_vfs = 1;
  functions.vfs.push_back(
      {.index = 0, .pci_address = "0000:81:00.2", .netdev = "ens1f0v0", .available = true});
  pf.sriov = functions;
  world.report("node-0", {pf}, {{"spidernet.io/sriov_a", PoolKind::sriov_vf, 1, {"0000:81:00.2"}}});
  world.make_parameter("demo",
                       ", 'spec': {'secondaryNics': [{'multusName': 'sriov', 'namespace': "
                       "'kube-system'}]}");
  world.make_template("demo", ControlWorld::refer("demo"));
  world.make_pod_of("a", "");
  world.make_pod_of("b", "");
  world.settle(std::chrono::seconds(15));
  const std::string winner = world.node_of("a").empty() ? "b" : "a";
  const std::string loser = winner == "a" ? "b" : "a";
  EXPECT_EQ(world.node_of(winner), "node-0");
  EXPECT_EQ(world.node_of(loser), "");
  EXPECT_EQ(world.handle_of_pod(winner)["resources"],
            from_text("{'spidernet.io/sriov_a': ['0000:81:00.2']}"));
  EXPECT_TRUE(world.says(loser, "Warning UnsuitableNodes ", "no free VF in spidernet.io/sriov_a"))
      << testing::PrintToString(world.events("default", loser));
  world.delete_pod(winner);
  world.settle(std::chrono::seconds(60));
  EXPECT_EQ(world.node_of(loser), "node-0");
}

TEST(Classic, allocates_at_once_only_where_that_is_allowed) {
  for (const bool allowed : {false, true}) {
    ControlWorld world;
    ControlHalfOptions options;
    options.allow_immediate = allowed;
    world.start(std::move(options));
    world.make_seed();
    world.report("node-1", {nic("eth0", "172.18.0.11/16")});
    world.create(driver::kClassicClaims, "default",
                 "{'metadata': {'name': 'c'}, 'spec': {'resourceClassName': "
                 "'netresources.spidernet.io', 'allocationMode': 'Immediate'}}");
    world.settle(std::chrono::seconds(5));
    const Value claim = world.claim("c");
    EXPECT_EQ(claim["status"]["allocation"].is_object(), allowed);
    if (allowed) {
      EXPECT_EQ(claim["status"]["allocation"]["availableOnNodes"], driver::only_on("node-1"));
    } else {
      EXPECT_TRUE(world.says("c", "Warning Failed ", "WaitForFirstConsumer"));
    }
  }
}

/// Whatever write the half is killed at, the next one leaves both pods with one address each, and
/// nothing when they are gone. True: the write arrives, and its answer is lost.
class KilledTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Writes, KilledTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "arrives" : "is_lost"; });

TEST_P(KilledTest, loses_no_address_and_gives_none_twice) {
  ControlWorld world;
  world.start();
  world.make_seed();
  world.make_parameter("named",
                       ", 'spec': {'defaultNic': {'multusName': 'macvlan-conf', 'namespace': "
                       "'kube-system'}}");
  world.make_template("named", ControlWorld::refer("named"));
  for (int write = 0;; ++write) {
    SCOPED_TRACE(write);
    world.report("node-0", {nic("eth0", "172.18.0.11/16")});
    DyingTransport dying(world.way(), write, GetParam());
    dying.count_all_writes();
    client::Client mortal(dying);
    world.take_over(mortal);
    const std::string a = cat("a", write);
    const std::string b = cat("b", write);
    world.make_pod_of(a);
    world.make_pod_of(b, "", {"named"});
    world.settle(std::chrono::seconds(5));
    world.take_over(*world.api);
    world.settle(std::chrono::seconds(40));
    for (const auto& pod : {a, b}) {
      EXPECT_EQ(world.node_of(pod), "node-0");
      EXPECT_EQ(world.addresses_of(pod).size(), 1u);
      EXPECT_EQ(world.annotations_of(pod)["v1.multus-cni.io/default-network"],
                "kube-system/macvlan-conf");
    }
    EXPECT_NE(world.addresses_of(a), world.addresses_of(b));
    world.delete_pod(a);
    world.delete_pod(b);
    world.settle(std::chrono::seconds(70));
    EXPECT_EQ(world.used_of("ippool-test"), 0);
    EXPECT_THAT(world.list(kEndpoints, "default"), IsEmpty());
    EXPECT_THAT(world.list(driver::kClassicClaims, "default"), IsEmpty());
    if (!dying.died() || HasFailure()) break;
  }
}

}  // namespace
}  // namespace dibs::drivers::net
