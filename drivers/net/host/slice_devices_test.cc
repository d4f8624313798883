#include "drivers/net/host/slice_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/test_cluster.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using testing::ElementsAre;

const client::Gvr kSlices = {"resource.k8s.io", "v1", "resourceslices"};
const client::Gvr kNodes = {"", "v1", "nodes"};

Interface nic(const std::string& name) {
  Interface out;
  out.name = name;
  out.kind = "device";
  out.link_layer = "ethernet";
  out.mac = "02:00:00:00:00:01";
  out.mtu = 1500;
  out.admin_up = true;
  out.oper_state = "up";
  return out;
}

NodeState node() {
  NodeState state;
  state.node = "node-a";
  Interface ens1 = nic("ens1f0np0");
  ens1.addresses = {"10.6.0.1/16", "172.18.0.11/16", "fd00::11/64"};
  ens1.speed_mbps = 25'999;
  ens1.pci_address = "0000:81:00.0";
  ens1.pcie_root = "pci0000:80";
  ens1.numa_node = 1;
  ens1.rdma = Rdma{"mlx5_0", {}};
  ens1.gpus = {"0000:82:00.0"};
  ens1.sriov = Sriov{8, 3, {}};
  ens1.sriov->vfs = {
      {.index = 0, .pci_address = "0000:81:00.2", .rdma_device = "mlx5_1", .available = true},
      {.index = 1, .pci_address = "0000:81:00.3", .in_use = true},
      {.index = 2, .pci_address = "0000:81:00.4"}};
  Interface eth0 = nic("eth0");
  eth0.kind = "veth";
  eth0.is_virtual = true;
  Interface vlan = nic("eth0.100");
  vlan.kind = "vlan";
  vlan.is_virtual = true;
  state.interfaces = {ens1, eth0, vlan};
  state.pools = {{"x.io/a", PoolKind::sriov_vf, 2, {"0000:81:00.2", "0000:81:00.3"}},
                 {"x.io/hca", PoolKind::rdma_shared, 500, {"ens1f0np0"}}};
  return state;
}

MultusConfig macvlan(const std::string& name, const std::string& master) {
  MultusConfig out;
  out.name = name;
  out.name_space = "kube-system";
  out.cni_type = "macvlan";
  out.masters = {master};
  return out;
}

std::vector<std::string> names(const std::vector<driver::Device>& devices) {
  std::vector<std::string> out;
  for (const auto& one : devices) out.push_back(one.object()["name"].str());
  return out;
}

Value device(const std::vector<driver::Device>& devices, std::string_view name) {
  for (const auto& one : devices) {
    if (one.object()["name"].as_string() == name) return one.object();
  }
  return {};
}

TEST(SliceDevices, tell_all_of_a_nic) {
  const auto devices = slice_devices(
      node(), {macvlan("macvlan-a", "ens1f0np0"), macvlan("macvlan-b", "ens1f0np01")});

  const Value one = device(devices, "ens1f0np0");
  const Value& attributes = one["attributes"];
  EXPECT_EQ(attributes["type"]["string"].as_string(), "nic");
  EXPECT_EQ(attributes["name"]["string"].as_string(), "ens1f0np0");
  EXPECT_EQ(attributes["linkType"]["string"].as_string(), "ethernet");
  EXPECT_EQ(attributes["mtu"]["int"].as_int(), 1500);
  EXPECT_EQ(attributes["state"]["string"].as_string(), "up");
  EXPECT_EQ(attributes["mac"]["string"].as_string(), "02:00:00:00:00:01");
  EXPECT_TRUE(attributes["rdma"]["bool"].as_bool());
  EXPECT_EQ(attributes["gdrAffinityGpus"]["string"].as_string(), "0000:82:00.0");
  EXPECT_EQ(attributes["ipv4CIDR"]["string"].as_string(), "172.18.0.0/16");
  EXPECT_EQ(attributes["ipv6CIDR"]["string"].as_string(), "fd00::/64");
  EXPECT_EQ(attributes["pciAddress"]["string"].as_string(), "0000:81:00.0");
  EXPECT_TRUE(attributes["isSriovPf"]["bool"].as_bool());
  EXPECT_EQ(attributes["bandwidthGbps"]["string"].as_string(), "25");
  EXPECT_EQ(attributes["cniConfigs"]["string"].as_string(), "macvlan-a");
  EXPECT_EQ(attributes["resource.kubernetes.io/pciBusID"]["string"].as_string(), "0000:81:00.0");
  EXPECT_EQ(attributes["resource.kubernetes.io/pcieRoot"]["string"].as_string(), "pci0000:80");
  EXPECT_EQ(attributes["resource.kubernetes.io/numaNode"]["int"].as_int(), 1);
  EXPECT_TRUE(one["allowMultipleAllocations"].as_bool());
  EXPECT_EQ(one["capacity"]["capacity.spidernet.io/vfs"]["value"].as_string(), "8");
  EXPECT_FALSE(one.contains("bindingConditions"));
}

