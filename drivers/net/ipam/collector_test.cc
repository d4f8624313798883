// What the collector does for all: pools judged, derived fields and counts, pools of applications,
// and what nobody has any more.
#include "drivers/net/ipam/collector.h"

#include <gmock/gmock.h>

#include "drivers/net/ipam/test_ipam.h"

namespace dibs::drivers::net {
namespace {

using test::ask;
using test::from_text;
using test::IpamWorld;
using test::kPods;
using test::Value;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CollectorTest : public testing::Test {
 public:
  IpamWorld world;
  IpamWorld::Process& node = world.start_ipam();

  std::string address(const Value& pod, const std::string& pool) {
    auto assigned = node.ipam->assign(pod, "node-0", {ask("eth0", {pool})});
    return assigned ? assigned->at(0).ipv4 : assigned.error().message();
  }
  std::vector<std::string> events(const std::string& name) { return world.events("default", name); }
};

TEST_F(CollectorTest, writes_what_follows_from_a_pool) {
  world.start_collector();
  world.create(kIpPools, "", R"({'apiVersion': 'spiderpool.spidernet.io/v2beta1',
      'kind': 'SpiderIPPool', 'metadata': {'name': 'p'}, 'spec': {'subnet': '172.18.0.0/16',
      'ips': ['172.18.30.9', '172.18.30.1-172.18.30.8'], 'excludeIPs': ['172.18.30.2']}})");

  world.settle();

  const Value pool = world.pool("p");
  EXPECT_EQ(pool["metadata"]["finalizers"], Value::array({kFinalizer}));
  EXPECT_EQ(pool["metadata"]["labels"][kLabelPoolCidr], Value("172-18-0-0-16"));
  EXPECT_EQ(pool["spec"]["ipVersion"], Value(4));
  EXPECT_EQ(pool["spec"]["ips"], Value::array({"172.18.30.1-172.18.30.9"}));
  EXPECT_EQ(pool["status"]["totalIPCount"], Value(8));
  EXPECT_EQ(pool["status"]["allocatedIPCount"], Value(0));
}

TEST_F(CollectorTest, uses_a_pool_only_after_it_was_judged) {
  world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.8");
  world.settle();
  const Value pod = world.make_pod("a");

  EXPECT_THAT(address(pod, "p"), HasSubstr("not admitted yet"));
  world.start_collector();
  world.settle();

  EXPECT_EQ(address(pod, "p"), "172.18.30.1/16");
}

TEST_F(CollectorTest, refuses_a_pool_that_overlaps_an_older_one_and_says_so) {
  world.start_collector();
  world.make_pool("old", "172.18.0.0/16", "172.18.30.1-172.18.30.8");
  world.settle();
  world.make_pool("new", "172.18.0.0/16", "172.18.30.8-172.18.30.9");
  world.settle();

  EXPECT_THAT(events("new"), ElementsAre(HasSubstr("Warning InvalidPool")));
  EXPECT_THAT(events("new"), ElementsAre(HasSubstr("overlap with IPPool old")));
  EXPECT_THAT(events("old"), IsEmpty());
  EXPECT_THAT(address(world.make_pod("a"), "new"), HasSubstr("overlap with IPPool old"));
  EXPECT_EQ(address(world.make_pod("b"), "old"), "172.18.30.1/16");

  // What is mended is used, and so is what the other one leaves.
  world.remove(kIpPools, "", "old");
  world.kill_pod("b");
  world.settle(std::chrono::minutes(1));
  EXPECT_TRUE(world.pool("old").is_null());
  EXPECT_EQ(address(world.make_pod("c"), "new"), "172.18.30.8/16");
}

TEST_F(CollectorTest, admits_none_of_two_new_pools_that_overlap) {
  world.make_pool("a", "172.18.0.0/16", "172.18.30.1-172.18.30.8");
  world.make_pool("b", "172.18.0.0/16", "172.18.30.8-172.18.30.9");
  world.start_collector();
  world.start_collector();
  world.settle();

  EXPECT_TRUE(world.status("a").admitted.empty());
  EXPECT_TRUE(world.status("b").admitted.empty());
  world.remove(kIpPools, "", "b");
  world.settle();
  EXPECT_EQ(world.status("a").admitted.count(), 8);
}

TEST_F(CollectorTest, does_not_use_a_pool_that_grew_over_another_one) {
  world.start_collector();
  world.make_pool("a", "172.18.0.0/16", "172.18.30.1-172.18.30.8");
  world.make_pool("b", "172.18.0.0/16", "172.18.30.9-172.18.30.20");
  world.settle();
  EXPECT_EQ(address(world.make_pod("x"), "b"), "172.18.30.9/16");

  world.patch(kIpPools, "", "a", "{'spec': {'ips': ['172.18.30.1-172.18.30.12']}}");
  world.settle();

  EXPECT_THAT(address(world.make_pod("y"), "a"), HasSubstr("overlap with IPPool b"));
  EXPECT_EQ(address(world.make_pod("z"), "b"), "172.18.30.10/16");
}

TEST_F(CollectorTest, does_not_use_a_pool_that_lost_an_address_in_use) {
  world.start_collector();
  world.make_pool("a", "172.18.0.0/16", "172.18.30.1-172.18.30.8");
  world.settle();
  EXPECT_EQ(address(world.make_pod("x"), "a"), "172.18.30.1/16");

  world.patch(kIpPools, "", "a", "{'spec': {'ips': ['172.18.30.2-172.18.30.8']}}");
  world.settle();
  EXPECT_THAT(events("a"), Contains(HasSubstr("172.18.30.1")));
  // Nor does another one get what is still in use.
  world.make_pool("b", "172.18.0.0/16", "172.18.30.1");
  world.settle();
  EXPECT_THAT(address(world.make_pod("y"), "b"), HasSubstr("IPPool"));
  EXPECT_TRUE(world.status("b").admitted.empty());

  world.kill_pod("x");
  world.settle(std::chrono::minutes(11));
  EXPECT_EQ(address(world.make_pod("z"), "a"), "172.18.30.2/16");
}

TEST_F(CollectorTest, lets_a_pool_go_with_its_last_address) {
  world.start_collector();
  world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.8");
  world.settle();
  const Value pod = world.make_pod("a");
  EXPECT_EQ(address(pod, "p"), "172.18.30.1/16");

  world.remove(kIpPools, "", "p");
  world.settle(std::chrono::minutes(11));
  EXPECT_FALSE(world.pool("p").is_null());
  EXPECT_THAT(address(world.make_pod("b"), "p"), HasSubstr("p"));
  world.kill_pod("a");
  world.settle(std::chrono::minutes(1));

  EXPECT_TRUE(world.pool("p").is_null());
}

TEST_F(CollectorTest, lets_reserved_addresses_go) {
  world.start_collector();
  world.create(kReservedIps, "", R"({'apiVersion': 'spiderpool.spidernet.io/v2beta1',
      'kind': 'SpiderReservedIP', 'metadata': {'name': 'r'},
      'spec': {'ips': ['172.18.30.9', '172.18.30.1-172.18.30.8']}})");
  world.settle();
  const Value reserved = world.get(kReservedIps, "", "r");
  EXPECT_EQ(reserved["spec"]["ipVersion"], Value(4));
  EXPECT_EQ(reserved["spec"]["ips"], Value::array({"172.18.30.1-172.18.30.9"}));

