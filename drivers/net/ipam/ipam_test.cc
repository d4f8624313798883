// Addresses given and taken back on an API server: every rule, and who meets whom.
#include "drivers/net/ipam/ipam.h"

#include <gmock/gmock.h>

#include "drivers/net/ipam/test_ipam.h"

namespace dibs::drivers::net {
namespace {

using test::ask;
using test::from_text;
using test::IpamWorld;
using test::kPods;
using test::kSets;
using test::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kSubnet = "172.18.0.0/16";

class IpamTest : public testing::Test {
 public:
  IpamWorld world;
  IpamWorld::Process& collector = world.start_collector();
  IpamWorld::Process& node = world.start_ipam();
  Ipam& ipam = *node.ipam;

  void make_pool(const std::string& name, const std::string& ips, const std::string& more = "") {
    world.make_pool(name, kSubnet, ips, more);
    world.settle();
  }
  std::string address(const Value& pod, const std::vector<NicAsk>& nics) {
    auto assigned = ipam.assign(pod, "node-0", nics);
    if (!assigned) return assigned.error().message();
    std::string out;
    for (const auto& nic : *assigned) {
      append(out, out.empty() ? "" : " ", nic.interface, "=", nic.ipv4, nic.ipv6.empty() ? "" : ",",
             nic.ipv6);
    }
    return out;
  }
};

TEST_F(IpamTest, gives_the_lowest_address_and_writes_who_has_it) {
  make_pool("ippool-test", "172.18.30.131-172.18.30.140", ", 'gateway': '172.18.0.1'");
  const Value pod = world.make_pod("demo");

  const auto assigned = ipam.assign(pod, "node-0", {ask("eth0", {"ippool-test"})});

  ASSERT_TRUE(assigned.ok()) << assigned.error().message();
  ASSERT_EQ(assigned->size(), 1u);
  EXPECT_EQ((*assigned)[0].ipv4, "172.18.30.131/16");
  EXPECT_EQ((*assigned)[0].ipv4_pool, "ippool-test");
  EXPECT_EQ((*assigned)[0].ipv4_gateway, "172.18.0.1");
  const Value pool = world.pool("ippool-test");
  EXPECT_EQ(pool["status"]["allocatedIPCount"], Value(1));
  EXPECT_EQ(pool["status"]["totalIPCount"], Value(10));
  EXPECT_EQ(
      pool["status"]["allocatedIPs"].str(),
      cat(R"({"172.18.30.131":{"pod":"default/demo","podUid":")", client::uid_of(pod), R"("}})"));
  const Value endpoint = world.endpoint("demo");
  EXPECT_EQ(endpoint["metadata"]["finalizers"], Value::array({kFinalizer}));
  EXPECT_EQ(endpoint["metadata"]["ownerReferences"][0]["uid"], pod["metadata"]["uid"]);
  EXPECT_EQ(endpoint["status"]["ownerControllerType"], Value("Pod"));
  EXPECT_EQ(endpoint["status"]["current"]["node"], Value("node-0"));
  EXPECT_EQ(endpoint["status"]["current"]["ips"][0]["ipv4"], Value("172.18.30.131/16"));
  world.expect_exact();
}

TEST_F(IpamTest, answers_the_same_when_asked_again) {
  make_pool("p", "172.18.30.131-172.18.30.140");
  const Value pod = world.make_pod("a");

  EXPECT_EQ(address(pod, {ask("eth0", {"p"})}), "eth0=172.18.30.131/16");
  const int writes = node.way.writes();
  EXPECT_EQ(address(pod, {ask("eth0", {"p"})}), "eth0=172.18.30.131/16");

  EXPECT_EQ(node.way.writes(), writes);
}

TEST_F(IpamTest, adds_an_interface_to_a_pod_that_has_one) {
  make_pool("p", "172.18.30.131-172.18.30.140");
  const Value pod = world.make_pod("a");

  EXPECT_EQ(address(pod, {ask("eth0", {"p"})}), "eth0=172.18.30.131/16");
  EXPECT_EQ(address(pod, {ask("eth0", {"p"}), ask("net1", {"p"})}),
            "eth0=172.18.30.131/16 net1=172.18.30.132/16");

  world.expect_exact();
}

TEST_F(IpamTest, gives_both_families_or_nothing) {
  make_pool("p", "172.18.30.131-172.18.30.132");
  world.make_pool("p6", "fd00::/64", "fd00::1");
  world.settle();
  const Value a = world.make_pod("a");
  const Value b = world.make_pod("b");

  EXPECT_EQ(address(a, {ask("eth0", {"p"}, {"p6"})}), "eth0=172.18.30.131/16,fd00::1/64");
  EXPECT_THAT(address(b, {ask("eth0", {"p"}, {"p6"})}),
              HasSubstr("no IPv6 address for eth0: IPPool p6: all IP addresses used out"));

  EXPECT_EQ(world.status("p").allocated.size(), 1u);
  EXPECT_TRUE(world.endpoint("b").is_null());
}

TEST_F(IpamTest, takes_back_what_it_took_when_a_later_interface_finds_nothing) {
  make_pool("p", "172.18.30.131-172.18.30.140");
  make_pool("small", "172.18.40.1");
  const Value pod = world.make_pod("a");
  // Between the look and the write another pod takes the last address.
  const Value thief = world.make_pod("thief");
  auto& other = world.start_ipam();
  node.way.between = [&](int) {
    node.way.between = nullptr;
    EXPECT_TRUE(other.ipam->assign(thief, "node-1", {ask("eth0", {"small"})}).ok());
  };

  EXPECT_THAT(address(pod, {ask("eth0", {"p"}), ask("net1", {"small"})}),
              HasSubstr("no IPv4 address for net1: IPPool small: all IP addresses used out"));

  EXPECT_THAT(world.status("p").allocated, IsEmpty());
  EXPECT_TRUE(world.endpoint("a").is_null());
  world.expect_nothing_lost();
}

TEST_F(IpamTest, goes_on_to_the_next_pool_when_one_is_used_out) {
  make_pool("first", "172.18.30.131");
  make_pool("second", "172.18.40.1-172.18.40.9");
  const std::vector<NicAsk> nics = {ask("eth0", {"first", "second"})};

  EXPECT_EQ(address(world.make_pod("a"), nics), "eth0=172.18.30.131/16");
  EXPECT_EQ(address(world.make_pod("b"), nics), "eth0=172.18.40.1/16");
}

TEST_F(IpamTest, hands_out_no_reserved_address) {
  world.create(kReservedIps, "", R"({'apiVersion': 'spiderpool.spidernet.io/v2beta1',
      'kind': 'SpiderReservedIP', 'metadata': {'name': 'r'},
      'spec': {'ips': ['172.18.30.131-172.18.30.133']}})");
  make_pool("p", "172.18.30.131-172.18.30.134");