TEST(SliceDevices, have_every_attribute_though_empty) {
  const auto devices = slice_devices(node(), {}, {}, {.include_virtual = {"eth*"}});

  std::vector<std::string> first;
  for (const auto& [key, value] : devices[0].object()["attributes"].members()) {
    if (key.find('/') == std::string_view::npos) first.emplace_back(key);
  }
  for (const auto& one : devices) {
    for (const auto& key : first) {
      EXPECT_TRUE(one.object()["attributes"].contains(key)) << one.object()["name"].str() << key;
    }
  }
  EXPECT_FALSE(device(devices, "eth0")["attributes"].contains("resource.kubernetes.io/numaNode"));
  EXPECT_FALSE(device(devices, "eth0")["attributes"].contains("resource.kubernetes.io/pcieRoot"));
}

TEST(SliceDevices, are_virtual_functions_once_each) {
  const auto devices = slice_devices(node(), {});

  const Value vf = device(devices, "vf-0000-81-00-2");
  EXPECT_EQ(vf["attributes"]["type"]["string"].as_string(), "vf");
  EXPECT_EQ(vf["attributes"]["pf"]["string"].as_string(), "ens1f0np0");
  EXPECT_EQ(vf["attributes"]["resourceName"]["string"].as_string(), "x.io/a");
  EXPECT_EQ(vf["attributes"]["resource.kubernetes.io/pciBusID"]["string"].as_string(),
            "0000:81:00.2");
  EXPECT_EQ(vf["attributes"]["resource.kubernetes.io/pcieRoot"]["string"].as_string(),
            "pci0000:80");
  EXPECT_FALSE(vf["allowMultipleAllocations"].as_bool());
  EXPECT_EQ(find_device(node(), "vf-0000-81-00-2")->vf, "0000:81:00.2");
  EXPECT_EQ(find_device(node(), "vf-0000-81-00-2")->interface, "ens1f0np0");
}

TEST(SliceDevices, are_not_what_somebody_else_has) {
  // One function is in a pod of who knows whom, one has no network driver.
  EXPECT_THAT(names(slice_devices(node(), {})),
              ElementsAre("ens1f0np0", "eth0-100", "vf-0000-81-00-2", "rdma-x-io-hca"));
  // In a pod of this driver.
  EXPECT_THAT(names(slice_devices(node(), {}, {}, {.prepared = {"0000:81:00.3"}})),
              testing::Contains("vf-0000-81-00-3"));
  Used taken;
  taken.vfs = {"0000:81:00.2"};
  taken.shares["x.io/hca"] = 100;
  const auto rest = slice_devices(node(), {}, taken);
  EXPECT_THAT(names(rest), ElementsAre("ens1f0np0", "eth0-100", "rdma-x-io-hca"));
  EXPECT_EQ(device(rest, "rdma-x-io-hca")["capacity"]["shares"]["value"].as_string(), "400");
  taken.shares["x.io/hca"] = 500;
  EXPECT_THAT(names(slice_devices(node(), {}, taken)), ElementsAre("ens1f0np0", "eth0-100"));
}

TEST(SliceDevices, are_shares_of_which_a_request_takes_one) {
  const Value share = device(slice_devices(node(), {}), "rdma-x-io-hca");

  EXPECT_TRUE(share["allowMultipleAllocations"].as_bool());
  EXPECT_EQ(share["capacity"]["shares"]["requestPolicy"]["default"].as_string(), "1");
  EXPECT_EQ(share["attributes"]["resourceName"]["string"].as_string(), "x.io/hca");
  EXPECT_EQ(share["attributes"]["resource.kubernetes.io/pcieRoot"]["string"].as_string(),
            "pci0000:80");
  EXPECT_TRUE(find_device(node(), "rdma-x-io-hca")->is_share);
}

TEST(SliceDevices, are_virtual_links_where_a_config_or_the_operator_names_them) {
  EXPECT_THAT(names(slice_devices(node(), {})), testing::Not(testing::Contains("eth0")));
  EXPECT_THAT(names(slice_devices(node(), {macvlan("m", "eth0")})), testing::Contains("eth0"));
  EXPECT_THAT(names(slice_devices(node(), {}, {}, {.include_virtual = {"eth?"}})),
              testing::Contains("eth0"));
}

TEST(SliceDevices, are_exclusive_where_a_pool_gives_the_whole_nic) {
  NodeState state = node();
  state.interfaces[0].sriov.reset();
  state.pools = {{"x.io/whole", PoolKind::sriov_vf, 1, {"0000:81:00.0"}}};

  const Value whole = device(slice_devices(state, {}), "ens1f0np0");

  EXPECT_FALSE(whole["allowMultipleAllocations"].as_bool());
  EXPECT_EQ(whole["attributes"]["resourceName"]["string"].as_string(), "x.io/whole");
  EXPECT_EQ(find_device(state, "ens1f0np0")->vf, "0000:81:00.0");
}