  world.remove(kReservedIps, "", "r");
  world.settle();

  EXPECT_TRUE(world.get(kReservedIps, "", "r").is_null());
}

TEST_F(CollectorTest, frees_the_addresses_of_a_pod_that_is_gone) {
  world.start_collector();
  world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.8");
  world.settle();
  EXPECT_EQ(address(world.make_pod("a"), "p"), "172.18.30.1/16");

  world.kill_pod("a");
  world.settle(std::chrono::seconds(2));

  EXPECT_TRUE(world.endpoint("a").is_null());
  EXPECT_EQ(world.pool("p")["status"]["allocatedIPCount"], Value(0));
}

TEST_F(CollectorTest, frees_the_addresses_of_a_pod_that_has_ended_after_its_grace) {
  world.start_collector();
  world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.8");
  world.settle();
  const Value pod = world.create(kPods, "default", R"({'metadata': {'name': 'a'},
      'spec': {'restartPolicy': 'Never', 'containers': [{'name': 'c', 'image': 'i'}]}})");
  EXPECT_EQ(address(pod, "p"), "172.18.30.1/16");

  world.patch(kPods, "default", "a",
              cat("{'status': {'phase': 'Succeeded', 'containerStatuses': [{'name': 'c', 'image': "
                  "'i', 'imageID': '', 'ready': false, 'restartCount': 0, 'state': {'terminated': "
                  "{'exitCode': 0, 'finishedAt': '",
                  format_rfc3339(world.sim.now()), "'}}}]}}"),
              "status");
  world.settle(std::chrono::seconds(20));
  EXPECT_EQ(world.pool("p")["status"]["allocatedIPCount"], Value(1)) << "30 s of grace";
  world.settle(std::chrono::seconds(20));

  EXPECT_EQ(world.pool("p")["status"]["allocatedIPCount"], Value(0));
}