  EXPECT_EQ(address(world.make_pod("a"), {ask("eth0", {"p"})}), "eth0=172.18.30.134/16");
  EXPECT_THAT(address(world.make_pod("b"), {ask("eth0", {"p"})}), HasSubstr("used out"));
  EXPECT_EQ(world.pool("p")["status"]["totalIPCount"], Value(4));

  world.remove(kReservedIps, "", "r");
  world.settle();
  EXPECT_EQ(address(world.make_pod("c"), {ask("eth0", {"p"})}), "eth0=172.18.30.131/16");
}

TEST_F(IpamTest, refuses_a_dead_pod) {
  make_pool("p", "172.18.30.131");
  Value pod = world.make_pod("a");
  pod.mut("metadata").set("deletionTimestamp", "2030-01-01T00:00:00Z");

  EXPECT_EQ(address(pod, {ask("eth0", {"p"})}),
            "dead Pod default/a, we cannot allocate IP addresees to it");
}

TEST_F(IpamTest, says_which_pool_is_used_out_without_writing) {
  make_pool("p", "172.18.30.131");
  EXPECT_EQ(address(world.make_pod("a"), {ask("eth0", {"p"})}), "eth0=172.18.30.131/16");
  world.settle();
  const Value pod = world.make_pod("b");
  const int writes = node.way.writes();

  const auto can = ipam.can_assign(pod, "node-0", {ask("eth0", {"p"})});

  ASSERT_FALSE(can.ok());
  EXPECT_EQ(can.error().message(), "no IPv4 address for eth0: IPPool p: all IP addresses used out");
  EXPECT_EQ(address(pod, {ask("eth0", {"p"})}), can.error().message());
  EXPECT_EQ(node.way.writes(), writes);
}

TEST_F(IpamTest, knows_that_a_pod_can_keep_what_it_has) {
  make_pool("p", "172.18.30.131");
  const Value pod = world.make_pod("a");
  EXPECT_EQ(address(pod, {ask("eth0", {"p"})}), "eth0=172.18.30.131/16");
  world.settle();

  EXPECT_TRUE(ipam.can_assign(pod, "node-0", {ask("eth0", {"p"})}).ok());
}

TEST_F(IpamTest, adds_the_routes_of_the_pod_to_the_interface_that_reaches_them) {
  make_pool("p", "172.18.30.131", ", 'routes': [{'dst': '10.0.0.0/8', 'gw': '172.18.0.2'}]");
  const Value pod = world.make_pod(
      "a",
      cat(R"(, 'annotations': {'ipam.spidernet.io/routes': '[{\"dst\": \"10.1.0.0/16\", )",
          R"(\"gw\": \"172.18.0.3\"}, {\"dst\": \"10.2.0.0/16\", \"gw\": \"192.168.0.1\"}]'})"));

  const auto assigned = ipam.assign(pod, "node-0", {ask("eth0", {"p"})});

  ASSERT_TRUE(assigned.ok()) << assigned.error().message();
  std::vector<std::string> routes;
  for (const auto& route : (*assigned)[0].routes) {
    routes.push_back(cat(route.dst.str(), " ", route.gw.str()));
  }
  EXPECT_THAT(routes, ElementsAre("10.0.0.0/8 172.18.0.2", "10.1.0.0/16 172.18.0.3"));
}

TEST_F(IpamTest, gives_back_by_uid_when_the_pod_is_gone) {
  make_pool("p", "172.18.30.131-172.18.30.140");
  world.end(collector);  // else it would be faster
  const Value pod = world.make_pod("a");
  EXPECT_EQ(address(pod, {ask("eth0", {"p"})}), "eth0=172.18.30.131/16");

  EXPECT_TRUE(ipam.release("default", "a", client::uid_of(pod)).ok());
  EXPECT_FALSE(world.endpoint("a").is_null()) << "the pod lives";
  world.kill_pod("a");
  EXPECT_TRUE(ipam.release("default", "a", "another").ok());
  EXPECT_FALSE(world.endpoint("a").is_null()) << "another uid";
  EXPECT_TRUE(ipam.release("default", "a", client::uid_of(pod)).ok());

  EXPECT_TRUE(world.endpoint("a").is_null());
  EXPECT_EQ(world.pool("p")["status"]["allocatedIPCount"], Value(0));
  EXPECT_FALSE(world.pool("p")["status"].contains("allocatedIPs"));
  EXPECT_TRUE(ipam.release("default", "a", client::uid_of(pod)).ok()) << "repeatable";
}

TEST_F(IpamTest, takes_an_endpoint_over_from_a_pod_of_the_same_name) {
  make_pool("p", "172.18.30.131-172.18.30.140");
  world.end(collector);  // else it would be faster
  EXPECT_EQ(address(world.make_pod("a"), {ask("eth0", {"p"})}), "eth0=172.18.30.131/16");
  world.kill_pod("a");
  const Value pod = world.make_pod("a");

  EXPECT_EQ(address(pod, {ask("eth0", {"p"})}), "eth0=172.18.30.131/16");

  const Value endpoint = world.endpoint("a");
  EXPECT_EQ(endpoint["status"]["current"]["uid"], pod["metadata"]["uid"]);
  EXPECT_EQ(endpoint["metadata"]["ownerReferences"][0]["uid"], pod["metadata"]["uid"]);
  EXPECT_EQ(world.status("p").allocated.size(), 1u);
}

class StatefulSetTest : public IpamTest {
 public:
  StatefulSetTest() {
    set = world.create(kSets, "default", R"({'metadata': {'name': 'web'}, 'spec': {'replicas': 2,
        'selector': {'matchLabels': {'a': 'b'}}, 'serviceName': 's',
        'template': {'metadata': {'labels': {'a': 'b'}},
                     'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}}})");
  }
  Value make(const std::string& name) {
    return world.make_pod(name, cat(", 'ownerReferences': [{'apiVersion': 'apps/v1', "
                                    "'kind': 'StatefulSet', 'name': 'web', 'controller': true, "
                                    "'uid': '",
                                    client::uid_of(set), "'}]"));
  }
  Value set;
};

TEST_F(StatefulSetTest, keeps_addresses_for_the_next_pod_of_the_name) {
  make_pool("p", "172.18.30.131-172.18.30.140");
  const Value zero = make("web-0");
  const Value one = make("web-1");
  EXPECT_EQ(address(zero, {ask("eth0", {"p"})}), "eth0=172.18.30.131/16");
  EXPECT_EQ(address(one, {ask("eth0", {"p"})}), "eth0=172.18.30.132/16");
  EXPECT_FALSE(world.endpoint("web-1")["metadata"].contains("ownerReferences"));

  world.kill_pod("web-1");
  EXPECT_TRUE(ipam.release("default", "web-1", client::uid_of(one)).ok());
  world.settle(std::chrono::minutes(20));
  EXPECT_EQ(world.status("p").allocated.size(), 2u) << "the set will make it again";
  const Value next = make("web-1");
  EXPECT_EQ(ipam.assign(next, "node-7", {ask("eth0", {"p"})})->at(0).ipv4, "172.18.30.132/16");

  EXPECT_EQ(world.endpoint("web-1")["status"]["current"]["uid"], next["metadata"]["uid"]);
  EXPECT_EQ(world.endpoint("web-1")["status"]["current"]["node"], Value("node-7"));
  const auto records = world.status("p").allocated;
  EXPECT_EQ(records.at(*Ip::parse("172.18.30.132")).uid, client::uid_of(next));
  world.expect_exact();
}

TEST_F(StatefulSetTest, gives_addresses_back_when_scaled_down) {
  make_pool("p", "172.18.30.131-172.18.30.140");
  const Value one = make("web-1");
  EXPECT_EQ(address(one, {ask("eth0", {"p"})}), "eth0=172.18.30.131/16");

  world.patch(kSets, "default", "web", "{'spec': {'replicas': 1}}");
  world.kill_pod("web-1");
  EXPECT_TRUE(ipam.release("default", "web-1", client::uid_of(one)).ok());

  EXPECT_THAT(world.status("p").allocated, IsEmpty());
}

TEST_F(StatefulSetTest, gets_new_addresses_when_its_pools_are_others) {
  make_pool("p", "172.18.30.131-172.18.30.140");
  make_pool("q", "172.18.40.1-172.18.40.9");
  const Value one = make("web-1");
  EXPECT_EQ(address(one, {ask("eth0", {"p"}), ask("net1", {"p"})}),
            "eth0=172.18.30.131/16 net1=172.18.30.132/16");
  world.kill_pod("web-1");

  EXPECT_EQ(address(make("web-1"), {ask("eth0", {"q"}), ask("net1", {"p"})}),
            "eth0=172.18.40.1/16 net1=172.18.30.132/16");

  EXPECT_EQ(world.status("p").allocated.size(), 1u);
  world.expect_nothing_lost();
}

TEST_F(IpamTest, gives_200_pods_of_20_processes_200_addresses) {
  make_pool("p", "172.18.30.1-172.18.30.200");
  std::vector<IpamWorld::Process*> processes;
  for (int i = 0; i < 20; ++i) processes.push_back(&world.start_ipam());
  std::set<std::string> addresses;
  int failed = 0;
  for (int i = 0; i < 200; ++i) {
    const Value pod = world.make_pod(cat("pod-", i));
    auto* process = processes[static_cast<std::size_t>(i) % processes.size()];
    world.sim.runtime().executor.post([&, pod, process] {
      auto assigned = process->ipam->assign(pod, "node-0", {ask("eth0", {"p"})});
      if (assigned) {
        addresses.insert(assigned->at(0).ipv4);
      } else {
        ++failed;
        ADD_FAILURE() << assigned.error().message();
      }
    });
  }

  world.settle();

  EXPECT_EQ(failed, 0);
  EXPECT_EQ(addresses.size(), 200u);
  EXPECT_EQ(world.pool("p")["status"]["allocatedIPCount"], Value(200));
  world.expect_nothing_lost();
}

TEST_F(IpamTest, looks_again_when_a_pod_goes_to_another_node_than_planned) {
  make_pool("p", "172.18.30.1", ", 'nodeName': ['node-0']");
  make_pool("q", "172.18.40.1", ", 'nodeName': ['node-1']");
  make_pool("r", "172.18.50.1-172.18.50.9");
  Value pod = world.make_pod("a");
  const std::vector<NicAsk> nics = {ask("eth0", {"p", "q"}), ask("net1", {"r"})};
  EXPECT_EQ(address(pod, nics), "eth0=172.18.30.1/16 net1=172.18.50.1/16");

  const auto moved = ipam.assign(pod, "node-1", nics);

  ASSERT_TRUE(moved.ok()) << moved.error().message();
  EXPECT_EQ(moved->at(0).ipv4, "172.18.40.1/16");
  EXPECT_EQ(moved->at(1).ipv4, "172.18.50.1/16");
  EXPECT_EQ(world.endpoint("a")["status"]["current"]["node"], Value("node-1"));
  world.expect_nothing_lost();
  // One that runs is not moved.
  pod.mut("spec").set("nodeName", "node-1");
  EXPECT_EQ(address(pod, nics), "Pod default/a runs on node node-1, not on node-0");
}

TEST_F(IpamTest, needs_no_watch_to_be_exact) {
  world.create(kReservedIps, "", R"({'apiVersion': 'spiderpool.spidernet.io/v2beta1',
      'kind': 'SpiderReservedIP', 'metadata': {'name': 'r'}, 'spec': {'ips': ['172.18.30.1']}})");
  world.create({"", "v1", "nodes"}, "",
               "{'metadata': {'name': 'node-a', 'labels': {'rack': 'one'}}}");
  make_pool("p", "172.18.30.1-172.18.30.9", ", 'nodeAffinity': {'matchLabels': {'rack': 'one'}}");
  IpamOptions options;
  options.watch = false;
  auto& process = world.start_ipam(options);
  const std::vector<NicAsk> nics = {ask("eth0", {"p"})};

  const Value pod = world.make_pod("a");
  EXPECT_EQ(process.ipam->assign(pod, "node-a", nics)->at(0).ipv4, "172.18.30.2/16");
  EXPECT_EQ(ipam.assign(world.make_pod("b"), "node-a", nics)->at(0).ipv4, "172.18.30.3/16");
  EXPECT_EQ(process.ipam->assign(world.make_pod("c"), "node-a", nics)->at(0).ipv4,
            "172.18.30.4/16");
  EXPECT_FALSE(process.ipam->assign(world.make_pod("d"), "node-b", nics).ok());
  world.end(collector);  // else it would be faster
  world.kill_pod("a");
  auto& other = world.start_ipam(options);
  EXPECT_TRUE(other.ipam->release("default", "a", client::uid_of(pod)).ok());

  EXPECT_EQ(world.status("p").allocated.size(), 2u);
  world.expect_nothing_lost();
}

TEST_F(IpamTest, settles_records_when_there_are_many) {
  make_pool("p", "172.18.0.2-172.18.255.254");
  IpamOptions options;
  options.records = 8;
  auto& process = world.start_ipam(options);
  std::vector<Value> pods;
  for (int i = 0; i < 30; ++i) {
    pods.push_back(world.make_pod(cat("pod-", i)));
    ASSERT_TRUE(process.ipam->assign(pods.back(), "node-0", {ask("eth0", {"p"})}).ok());
  }

  EXPECT_LE(world.status("p").allocated.size(), 9u);
  EXPECT_EQ(world.pool("p")["status"]["allocatedIPCount"], Value(30));
  world.expect_exact();

  // Settled addresses come back too.
  for (const auto& pod : pods) {
    world.kill_pod(std::string(client::name_of(pod)));
    EXPECT_TRUE(process.ipam->release("default", client::name_of(pod), client::uid_of(pod)).ok());
  }
  world.settle(std::chrono::minutes(2));
  EXPECT_EQ(world.pool("p")["status"]["allocatedIPCount"], Value(0));
  world.expect_nothing_lost();
  EXPECT_EQ(address(world.make_pod("next"), {ask("eth0", {"p"})}), "eth0=172.18.0.2/16");
}

}  // namespace
}  // namespace dibs::drivers::net