TEST(SliceDevices, wait_for_addresses_where_that_is_on) {
  const auto devices = slice_devices(node(), {}, {}, {.binding_conditions = true});

  for (const char* name : {"ens1f0np0", "vf-0000-81-00-2"}) {
    const Value one = device(devices, name);
    EXPECT_TRUE(one["bindsToNode"].as_bool());
    EXPECT_EQ(one["bindingConditions"][0].as_string(), kAddressesAssigned);
    EXPECT_EQ(one["bindingFailureConditions"][0].as_string(), kAddressesRefused);
  }
  EXPECT_FALSE(device(devices, "rdma-x-io-hca").contains("bindingConditions"));
}

TEST(SliceDevices, cut_long_texts_after_a_whole_item) {
  NodeState state = node();
  state.interfaces[0].gpus.clear();
  for (int i = 0; i < 8; ++i) {
    state.interfaces[0].gpus.push_back("0000:9" + std::to_string(i) + ":00.0");
  }
  const Value one = device(slice_devices(state, {macvlan(std::string(100, 'a'), "ens1f0np0"),
                                                 macvlan("b", "ens1f0np0")}),
                           "ens1f0np0");

  EXPECT_EQ(one["attributes"]["gdrAffinityGpus"]["string"].as_string(),
            "0000:90:00.0,0000:91:00.0,0000:92:00.0,0000:93:00.0,0000:94:00.0");
  EXPECT_TRUE(one["attributes"]["gdrAffinityGpusTruncated"]["bool"].as_bool());
  EXPECT_EQ(one["attributes"]["cniConfigs"]["string"].as_string(), "");
  EXPECT_TRUE(one["attributes"]["cniConfigsTruncated"]["bool"].as_bool());
}

TEST(SliceDevices, name_the_configs_of_an_interface_by_masters_not_by_letters) {
  MultusConfig sriov = macvlan("functions", "");
  sriov.masters.clear();
  sriov.resource_name = "x.io/a";
  MultusConfig custom = macvlan("custom-ens1f0np0-fast", "");
  custom.masters.clear();
  MultusConfig like = custom;
  like.name = "custom-ens1f0np01";
  MultusConfig elsewhere = macvlan("elsewhere", "ens1f0np0");
  elsewhere.name_space = "default";
  MultusConfig tagged = macvlan("tagged", "eth0");
  tagged.vlan_id = 100;

  const auto devices = slice_devices(node(), {sriov, custom, like, elsewhere, tagged});

  EXPECT_EQ(device(devices, "ens1f0np0")["attributes"]["cniConfigs"]["string"].as_string(),
            "custom-ens1f0np0-fast,functions");
  EXPECT_EQ(device(devices, "eth0-100")["attributes"]["cniConfigs"]["string"].as_string(),
            "tagged");
}

TEST(SliceDevices, have_names_that_are_labels_and_differ) {
  EXPECT_EQ(device_name("eth0"), "eth0");
  EXPECT_EQ(device_name("eth0.100"), "eth0-100");
  EXPECT_EQ(device_name("Ens1"), "ens1");
  EXPECT_EQ(device_name("__a..b__"), "a-b");
  EXPECT_EQ(device_name("..."), "iface");
  EXPECT_EQ(device_name("1eth"), "iface-1eth");

  NodeState state;
  state.interfaces = {nic("Ens1"), nic("eNs1"), nic("ens1")};
  EXPECT_THAT(names(slice_devices(state, {})), ElementsAre("ens1-2", "ens1-3", "ens1"));
  EXPECT_EQ(find_device(state, "ens1-3")->interface, "eNs1");
  EXPECT_EQ(find_device(state, "ens1")->interface, "ens1");
  EXPECT_FALSE(find_device(state, "ens1-4"));
}

TEST(SliceDevices, are_taken_by_the_server_whatever_the_node_has) {
  cluster::test::TestCluster world;
  world.create(kNodes, "", "{'metadata': {'name': 'node-a'}}");
  NodeState state = node();
  state.interfaces.push_back(nic("Ens1"));
  for (int i = 0; i < 150; ++i) {
    state.interfaces[0].sriov->vfs.push_back(
        {.index = 10 + i,
         .pci_address = "0000:91:" + std::string(i < 100 ? "0" : "") + std::to_string(i / 10) +
                        "." + std::to_string(i % 10),
         .available = true});
  }
  const auto slices = driver::slices_of(driver::make_pool(
      "node-a", slice_devices(state, {macvlan("m", "eth0")}, {}, {.binding_conditions = true})));
  ASSERT_TRUE(slices.ok()) << slices.error().message();
  ASSERT_GT(slices->size(), 1U);
  for (std::size_t i = 0; i < slices->size(); ++i) {
    Value spec = (*slices)[i];
    spec.set("driver", "dra.spidernet.io");
    spec.set("nodeName", "node-a");
    spec.set("pool",
             Value::object(
                 {{"name", "node-a"}, {"generation", 1}, {"resourceSliceCount", slices->size()}}));
    const auto made = world.api->create(
        kSlices, "",
        Value::object({{"metadata", Value::object({{"name", "s" + std::to_string(i)}})},
                       {"spec", std::move(spec)}}));
    EXPECT_TRUE(made.ok()) << made.error().message();
  }
}

}  // namespace
}  // namespace dibs::drivers::net