TEST_F(CollectorTest, keeps_the_addresses_of_a_pod_until_its_node_has_let_it_go) {
  world.start_collector();
  world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.8");
  world.settle();
  const Value pod = world.create(kPods, "default", R"({'metadata': {'name': 'a'},
      'spec': {'nodeName': 'away', 'containers': [{'name': 'c', 'image': 'i'}]}})");
  EXPECT_EQ(address(pod, "p"), "172.18.30.1/16");

  ASSERT_TRUE(world.api->remove(kPods, "default", "a").ok());
  world.settle(std::chrono::hours(1));
  EXPECT_EQ(world.pool("p")["status"]["allocatedIPCount"], Value(1)) << "it may still answer";

  world.kill_pod("a");
  world.settle(std::chrono::seconds(2));
  EXPECT_EQ(world.pool("p")["status"]["allocatedIPCount"], Value(0));
}

TEST_F(CollectorTest, keeps_the_addresses_of_live_pods) {
  CollectorOptions options;
  options.records = 2;
  world.start_collector(options);
  world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.8");
  world.settle();
  for (int i = 0; i < 6; ++i) {
    const Value pod = world.make_pod(cat("pod-", i));
    EXPECT_EQ(address(pod, "p"), cat("172.18.30.", i + 1, "/16"));
  }

  world.settle(std::chrono::hours(1));

  EXPECT_EQ(world.pool("p")["status"]["allocatedIPCount"], Value(6));
  EXPECT_LE(world.status("p").allocated.size(), 2u);
  world.expect_nothing_lost();
}

TEST_F(CollectorTest, frees_records_that_nobody_wrote_an_endpoint_for) {
  world.start_collector();
  world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.8");
  world.settle();
  const Value pod = world.make_pod("a");
  world.patch(kIpPools, "", "p",
              cat(R"({'status': {'allocatedIPs': '{\"172.18.30.1\":{\"pod\":\"default/a\",)",
                  R"(\"podUid\":\")", client::uid_of(pod), R"(\"},\"172.18.30.2\":{\"pod\":)",
                  R"(\"default/none\",\"podUid\":\"u\"}}', 'settledIPs': ['172.18.30.5'],)",
                  R"( 'allocatedIPCount': 3}})"),
              "status");

  world.settle(std::chrono::minutes(3));

  EXPECT_EQ(world.pool("p")["status"]["allocatedIPCount"], Value(0));
}

// --- Subnets

class SubnetTest : public CollectorTest {
 public:
  SubnetTest() {
    world.start_collector();
    world.create(kSubnets, "", R"({'apiVersion': 'spiderpool.spidernet.io/v2beta1',
        'kind': 'SpiderSubnet', 'metadata': {'name': 'sub'}, 'spec': {'subnet': '172.18.0.0/16',
        'ips': ['172.18.40.1-172.18.40.20'], 'gateway': '172.18.0.1'}})");
    world.settle();
  }
  /// A Deployment with a ReplicaSet; pods of it name the subnet.
  void make_deployment(int replicas) {
    const std::string spec = cat("'spec': {'replicas': ", replicas,
                                 ", 'selector': {'matchLabels': {'a': 'b'}}, 'template': "
                                 "{'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': "
                                 "[{'name': 'c', 'image': 'i'}]}}}");
    deployment = world.create({"apps", "v1", "deployments"}, "default",
                              cat("{'metadata': {'name': 'demo'}, ", spec, "}"));
    replica_set = world.create(
        {"apps", "v1", "replicasets"}, "default",
        cat("{'metadata': {'name': 'demo-1', 'ownerReferences': [{'apiVersion': 'apps/v1', "
            "'kind': 'Deployment', 'name': 'demo', 'controller': true, 'uid': '",
            client::uid_of(deployment), "'}]}, ", spec, "}"));
  }
  Value make_pod(const std::string& name, const std::string& more = "") {
    return world.make_pod(
        name, cat(", 'ownerReferences': [{'apiVersion': 'apps/v1', 'kind': 'ReplicaSet', "
                  "'name': 'demo-1', 'controller': true, 'uid': '",
                  client::uid_of(replica_set), "'}], 'annotations': {'ipam.spidernet.io/subnet': ",
                  R"('{\"ipv4\": [\"sub\"]}')", more, "}"));
  }
  std::string auto_pool() {
    for (const auto& pool : world.list(kIpPools, "")) {
      if (client::name_of(pool).starts_with("auto4-")) return std::string(client::name_of(pool));
    }
    return "";
  }
  Value deployment;
  Value replica_set;
};

