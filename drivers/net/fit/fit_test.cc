#include "drivers/net/fit/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::drivers::net {
namespace {

using testing::ElementsAre;

const Time kNow = Time::from_seconds(1'700'000'000);

Interface device(const std::string& name) {
  Interface out;
  out.name = name;
  out.kind = "device";
  out.admin_up = true;
  out.link_layer = "ethernet";
  return out;
}

/// eth0 (RDMA, in the pool hca), eth1, eth2 (down), ib0, and two NICs with functions: ens1 (four,
/// with RDMA, the first one in a pod) and ibs1 (InfiniBand, two).
NodeState node() {
  NodeState state;
  state.node = "node-a";
  state.observed = kNow;
  state.rdma_netns_mode = "exclusive";
  state.ovs_bridges = {"br1"};
  Interface eth0 = device("eth0");
  eth0.rdma = Rdma{"mlx5_9", {}};
  eth0.addresses = {"172.18.0.11/16", "fd00::11/64"};
  Interface eth2 = device("eth2");
  eth2.admin_up = false;
  Interface ib0 = device("ib0");
  ib0.link_layer = "infiniband";
  Interface ens1 = device("ens1");
  ens1.pci_address = "0000:81:00.0";
  ens1.addresses = {"10.6.0.1/16"};
  ens1.sriov = Sriov{8, 4, {}};
  for (int i = 0; i < 4; ++i) {
    ens1.sriov->vfs.push_back({.index = i,
                               .pci_address = "0000:81:00." + std::to_string(i + 2),
                               .rdma_device = i < 3 ? "mlx5_" + std::to_string(i) : "",
                               .available = i > 0});
  }
  Interface ibs1 = device("ibs1");
  ibs1.link_layer = "infiniband";
  ibs1.pci_address = "0000:c1:00.0";
  ibs1.sriov =
      Sriov{2, 1, {{.pci_address = "0000:c1:00.2", .rdma_device = "mlx5_5", .available = true}}};
  state.interfaces = {ens1, eth0, device("eth1"), eth2, ib0, ibs1};
  state.pools = {{"x.io/a",
                  PoolKind::sriov_vf,
                  4,
                  {"0000:81:00.2", "0000:81:00.3", "0000:81:00.4", "0000:81:00.5"}},
                 {"x.io/ib", PoolKind::sriov_vf, 1, {"0000:c1:00.2"}},
                 {"x.io/hca", PoolKind::rdma_shared, 2, {"eth0"}},
                 {"x.io/eth1-nic", PoolKind::master_nic, 1, {"eth1"}}};
  return state;
}

MultusConfig config(const std::string& type) {
  MultusConfig out;
  out.name = "conf";
  out.name_space = "kube-system";
  out.cni_type = type;
  return out;
}

MultusConfig on(const std::string& type, std::vector<std::string> masters) {
  MultusConfig out = config(type);
  out.masters = std::move(masters);
  return out;
}

MultusConfig from(const std::string& type, const std::string& pool) {
  MultusConfig out = config(type);
  out.resource_name = pool;
  return out;
}

/// Why not; "" where it fits.
std::string reason(const NodeState& state, const std::vector<MultusConfig>& configs,
                   const ClaimParameter& parameter = {}, const Used& used = {}) {
  std::vector<Need> needs;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    needs.push_back({configs[i], i == 0 ? "eth0" : "net" + std::to_string(i)});
  }
  const auto grant = fit(&state, needs, parameter, used, kNow);
  return grant.ok() ? "" : grant.error().message();
}

Grant granted(const NodeState& state, const std::vector<MultusConfig>& configs,
              const ClaimParameter& parameter = {}, const Used& used = {}) {
  std::vector<Need> needs;
  for (const auto& one : configs) needs.push_back({one, "net"});
  const auto grant = fit(&state, needs, parameter, used, kNow);
  EXPECT_TRUE(grant.ok()) << (grant.ok() ? "" : grant.error().message());
  return grant.ok() ? *grant : Grant();
}

TEST(Fit, needs_every_master_up) {
  for (const char* type : {"macvlan", "ipvlan", "vlan"}) {
    EXPECT_EQ(reason(node(), {on(type, {"eth0"})}), "") << type;
    EXPECT_EQ(reason(node(), {on(type, {"eth9"})}), "no interface \"eth9\" (kube-system/conf)");
    EXPECT_EQ(reason(node(), {on(type, {"eth2"})}),
              "interface \"eth2\" is down (kube-system/conf)");
  }
  EXPECT_EQ(granted(node(), {on("macvlan", {"eth0"})}).nics[0].master, "eth0");
}

TEST(Fit, needs_a_bond_that_is_to_be_or_is_right) {
  MultusConfig bonded = on("macvlan", {"eth1", "eth0"});
  bonded.bond = Bond{"bond0", 1, ""};
  NodeState state = node();
  EXPECT_EQ(reason(state, {bonded}), "");
  EXPECT_EQ(granted(state, {bonded}).nics[0].master, "bond0");

  Interface bond = device("bond0");
  state.interfaces.push_back(bond);
  EXPECT_EQ(reason(state, {bonded}),
            "interface \"bond0\" is no bond of eth0, eth1 (kube-system/conf)");
  state.interfaces.back().kind = "bond";
  state.interfaces.back().bond_members = {"eth0", "eth1"};
  EXPECT_EQ(reason(state, {bonded}), "");
  state.interfaces.back().bond_members = {"eth0", "eth1", "ens1"};
  EXPECT_EQ(reason(state, {bonded}),
            "interface \"bond0\" is no bond of eth0, eth1 (kube-system/conf)");
  state.interfaces.back().name = "bond9";
  EXPECT_EQ(reason(state, {bonded}),
            "interface \"eth0\" is part of bond \"bond9\" (kube-system/conf)");
}

TEST(Fit, needs_a_vlan_that_is_to_be_or_is_right) {
  MultusConfig tagged = on("ipvlan", {"eth0"});
  tagged.vlan_id = 100;
  NodeState state = node();
  EXPECT_EQ(reason(state, {tagged}), "");
  EXPECT_EQ(granted(state, {tagged}).nics[0].master, "eth0.100");

  state.interfaces.push_back(device("eth0.100"));
  const char* wrong = "interface \"eth0.100\" is no VLAN 100 of eth0 (kube-system/conf)";
  EXPECT_EQ(reason(state, {tagged}), wrong);
  state.interfaces.back().kind = "vlan";
  state.interfaces.back().vlan_id = 100;
  state.interfaces.back().parent = "eth1";
  EXPECT_EQ(reason(state, {tagged}), wrong);
  state.interfaces.back().parent = "eth0";
  EXPECT_EQ(reason(state, {tagged}), "");
  state.interfaces.back().vlan_id = 99;
  EXPECT_EQ(reason(state, {tagged}), wrong);
}

TEST(Fit, never_mixes_macvlan_and_ipvlan_on_a_device) {
  const char* wrong = "interface \"eth0\" carries ipvlan links (kube-system/conf)";
  Used used;
  used.masters["eth0"] = {"ipvlan"};
  EXPECT_EQ(reason(node(), {on("macvlan", {"eth0"})}, {}, used), wrong);
  EXPECT_EQ(reason(node(), {on("ipvlan", {"eth0"})}, {}, used), "");
  EXPECT_EQ(reason(node(), {on("vlan", {"eth0"})}, {}, used), "");
  EXPECT_EQ(reason(node(), {on("macvlan", {"eth1"})}, {}, used), "");
  // Within one pod, and beside a link of the host.
  EXPECT_EQ(reason(node(), {on("ipvlan", {"eth0"}), on("macvlan", {"eth0"})}), wrong);
  NodeState state = node();
  Interface link = device("ipvl0");
  link.kind = "ipvlan";
  link.parent = "eth0";
  state.interfaces.push_back(link);
  EXPECT_EQ(reason(state, {on("macvlan", {"eth0"})}), wrong);
}

TEST(Fit, gives_a_share_of_rdma_with_a_master) {
  MultusConfig named = on("macvlan", {"eth0"});
  named.rdma_resource_name = "x.io/hca";
  MultusConfig found = on("macvlan", {"eth0"});
  found.enable_rdma = true;
  for (const auto& one : {named, found}) {
    const Grant grant = granted(node(), {one});
    EXPECT_EQ(grant.nics[0].resource_name, "x.io/hca");
    EXPECT_EQ(grant.nics[0].rdma_device, "mlx5_9");
    EXPECT_EQ(grant.resources.at("x.io/hca").size(), 1U);
  }

  Used used;
  used.shares["x.io/hca"] = 1;
  EXPECT_EQ(reason(node(), {named}, {}, used), "");
  EXPECT_EQ(reason(node(), {named, found}, {}, used), "no free share in x.io/hca");
  used.shares["x.io/hca"] = 2;
  EXPECT_EQ(reason(node(), {named}, {}, used), "no free share in x.io/hca");

  named.rdma_resource_name = "x.io/none";
  EXPECT_EQ(reason(node(), {named}), "no resource x.io/none");
  named.rdma_resource_name = "x.io/a";
  EXPECT_EQ(reason(node(), {named}), "resource x.io/a is of kind sriovVF, not rdmaShared");
  found.masters = {"eth1"};
  EXPECT_EQ(reason(node(), {found}), "no RDMA pool has interface \"eth1\" (kube-system/conf)");
  NodeState two = node();
  two.pools.push_back({"x.io/more", PoolKind::rdma_shared, 5, {"eth0"}});
  found.masters = {"eth0"};
  EXPECT_EQ(reason(two, {found}),
            "interface \"eth0\" is in several RDMA pools (x.io/hca, x.io/more), rdmaResourceName "
            "must name one (kube-system/conf)");
}

TEST(Fit, gives_the_lowest_free_function) {
  Grant grant = granted(node(), {from("sriov", "x.io/a")});
  EXPECT_EQ(grant.nics[0].vf, "0000:81:00.3");
  EXPECT_EQ(grant.nics[0].master, "ens1");
  EXPECT_EQ(grant.nics[0].resource_name, "x.io/a");
  EXPECT_THAT(grant.resources.at("x.io/a"), ElementsAre("0000:81:00.3"));

  Used used;
  used.vfs = {"0000:81:00.3"};
  EXPECT_EQ(granted(node(), {from("sriov", "x.io/a")}, {}, used).nics[0].vf, "0000:81:00.4");
  used.vfs = {"0000:81:00.3", "0000:81:00.4"};
  EXPECT_EQ(reason(node(), {from("sriov", "x.io/a")}, {}, used), "");
  EXPECT_EQ(reason(node(), {from("sriov", "x.io/a"), from("sriov", "x.io/a")}, {}, used),
            "no free VF in x.io/a");
  used.vfs.insert("0000:81:00.5");
  EXPECT_EQ(reason(node(), {from("sriov", "x.io/a")}, {}, used), "no free VF in x.io/a");
  EXPECT_EQ(reason(node(), {from("sriov", "x.io/none")}), "no resource x.io/none");
  EXPECT_EQ(reason(node(), {from("sriov", "")}),
            "several SR-IOV pools, resourceName must name one (kube-system/conf)");
}

TEST(Fit, gives_a_function_with_rdma_where_that_is_isolated) {
  MultusConfig rdma = from("sriov", "x.io/a");
  rdma.rdma_isolation = true;
  EXPECT_EQ(granted(node(), {rdma}).nics[0].rdma_device, "mlx5_1");

  Used used;
  used.vfs = {"0000:81:00.3", "0000:81:00.4"};
  EXPECT_EQ(reason(node(), {rdma}, {}, used), "no free VF with an RDMA device in x.io/a");
  NodeState shared = node();
  shared.rdma_netns_mode = "shared";
  EXPECT_EQ(reason(shared, {rdma}),
            "RDMA network namespace mode is not exclusive (kube-system/conf)");
  // One that can use any function does not take the last one with RDMA.
  used.vfs = {"0000:81:00.3"};
  const Grant both = granted(node(), {from("sriov", "x.io/a"), rdma}, {}, used);
  EXPECT_EQ(both.nics[0].vf, "0000:81:00.5");
  EXPECT_EQ(both.nics[1].vf, "0000:81:00.4");
}

TEST(Fit, gives_functions_of_infiniband) {
  MultusConfig isolated = from("ib-sriov", "x.io/ib");
  isolated.rdma_isolation = true;
  EXPECT_EQ(granted(node(), {isolated}).nics[0].vf, "0000:c1:00.2");
  NodeState shared = node();
  shared.rdma_netns_mode = "";
  EXPECT_EQ(reason(shared, {isolated}),
            "RDMA network namespace mode is not exclusive (kube-system/conf)");
  EXPECT_EQ(reason(shared, {from("ib-sriov", "x.io/ib")}), "");
  EXPECT_EQ(reason(node(), {from("ib-sriov", "x.io/a")}), "no free InfiniBand VF in x.io/a");
}

TEST(Fit, gives_a_whole_nic_to_one_alone) {
  NodeState state = node();
  state.interfaces[2].pci_address = "0000:d1:00.0";  // eth1
  state.pools.push_back({"x.io/whole", PoolKind::sriov_vf, 1, {"0000:d1:00.0"}});
  EXPECT_EQ(granted(state, {from("sriov", "x.io/whole")}).nics[0].vf, "0000:d1:00.0");

  Used carried;
  carried.masters["eth1.7"] = {"macvlan"};
  EXPECT_EQ(reason(state, {from("sriov", "x.io/whole")}, {}, carried), "no free VF in x.io/whole");
  Used given;
  given.vfs = {"0000:d1:00.0"};
  EXPECT_EQ(reason(state, {on("macvlan", {"eth1"})}, {}, given),
            "interface \"eth1\" is given to a pod as a whole (kube-system/conf)");
}

TEST(Fit, needs_infiniband_for_ipoib) {
  EXPECT_EQ(reason(node(), {on("ipoib", {"ib0"})}), "");
  EXPECT_EQ(reason(node(), {on("ipoib", {"eth0"})}),
            "interface \"eth0\" is no InfiniBand device (kube-system/conf)");
  EXPECT_EQ(reason(node(), {on("ipoib", {"ib9"})}), "no interface \"ib9\" (kube-system/conf)");
}

TEST(Fit, needs_the_bridge_and_the_device_of_ovs) {
  MultusConfig ovs = config("ovs");
  ovs.bridge = "br1";
  EXPECT_EQ(reason(node(), {ovs}), "");
  ovs.bridge = "br2";
  EXPECT_EQ(reason(node(), {ovs}), "no OVS bridge \"br2\" (kube-system/conf)");
  ovs.bridge = "br1";
  ovs.device_id = "0000:81:00.3";
  EXPECT_EQ(granted(node(), {ovs}).nics[0].vf, "0000:81:00.3");
  // The one that is named goes first, wherever it stands.
  const Grant both = granted(node(), {from("sriov", "x.io/a"), ovs});
  EXPECT_EQ(both.nics[0].vf, "0000:81:00.4");
  Used used;
  used.vfs = {"0000:81:00.3"};
  EXPECT_EQ(reason(node(), {ovs}, {}, used), "device 0000:81:00.3 is in use (kube-system/conf)");
  ovs.device_id = "0000:ff:00.0";
  EXPECT_EQ(reason(node(), {ovs}), "device 0000:ff:00.0 is not there (kube-system/conf)");
}

TEST(Fit, needs_the_master_that_a_custom_configuration_names) {
  MultusConfig custom = config("custom");
  for (const char* text : {"", "no json", "{}", "{\"master\": 3}", "{\"plugins\": []}",
                           "{\"master\": \"eth0\"}", "{\"plugins\": [{\"master\": \"eth1\"}]}",
                           "{\"plugins\": [{\"type\": \"x\"}, {\"master\": \"eth9\"}]}"}) {
    custom.custom_cni = text;
    EXPECT_EQ(reason(node(), {custom}), "") << text;
  }
  for (const char* text : {"{\"master\": \"eth9\"}", "{\"plugins\": [{\"master\": \"eth9\"}]}"}) {
    custom.custom_cni = text;
    EXPECT_EQ(reason(node(), {custom}), "no interface \"eth9\" (kube-system/conf)") << text;
  }
}

TEST(Fit, takes_the_greater_of_resources_and_nics) {
  ClaimParameter parameter;
  parameter.resources = {{"x.io/a", 1}};
  EXPECT_THAT(granted(node(), {from("sriov", "x.io/a")}, parameter).resources.at("x.io/a"),
              ElementsAre("0000:81:00.3"));
  parameter.resources = {{"x.io/a", 3}};
  EXPECT_THAT(granted(node(), {from("sriov", "x.io/a")}, parameter).resources.at("x.io/a"),
              ElementsAre("0000:81:00.3", "0000:81:00.4", "0000:81:00.5"));
  parameter.resources = {{"x.io/a", 4}};
  EXPECT_EQ(reason(node(), {}, parameter), "only 3 free VFs in x.io/a, not 4");
  EXPECT_EQ(reason(node(), {from("sriov", "x.io/a")}, parameter),
            "only 2 free VFs in x.io/a, not 3");
  parameter.resources = {{"x.io/hca", 2}};
  EXPECT_EQ(granted(node(), {}, parameter).resources.at("x.io/hca").size(), 2U);
  parameter.resources = {{"x.io/hca", 3}};
  EXPECT_EQ(reason(node(), {}, parameter), "only 2 free in x.io/hca, not 3");
  parameter.resources = {{"x.io/eth1-nic", 1}};
  EXPECT_EQ(reason(node(), {}, parameter), "");
  parameter.resources = {{"x.io/none", 1}};
  EXPECT_EQ(reason(node(), {}, parameter), "no resource x.io/none");
  parameter.resources = {{"x.io/none", 0}};
  EXPECT_EQ(reason(node(), {}, parameter), "");
}

TEST(Fit, wants_rdma_of_every_nic_where_the_claim_does) {
  ClaimParameter parameter;
  parameter.enable_rdma = true;
  EXPECT_EQ(granted(node(), {on("macvlan", {"eth0"})}, parameter).nics[0].rdma_device, "mlx5_9");
  EXPECT_EQ(reason(node(), {on("macvlan", {"eth0"}), on("macvlan", {"eth1"})}, parameter),
            "interface \"eth1\" has no RDMA device (kube-system/conf)");
  EXPECT_EQ(granted(node(), {from("sriov", "x.io/a")}, parameter).nics[0].rdma_device, "mlx5_1");
  Used used;
  used.vfs = {"0000:81:00.3", "0000:81:00.4"};
  EXPECT_EQ(reason(node(), {from("sriov", "x.io/a")}, parameter, used),
            "no free VF with an RDMA device in x.io/a");
  EXPECT_EQ(reason(node(), {on("ipoib", {"ib0"})}, parameter),
            "interface \"ib0\" has no RDMA device (kube-system/conf)");
  EXPECT_EQ(reason(node(), {config("custom")}, parameter), "no RDMA device (kube-system/conf)");
}

TEST(Fit, trusts_no_report_that_is_missing_or_old) {
  NodeState state = node();
  const std::vector<Need> macvlan = {{on("macvlan", {"eth0"}), "eth0"}};
  const std::vector<Need> custom = {{config("custom"), "eth0"}};
  ClaimParameter resources;
  resources.resources = {{"x.io/a", 1}};

  EXPECT_EQ(fit(nullptr, macvlan, {}, {}, kNow).error().message(), "no SpiderNodeState");
  EXPECT_EQ(fit(nullptr, {}, resources, {}, kNow).error().message(), "no SpiderNodeState");
  EXPECT_TRUE(fit(nullptr, custom, {}, {}, kNow).ok());
  EXPECT_TRUE(fit(nullptr, {}, {}, {}, kNow).ok());

  const Time late = kNow + std::chrono::seconds(301);
  EXPECT_TRUE(fit(&state, macvlan, {}, {}, kNow + std::chrono::seconds(300)).ok());
  EXPECT_EQ(fit(&state, macvlan, {}, {}, late).error().message(), "SpiderNodeState is 5m1s old");
  EXPECT_TRUE(fit(&state, custom, {}, {}, late).ok());
  state.problem = "netlink socket: Operation not permitted";
  EXPECT_EQ(fit(&state, macvlan, {}, {}, kNow).error().message(),
            "SpiderNodeState is not ready: netlink socket: Operation not permitted");
}

TEST(HostSubnets, are_addresses_of_the_device_that_carries_the_traffic) {
  const auto texts = [](const std::optional<std::vector<Subnet>>& subnets) {
    std::vector<std::string> out;
    for (const auto& one : subnets.value_or(std::vector<Subnet>())) out.push_back(one.str());
    return out;
  };
  NodeState state = node();
  EXPECT_THAT(texts(host_subnets(state, on("macvlan", {"eth0"}))),
              ElementsAre("172.18.0.11/32", "fd00::11/128"));
  MultusConfig tagged = on("macvlan", {"eth0"});
  tagged.vlan_id = 100;
  EXPECT_FALSE(host_subnets(state, tagged));
  Interface vlan = device("eth0.100");
  vlan.addresses = {"10.9.0.1/24"};
  state.interfaces.push_back(vlan);
  EXPECT_THAT(texts(host_subnets(state, tagged)), ElementsAre("10.9.0.1/32"));
  EXPECT_THAT(texts(host_subnets(state, from("sriov", "x.io/a"), "0000:81:00.3")),
              ElementsAre("10.6.0.1/32"));
  EXPECT_FALSE(host_subnets(state, from("sriov", "x.io/a")));
  EXPECT_TRUE(host_subnets(state, on("macvlan", {"eth1"}))->empty());
  EXPECT_FALSE(host_subnets(state, config("custom")));
}

}  // namespace
}  // namespace dibs::drivers::net
