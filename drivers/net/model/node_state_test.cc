#include "drivers/net/model/node_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/net/model/grant.h"
#include "json/yaml.h"

namespace dibs::drivers::net {
namespace {

NodeState example() {
  NodeState state;
  state.node = "node-a";
  state.observed = Time::from_seconds(1'700'000'000);
  state.rdma_netns_mode = "exclusive";
  state.ovs_bridges = {"br1"};
  Interface nic;
  nic.name = "ens1f0np0";
  nic.index = 3;
  nic.kind = "device";
  nic.mac = "02:00:00:00:00:01";
  nic.mtu = 1500;
  nic.admin_up = true;
  nic.oper_state = "up";
  nic.speed_mbps = 100000;
  nic.link_layer = "ethernet";
  nic.addresses = {"172.18.0.11/16"};
  nic.subnets = {"172.18.0.0/16"};
  nic.pci_address = "0000:81:00.0";
  nic.pcie_root = "pci0000:80";
  nic.vendor = "15b3";
  nic.device = "1017";
  nic.driver = "mlx5_core";
  nic.numa_node = 0;
  nic.sriov = Sriov{8, 2, {}};
  nic.sriov->vfs = {{.index = 0,
                     .pci_address = "0000:81:00.2",
                     .netdev = "ens1f0v0",
                     .rdma_device = "mlx5_1",
                     .available = true},
                    {.index = 1, .pci_address = "0000:81:00.3", .in_use = true}};
  nic.rdma = Rdma{"mlx5_0", {"/dev/infiniband/uverbs0"}};
  nic.gpus = {"0000:82:00.0"};
  Interface vlan;
  vlan.name = "ens1.100";
  vlan.kind = "vlan";
  vlan.parent = "ens1f0np0";
  vlan.vlan_id = 100;
  vlan.is_virtual = true;
  state.interfaces = {vlan, nic};
  state.pools = {{"spidernet.io/a", PoolKind::sriov_vf, 2, {"0000:81:00.2", "0000:81:00.3"}},
                 {"spidernet.io/hca", PoolKind::rdma_shared, 500, {"ens1f0np0"}},
                 {"spidernet.io/ens1f0np0-nic", PoolKind::master_nic, 10000, {"ens1f0np0"}}};
  return state;
}

TEST(NodeState, reads_back_what_was_written) {
  const NodeState state = example();

  const auto read = parse_node_state(to_object(state, "uid-1"));

  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_TRUE(same_facts(*read, state));
  EXPECT_EQ(read->observed, state.observed);
}

TEST(NodeState, belongs_to_its_node_and_counts_for_columns) {
  const json::Value object = to_object(example(), "uid-1");

  EXPECT_EQ(object["metadata"]["ownerReferences"][0]["uid"].as_string(), "uid-1");
  EXPECT_EQ(object["metadata"]["ownerReferences"][0]["kind"].as_string(), "Node");
  EXPECT_EQ(object["status"]["nics"].as_int(), 2);
  EXPECT_EQ(object["status"]["vfsFree"].as_int(), 1);
  EXPECT_EQ(object["status"]["rdmaDevices"].as_int(), 1);
  EXPECT_TRUE(object["status"]["ready"].as_bool());
  EXPECT_EQ(object["status"]["observedTime"].as_string(), "2023-11-14T22:13:20Z");
  // What is not known is not there.
  EXPECT_FALSE(object["status"]["interfaces"][0].contains("speedMbps"));
  EXPECT_FALSE(object["status"]["interfaces"][0].contains("numaNode"));
}

TEST(NodeState, differs_by_facts_not_by_time) {
  const NodeState state = example();
  NodeState later = state;
  later.observed = later.observed + std::chrono::hours(1);
  EXPECT_TRUE(same_facts(state, later));

  NodeState down = state;
  down.interfaces[1].admin_up = false;
  EXPECT_FALSE(same_facts(state, down));

  NodeState broken = state;
  broken.problem = "netlink socket: Operation not permitted";
  EXPECT_FALSE(same_facts(state, broken));
  EXPECT_FALSE(to_object(broken, "")["status"]["ready"].as_bool());
  EXPECT_EQ(parse_node_state(to_object(broken, ""))->problem, broken.problem);
}

TEST(NodeState, finds_interfaces_functions_and_pools) {
  const NodeState state = example();

  EXPECT_EQ(state.find("ens1.100")->vlan_id, 100);
  EXPECT_EQ(state.find("ens1"), nullptr);
  EXPECT_EQ(state.vf("0000:81:00.3")->pf->name, "ens1f0np0");
  EXPECT_FALSE(state.vf("0000:81:00.9"));
  EXPECT_EQ(state.pool("spidernet.io/hca")->capacity, 500);
  EXPECT_EQ(state.pool("spidernet.io/none"), nullptr);
}

TEST(NodeState, names_the_field_that_is_wrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"{status: {interfaces: {}}}", "status.interfaces: must be a list"},
      {"{status: {interfaces: [{mtu: 3}]}}", "status.interfaces[0].name: must not be empty"},
      {"{status: {interfaces: [{name: a, mtu: x}]}}",
       "status.interfaces[0].mtu: must be an integer"},
      {"{status: {interfaces: [{name: a, index: 99999999999}]}}",
       "status.interfaces[0].index: is too large"},
      {"{status: {interfaces: [{name: a, sriov: {vfs: [{available: maybe}]}}]}}",
       "status.interfaces[0].sriov.vfs[0].available: must be true or false"},
      {"{status: {pools: [{resourceName: a, kind: b}]}}",
       "status.pools[0].kind: unknown kind of pool \"b\""},
      {"{status: {observedTime: yesterday}}", "status.observedTime: parsing time"},
      {"{status: 3}", "status: must be an object"},
  };
  for (const auto& [text, words] : cases) {
    const auto state = parse_node_state(*json::parse_yaml(text));
    ASSERT_FALSE(state.ok()) << text;
    EXPECT_THAT(state.error().message(), testing::HasSubstr(words)) << text;
  }
  EXPECT_TRUE(parse_node_state(*json::parse_yaml("{metadata: {name: a}}")).ok());
}

TEST(Grant, reads_back_what_was_written) {
  Grant grant;
  grant.node = "node-a";
  grant.nics = {{"eth0", "kube-system/macvlan-conf", "macvlan", "eth0", "", "mlx5_0", "x.io/hca"},
                {"net1", "kube-system/sriov-conf", "sriov", "ens1", "0000:81:00.2", "", "x.io/a"}};
  grant.resources = {{"x.io/a", {"0000:81:00.2", "0000:81:00.3"}}, {"x.io/hca", {"0", "1"}}};
  grant.rdma_acc = true;

  const auto read = parse_handle(handle_of(grant));

  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, grant);
  EXPECT_EQ(handle_of(Grant{.node = "n"}),
            R"({"version":1,"node":"n","nics":[],"resources":{},"rdmaAcc":false})");
}

