#include "drivers/net/host/pools_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::drivers::net {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Interface nic(const std::string& name, const std::string& bus, int vfs) {
  Interface out;
  out.name = name;
  out.link_layer = "ethernet";
  out.pci_address = "0000:" + bus + ":00.0";
  out.vendor = "15b3";
  out.device = "1017";
  out.driver = "mlx5_core";
  out.sriov = Sriov{8, vfs, {}};
  for (int i = 0; i < vfs; ++i) {
    out.sriov->vfs.push_back({.index = i,
                              .pci_address = "0000:" + bus + ":00." + std::to_string(i + 2),
                              .rdma_device = i == 0 ? "mlx5_1" : "",
                              .vendor = "15b3",
                              .device = "1018",
                              .driver = "mlx5_core",
                              .available = true});
  }
  return out;
}

std::vector<ResourcePool> pools(const std::string& text, const std::vector<Interface>& interfaces) {
  const auto config = parse_pools_config(text);
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message());
  return config.ok() ? pools_of(*config, interfaces) : std::vector<ResourcePool>();
}

TEST(PoolsConfig, reads_the_files_of_both_device_plugins) {
  const auto config = parse_pools_config(R"({
    "resourceList": [{"resourceName": "sriov_a", "resourcePrefix": "intel.com", "deviceType": "netDevice",
                      "selectors": [{"vendors": ["8086"]}, {"pfNames": ["eth1#0-3,6"]}]}],
    "periodicUpdateInterval": 300,
    "configList": [{"resourceName": "hca_shared_devices", "rdmaHcaMax": 1000, "devices": ["ib0"]}]})");

  ASSERT_TRUE(config.ok()) << config.error().message();
  ASSERT_EQ(config->rules.size(), 2U);
  EXPECT_EQ(config->rules[0].resource_name, "intel.com/sriov_a");
  ASSERT_EQ(config->rules[0].selectors.size(), 2U);
  EXPECT_THAT(config->rules[0].selectors[1].pf_names[0].functions,
              ElementsAre(std::pair(0, 3), std::pair(6, 6)));
  EXPECT_EQ(config->rules[1].resource_name, "spidernet.io/hca_shared_devices");
  EXPECT_EQ(config->rules[1].count, 1000);
  EXPECT_EQ(config->rescan, std::chrono::seconds(60));
  EXPECT_EQ(parse_pools_config("periodicUpdateInterval: 5")->rescan, std::chrono::seconds(5));
  EXPECT_TRUE(parse_pools_config("")->rules.empty());
}

TEST(PoolsConfig, names_the_key_that_is_wrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "must be an object"},
      {"a: [", "yaml: "},
      {"pools: []", "pools: unknown key"},
      {"resourceList: {}", "resourceList: must be a list"},
      {"resourceList: [{}]", "resourceList[0].resourceName: must not be empty"},
      {"resourceList: [{resourceName: 'a b'}]",
       "resourceList[0].resourceName: \"spidernet.io/a b\": "},
      {"resourceList: [{resourceName: a, vendors: []}]", "resourceList[0].vendors: unknown key"},
      {"resourceList: [{resourceName: a, deviceType: accelerator}]",
       "resourceList[0].deviceType: must be netDevice"},
      {"resourceList: [{resourceName: a, selectors: {vendor: []}}]",
       "resourceList[0].selectors.vendor: unknown key"},
      {"resourceList: [{resourceName: a, selectors: {vendors: ['0x15b3']}}]",
       "resourceList[0].selectors.vendors: \"0x15b3\" is not four hexadecimal digits"},
      {"resourceList: [{resourceName: a, selectors: {pfNames: ['eth1#4-2']}}]",
       "resourceList[0].selectors.pfNames: \"eth1#4-2\" is no interface"},
      {"resourceList: [{resourceName: a, selectors: {rootDevices: ['81:00.0']}}]",
       "resourceList[0].selectors.rootDevices: \"81:00.0\" is no PCI address"},
      {"resourceList: [{resourceName: a, selectors: [{linkTypes: [wifi]}]}]",
       "resourceList[0].selectors[0].linkTypes: \"wifi\" is neither ether nor infiniband"},
      {"resourceList: [{resourceName: a}, {resourceName: a}]",
       "two pools are named spidernet.io/a"},
      {"configList: [{resourceName: a}]",
       "configList[0].selectors: exactly one of selectors and devices must be given"},
      {"configList: [{resourceName: a, devices: []}]", "configList[0].devices: must not be empty"},
      {"configList: [{resourceName: a, devices: [ib0], rdmaHcaMax: -1}]",
       "configList[0].rdmaHcaMax: must be at least 0"},
      {"configList: [{resourceName: a, devices: [ib0], rdmaHcaMax: many}]",
       "configList[0].rdmaHcaMax: must be an integer"},
      {"configList: [{resourceName: a, selectors: {pfNames: []}}]",
       "configList[0].selectors.pfNames: unknown key"},
      {"masterNIC: {prefix: a}", "masterNIC.prefix: unknown key"},
      {"masterNIC: {resourcePrefix: 'A B'}", "masterNIC.resourcePrefix: \"A B\": "},
  };
  for (const auto& [text, words] : cases) {
    const auto config = parse_pools_config(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.error().code(), Code::invalid);
    EXPECT_THAT(config.error().message(), testing::HasSubstr(words)) << text;
  }
  const std::string lengthy = "resourceList: [{resourceName: " + std::string(60, 'a') + "}]";
  EXPECT_THAT(parse_pools_config(lengthy).error().message(),
              testing::HasSubstr("must be at most 64 characters, prefix included"));
}