TEST_F(SubnetTest, writes_what_follows_from_a_subnet) {
  const Value subnet = world.get(kSubnets, "", "sub");

  EXPECT_EQ(subnet["spec"]["ipVersion"], Value(4));
  EXPECT_EQ(subnet["metadata"]["labels"][kLabelSubnetCidr], Value("172-18-0-0-16"));
  EXPECT_EQ(subnet["status"]["totalIPCount"], Value(20));
  EXPECT_EQ(subnet["status"]["allocatedIPCount"], Value(0));
}

TEST_F(SubnetTest, makes_a_pool_for_an_application_and_reclaims_it) {
  make_deployment(2);
  const Value pod = make_pod("demo-1-a");
  world.settle();

  const std::string name = auto_pool();
  ASSERT_THAT(name, HasSubstr("auto4-demo-eth0-"));
  EXPECT_EQ(world.pool(name)["status"]["totalIPCount"], Value(3)) << "two replicas and one more";
  EXPECT_EQ(world.pool(name)["spec"]["gateway"], Value("172.18.0.1"));
  EXPECT_EQ(world.get(kSubnets, "", "sub")["status"]["allocatedIPCount"], Value(3));
  EXPECT_THAT(world.get(kSubnets, "", "sub")["status"]["controlledIPPools"].str(), HasSubstr(name));
  const auto assigned = node.ipam->assign(pod, "node-0", {ask("eth0")});
  ASSERT_TRUE(assigned.ok()) << assigned.error().message();
  EXPECT_EQ(assigned->at(0).ipv4, "172.18.40.1/16");
  EXPECT_EQ(assigned->at(0).ipv4_pool, name);

  // It grows with the application.
  world.patch({"apps", "v1", "deployments"}, "default", "demo", "{'spec': {'replicas': 5}}");
  make_pod("demo-1-b");
  world.settle();
  EXPECT_EQ(world.pool(name)["status"]["totalIPCount"], Value(6));

  world.remove({"apps", "v1", "deployments"}, "default", "demo");
  world.kill_pod("demo-1-a");
  world.kill_pod("demo-1-b");
  world.settle(std::chrono::minutes(1));
  EXPECT_EQ(auto_pool(), "");
  EXPECT_EQ(world.get(kSubnets, "", "sub")["status"]["allocatedIPCount"], Value(0));
  world.remove(kSubnets, "", "sub");
  world.settle();
  EXPECT_TRUE(world.get(kSubnets, "", "sub").is_null());
}

TEST_F(SubnetTest, leaves_out_reserved_addresses) {
  world.create(kReservedIps, "", R"({'apiVersion': 'spiderpool.spidernet.io/v2beta1',
      'kind': 'SpiderReservedIP', 'metadata': {'name': 'r'}, 'spec': {'ips': ['172.18.40.1']}})");
  world.settle();
  make_deployment(1);
  make_pod("demo-1-a");

  world.settle();

  EXPECT_EQ(world.pool(auto_pool())["spec"]["ips"], Value::array({"172.18.40.2-172.18.40.3"}));
}

TEST_F(SubnetTest, says_when_a_subnet_loses_what_its_pools_have) {
  make_deployment(1);
  make_pod("demo-1-a");
  world.settle();

  world.patch(kSubnets, "", "sub", "{'spec': {'ips': ['172.18.40.2-172.18.40.20']}}");
  world.settle();

  EXPECT_THAT(events("sub"), Contains(HasSubstr("remove some IP ranges [172.18.40.1] that is being "
                                                "used by IPPool auto4-demo-eth0-")));
}

TEST_F(SubnetTest, says_when_a_subnet_is_too_small) {
  make_deployment(40);
  make_pod("demo-1-a");

  world.settle();

  EXPECT_EQ(auto_pool(), "");
  EXPECT_THAT(events("demo-1-a"), Contains(HasSubstr("SpiderSubnet sub")));
}

}  // namespace
}  // namespace dibs::drivers::net