TEST(Grant, is_none_where_the_handle_is_of_somebody_else) {
  for (const char* text :
       {"", "{}", "[]", "{\"version\":2}", "{\"version\":1,\"nics\":{}}",
        "{\"version\":1,\"resources\":{\"a\":3}}", "{\"version\":1,\"node\":4}"}) {
    EXPECT_FALSE(parse_handle(text).ok()) << text;
  }
}

TEST(Used, counts_functions_shares_and_masters_of_all_grants) {
  Grant one;
  one.nics = {{"eth0", "a/b", "macvlan", "eth0", "", "", "x.io/hca"},
              {"net1", "a/c", "ovs", "br1", "0000:81:00.9", "", ""}};
  one.resources = {{"x.io/a", {"0000:81:00.2"}}, {"x.io/hca", {"0", "1"}}};
  Grant two;
  two.resources = {{"x.io/hca", {"0"}}};

  Used used;
  used.add(one);
  used.add(two);

  EXPECT_THAT(used.vfs, testing::ElementsAre("0000:81:00.2", "0000:81:00.9"));
  EXPECT_EQ(used.shares.at("x.io/hca"), 3);
  EXPECT_EQ(used.masters.at("eth0").count("macvlan"), 1U);
}

}  // namespace
}  // namespace dibs::drivers::net