TEST(PoolsConfig, takes_functions_that_all_selectors_allow) {
  const std::vector<Interface> interfaces = {nic("eth1", "81", 4), nic("eth2", "c1", 2)};
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"{vendors: ['8086', '15b3'], devices: ['1018'], pfNames: [eth2]}",
       {"0000:c1:00.2", "0000:c1:00.3"}},
      {"{pfNames: ['eth1#0,2-3']}", {"0000:81:00.2", "0000:81:00.4", "0000:81:00.5"}},
      {"{rootDevices: ['0000:C1:00.0']}", {"0000:c1:00.2", "0000:c1:00.3"}},
      {"{isRdma: true}", {"0000:81:00.2", "0000:c1:00.2"}},
      {"{pciAddresses: ['0000:81:00.5']}", {"0000:81:00.5"}},
      {"{vendors: ['8086']}", {}},
      {"{linkTypes: [infiniband]}", {}},
      {"{drivers: [mlx5_core], linkTypes: [ether], pfNames: ['eth1#3']}", {"0000:81:00.5"}},
      {"[{pfNames: ['eth1#3']}, {pfNames: ['eth2#1']}]", {"0000:81:00.5", "0000:c1:00.3"}},
  };
  for (const auto& [selectors, members] : cases) {
    const auto found = pools(
        std::string("resourceList: [{resourceName: a, selectors: ") + selectors + "}]", interfaces);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].devices, members) << selectors;
    EXPECT_EQ(found[0].capacity, static_cast<std::int64_t>(members.size()));
  }
}

TEST(PoolsConfig, gives_a_function_to_the_first_pool) {
  const auto found = pools(
      "resourceList: [{resourceName: a, selectors: {pfNames: ['eth1#1']}}, {resourceName: b}]",
      {nic("eth1", "81", 3)});

  EXPECT_THAT(found[0].devices, ElementsAre("0000:81:00.3"));
  EXPECT_THAT(found[1].devices, ElementsAre("0000:81:00.2", "0000:81:00.4"));
}

TEST(PoolsConfig, gives_a_whole_nic_only_where_the_host_does_without) {
  Interface addressed = nic("eth1", "81", 0);
  addressed.addresses = {"10.0.0.1/8"};
  Interface bonded = nic("eth2", "82", 0);
  Interface bond;
  bond.name = "bond0";
  bond.bond_members = {"eth2"};
  Interface below = nic("eth3", "83", 0);
  Interface vlan;
  vlan.name = "eth3.5";
  vlan.parent = "eth3";

  const auto found = pools("resourceList: [{resourceName: a}]",
                           {addressed, bonded, bond, below, vlan, nic("eth4", "84", 0)});

  EXPECT_THAT(found[0].devices, ElementsAre("0000:84:00.0"));
}

TEST(PoolsConfig, counts_shares_whatever_the_number_of_devices) {
  Interface one = nic("eth1", "81", 0);
  one.rdma = Rdma{"mlx5_0", {}};
  Interface two = nic("eth2", "82", 0);
  two.rdma = Rdma{"mlx5_1", {}};
  const std::string text = R"(configList: [
    {resourceName: both, rdmaHcaMax: 7, selectors: {vendors: ['15b3'], linkTypes: [ether]}},
    {resourceName: one, devices: [eth2, eth3]},
    {resourceName: none, selectors: {deviceIDs: ['ffff']}}])";

  const auto found = pools(text, {one, two, nic("eth3", "83", 0)});

  ASSERT_EQ(found.size(), 3U);
  EXPECT_THAT(found[0].devices, ElementsAre("eth1", "eth2"));
  EXPECT_EQ(found[0].capacity, 7);
  EXPECT_THAT(found[1].devices, ElementsAre("eth2"));
  EXPECT_EQ(found[1].capacity, 500);
  EXPECT_THAT(found[2].devices, IsEmpty());
  EXPECT_EQ(found[2].capacity, 0);
}

TEST(PoolsConfig, makes_a_pool_of_each_master) {
  Interface veth;
  veth.name = "eth0";
  veth.is_virtual = true;
  const std::vector<Interface> interfaces = {veth, nic("ens1", "81", 0), nic("ens2", "82", 0)};

  const auto usual = pools("masterNIC: {excludeInterfaces: ['*2']}", interfaces);
  ASSERT_EQ(usual.size(), 1U);
  EXPECT_EQ(usual[0].resource_name, "spidernet.io/ens1-nic");
  EXPECT_EQ(usual[0].capacity, 10000);
  EXPECT_THAT(usual[0].devices, ElementsAre("ens1"));

  const auto included =
      pools("masterNIC: {includeInterfaces: ['eth*'], defaultMaxCount: 3}", interfaces);
  ASSERT_EQ(included.size(), 1U);
  EXPECT_EQ(included[0].resource_name, "spidernet.io/eth0-nic");
  EXPECT_EQ(included[0].capacity, 3);
}

}  // namespace
}  // namespace dibs::drivers::net
