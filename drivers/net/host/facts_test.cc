#include "drivers/net/host/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/net/host/testing/fake_host.h"
#include "json/yaml.h"
#include "runtime/sim_runtime.h"

namespace dibs::drivers::net {
namespace {

using test::FakeHost;
using testing::ElementsAre;
using testing::IsEmpty;

class FactsTest : public testing::Test {
 protected:
  NodeState read(FactsOptions options) {
    HostFacts facts(host.links(), sim.runtime().clock, std::move(options));
    auto state = facts.read();
    EXPECT_TRUE(state.ok()) << (state.ok() ? "" : state.error().message());
    return state.ok() ? *state : NodeState();
  }
  NodeState read() { return read(host.options()); }

  static std::vector<std::string> names(const NodeState& state) {
    std::vector<std::string> out;
    for (const auto& one : state.interfaces) out.push_back(one.name);
    return out;
  }

  void link(const char* text) { host.link(*json::parse_yaml(text)); }

  FakeHost host;
  runtime::SimRuntime sim;
  const FakeHost::Pf nic = {.name = "ens1f0np0",
                            .pci = "0000:81:00.0",
                            .vfs = 4,
                            .rdma = "mlx5_0",
                            .address = "172.18.0.11/16"};
};

TEST_F(FactsTest, tells_all_of_a_nic_with_virtual_functions_and_rdma) {
  host.pf(nic);
  host.gpu("0000:82:00.0");

  const NodeState state = read();

  ASSERT_THAT(names(state), ElementsAre("ens1f0np0"));
  const Interface& one = state.interfaces[0];
  EXPECT_EQ(one.kind, "device");
  EXPECT_EQ(one.link_layer, "ethernet");
  EXPECT_TRUE(one.admin_up);
  EXPECT_FALSE(one.is_virtual);
  EXPECT_EQ(one.oper_state, "up");
  EXPECT_EQ(one.speed_mbps, 100000);
  EXPECT_THAT(one.addresses, ElementsAre("172.18.0.11/16"));
  EXPECT_THAT(one.subnets, ElementsAre("172.18.0.0/16"));
  EXPECT_EQ(one.pci_address, "0000:81:00.0");
  EXPECT_EQ(one.pcie_root, "pci0000:80");
  EXPECT_EQ(one.vendor, "15b3");
  EXPECT_EQ(one.device, "1017");
  EXPECT_EQ(one.driver, "mlx5_core");
  EXPECT_EQ(one.numa_node, 0);
  EXPECT_THAT(one.gpus, ElementsAre("0000:82:00.0"));
  ASSERT_TRUE(one.rdma);
  EXPECT_EQ(one.rdma->device, "mlx5_0");
  EXPECT_THAT(
      one.rdma->char_devices,
      ElementsAre("/dev/infiniband/uverbs0", "/dev/infiniband/umad0", "/dev/infiniband/rdma_cm"));
  ASSERT_TRUE(one.sriov);
  EXPECT_EQ(one.sriov->total_vfs, 8);
  EXPECT_EQ(one.sriov->num_vfs, 4);
  ASSERT_EQ(one.sriov->vfs.size(), 4U);
  const VirtualFunction& vf = one.sriov->vfs[1];
  EXPECT_EQ(vf.index, 1);
  EXPECT_EQ(vf.pci_address, "0000:81:00.3");
  EXPECT_EQ(vf.netdev, "ens1f0np0v1");
  EXPECT_EQ(vf.rdma_device, "mlx5_2");
  EXPECT_EQ(vf.device, "1018");
  EXPECT_TRUE(vf.available);
  EXPECT_EQ(state.observed, sim.now());
}

TEST_F(FactsTest, lists_virtual_functions_under_their_nic_only) {
  host.pf(nic);
  link("{ifname: ens1f0np0v0, ifindex: 90}");

  EXPECT_THAT(names(read()), ElementsAre("ens1f0np0"));
}

TEST_F(FactsTest, knows_a_function_in_a_pod_from_one_without_network_driver) {
  host.pf(nic);
  host.remove("sys/devices/pci0000:80/0000:80:01.0/0000:81:00.2/net/ens1f0np0v0");
  host.remove("sys/devices/pci0000:80/0000:80:01.0/0000:81:00.3/net");

  const auto vfs = read().interfaces[0].sriov->vfs;

  EXPECT_FALSE(vfs[0].available);
  EXPECT_TRUE(vfs[0].in_use);
  EXPECT_FALSE(vfs[1].available);
  EXPECT_FALSE(vfs[1].in_use);
  EXPECT_TRUE(vfs[2].available);
}

TEST_F(FactsTest, leaves_out_what_it_cannot_find_out) {
  FakeHost::Pf bare = nic;
  bare.speed = "";
  bare.numa_node = "-1";
  host.pf(bare);
  host.file(FakeHost::folder_of(bare) + "/vendor", "Mellanox");
  host.gpu("0000:82:00.0");

  const NodeState state = read();

  EXPECT_EQ(state.interfaces[0].speed_mbps, std::nullopt);
  EXPECT_EQ(state.interfaces[0].numa_node, std::nullopt);
  EXPECT_EQ(state.interfaces[0].vendor, "");
  // On another NUMA node, as far as anybody knows.
  EXPECT_THAT(state.interfaces[0].gpus, IsEmpty());
}

TEST_F(FactsTest, takes_a_speed_that_no_link_has_as_unknown) {
  for (const char* speed : {"-1", "fast", "99999999999999999999"}) {
    FakeHost::Pf one = nic;
    one.speed = speed;
    FakeHost fresh;
    fresh.pf(one);
    HostFacts facts(fresh.links(), sim.runtime().clock, fresh.options());
    EXPECT_EQ(facts.read()->interfaces[0].speed_mbps, std::nullopt) << speed;
  }
}

TEST_F(FactsTest, survives_files_that_are_broken) {
  host.pf(nic);
  const std::string own = FakeHost::folder_of(nic);
  host.remove(own + "/virtfn2");
  host.symlink(own + "/virtfn2", "../0000:99:00.0");
  host.symlink(own + "/virtfn9x", "../0000:81:00.2");
  host.symlink("sys/bus/pci/devices/0000:aa:00.0", "../../../devices/gone");
  host.symlink("sys/class/infiniband/mlx5_9", "../../devices/gone");
  host.file("sys/class/infiniband/plain/ports/1/gid_attrs/ndevs/0", "ens1f0np0");
  host.remove("sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/numa_node");
  host.folder("sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/numa_node");

  const NodeState state = read();

  ASSERT_EQ(state.interfaces[0].sriov->vfs.size(), 3U);
  EXPECT_EQ(state.interfaces[0].sriov->vfs[2].index, 3);
  EXPECT_EQ(state.interfaces[0].rdma->device, "mlx5_0");
  EXPECT_EQ(state.interfaces[0].numa_node, std::nullopt);
}

TEST_F(FactsTest, survives_files_that_may_not_be_read) {
  host.pf(nic);
  const std::string file = host.path() + "/" + FakeHost::folder_of(nic) + "/sriov_totalvfs";
  ASSERT_EQ(::chmod(file.c_str(), 0), 0);
  if (::access(file.c_str(), R_OK) == 0) GTEST_SKIP() << "root may read every file";

  EXPECT_FALSE(read().interfaces[0].sriov);
}

TEST_F(FactsTest, does_without_any_of_the_roots) {
  host.pf(nic);
  FactsOptions options = host.options();
  options.roots = {host.path() + "/no-sys", host.path() + "/no-dev"};

  const NodeState state = read(options);

  ASSERT_THAT(names(state), ElementsAre("ens1f0np0"));
  EXPECT_EQ(state.interfaces[0].pci_address, "");
  EXPECT_FALSE(state.interfaces[0].is_virtual);
}

TEST_F(FactsTest, tells_two_nics_apart) {
  host.pf(nic);
  host.pf({.name = "ens2f0np0",
           .pci = "0000:c1:00.0",
           .root = "pci0000:c0",
           .port = "0000:c0:01.0",
           .total_vfs = 0,
           .rdma = "mlx5_10",
           .numa_node = "1"});
  host.gpu("0000:82:00.0");
  host.gpu("0000:c2:00.0", "pci0000:c0", "0000:c0:02.0", "1");

  const NodeState state = read();

  ASSERT_THAT(names(state), ElementsAre("ens1f0np0", "ens2f0np0"));
  EXPECT_THAT(state.interfaces[0].gpus, ElementsAre("0000:82:00.0"));
  EXPECT_THAT(state.interfaces[1].gpus, ElementsAre("0000:c2:00.0"));
  EXPECT_EQ(state.interfaces[1].pcie_root, "pci0000:c0");
  EXPECT_EQ(state.interfaces[1].numa_node, 1);
  ASSERT_TRUE(state.interfaces[1].sriov);
  EXPECT_EQ(state.interfaces[1].sriov->total_vfs, 0);
  EXPECT_THAT(state.interfaces[1].sriov->vfs, IsEmpty());
}

TEST_F(FactsTest, compares_names_of_rdma_devices_as_wholes) {
  host.pf({.name = "a0", .pci = "0000:81:00.0", .rdma = "mlx5_1"});
  host.pf({.name = "b0", .pci = "0000:82:00.0", .port = "0000:80:02.0", .rdma = "mlx5_10"});

  const NodeState state = read();

  EXPECT_EQ(state.interfaces[0].rdma->device, "mlx5_1");
  EXPECT_THAT(
      rdma_char_devices(host.options().roots, "mlx5_1"),
      ElementsAre("/dev/infiniband/uverbs1", "/dev/infiniband/umad1", "/dev/infiniband/rdma_cm"));
  EXPECT_THAT(rdma_char_devices(host.options().roots, "mlx5_"), IsEmpty());
}

TEST_F(FactsTest, gives_only_files_of_devices_that_are_there) {
  host.pf(nic);
  host.remove("dev/infiniband/umad0");
  host.remove("dev/infiniband/rdma_cm");

  EXPECT_THAT(rdma_char_devices(host.options().roots, "mlx5_0"),
              ElementsAre("/dev/infiniband/uverbs0"));
}

TEST_F(FactsTest, finds_the_rdma_device_of_infiniband_by_its_guid) {
  host.pf({.name = "ib0", .pci = "0000:81:00.0", .rdma = "mlx5_0", .infiniband = true});
  host.pf({.name = "ib1",
           .pci = "0000:82:00.0",
           .port = "0000:80:02.0",
           .rdma = "mlx5_1",
           .infiniband = true});

  const NodeState state = read();

  EXPECT_EQ(state.interfaces[0].link_layer, "infiniband");
  EXPECT_EQ(state.interfaces[0].rdma->device, "mlx5_0");
  EXPECT_EQ(state.interfaces[1].rdma->device, "mlx5_1");
}

TEST_F(FactsTest, takes_interfaces_of_any_name) {
  link("{ifname: eth0, ifindex: 2}");
  link(
      "{ifname: eth0.100, ifindex: 3, link: eth0, linkinfo: {info_kind: vlan, info_data: {id: "
      "100}}}");
  link("{ifname: Ens1, ifindex: 4}");

  const NodeState state = read();

  EXPECT_THAT(names(state), ElementsAre("Ens1", "eth0", "eth0.100"));
  EXPECT_EQ(state.interfaces[2].kind, "vlan");
  EXPECT_EQ(state.interfaces[2].vlan_id, 100);
  EXPECT_EQ(state.interfaces[2].parent, "eth0");
  EXPECT_TRUE(state.interfaces[2].is_virtual);
}

TEST_F(FactsTest, finds_eight_gpus) {
  host.pf(nic);
  for (int i = 0; i < 8; ++i) host.gpu("0000:9" + std::to_string(i) + ":00.0");

  EXPECT_EQ(read().interfaces[0].gpus.size(), 8U);
}

TEST_F(FactsTest, sees_what_is_plugged_in_and_out) {
  host.pf(nic);
  HostFacts facts(host.links(), sim.runtime().clock, host.options());
  const NodeState before = *facts.read();
  EXPECT_FALSE(facts.changed());

  host.pf({.name = "ens2", .pci = "0000:c1:00.0", .port = "0000:80:05.0"});
  host.remove("sys/devices/pci0000:80/0000:80:01.0/0000:81:00.2");

  EXPECT_TRUE(facts.changed());
  const NodeState after = *facts.read();
  EXPECT_THAT(names(after), ElementsAre("ens1f0np0", "ens2"));
  EXPECT_EQ(after.interfaces[0].sriov->vfs.size(), 3U);
  EXPECT_FALSE(same_facts(before, after));
}

TEST_F(FactsTest, skips_the_plumbing_of_pods_unless_told) {
  for (const char* name : {"lo", "veth12", "cni0", "docker0", "br-12", "tap1", "dibs-1", "eth0"}) {
    host.link(json::Value::object(
        {{"ifname", name}, {"link_type", std::string(name) == "lo" ? "loopback" : "ether"}}));
  }
  EXPECT_THAT(names(read()), ElementsAre("eth0"));

  FactsOptions options = host.options();
  options.include_interfaces = {"veth*", "br-1?"};
  options.exclude_interfaces = {"eth*"};
  EXPECT_THAT(names(read(options)), ElementsAre("br-12", "veth12"));
}

TEST_F(FactsTest, tells_bonds_and_bridges_of_open_vswitch) {
  link("{ifname: eth1, ifindex: 3, master: bond0}");
  link("{ifname: eth0, ifindex: 2, master: bond0}");
  link("{ifname: bond0, ifindex: 4, linkinfo: {info_kind: bond}}");
  link("{ifname: ovs-system, ifindex: 5, linkinfo: {info_kind: openvswitch}}");
  link("{ifname: br1, ifindex: 6, linkinfo: {info_kind: openvswitch}}");

  const NodeState state = read();

  EXPECT_THAT(state.find("bond0")->bond_members, ElementsAre("eth0", "eth1"));
  EXPECT_THAT(state.ovs_bridges, ElementsAre("br1"));
  EXPECT_EQ(state.find("ovs-system"), nullptr);
}

TEST_F(FactsTest, reports_addresses_that_pods_could_share_a_network_with) {
  link(R"({ifname: eth0, addr_info: [
      {local: 172.18.0.11, prefixlen: 16, scope: global},
      {local: 172.18.0.12, prefixlen: 16, scope: global},
      {local: 169.254.7.7, prefixlen: 16, scope: global},
      {local: 'fe80::1', prefixlen: 64, scope: link},
      {local: 'fd00::5', prefixlen: 64, scope: global}]})");

  const Interface eth0 = read().interfaces[0];

  EXPECT_THAT(eth0.addresses, ElementsAre("172.18.0.11/16", "172.18.0.12/16", "fd00::5/64"));
  EXPECT_THAT(eth0.subnets, ElementsAre("172.18.0.0/16", "fd00::/64"));
}

TEST_F(FactsTest, does_not_mistake_the_sysfs_of_another_namespace_for_its_own) {
  host.pf(nic);
  host.file(FakeHost::folder_of(nic) + "/net/ens1f0np0/ifindex", "77");

  EXPECT_EQ(read().interfaces[0].pci_address, "");
}

TEST_F(FactsTest, finds_the_pci_function_above_a_virtio_device) {
  const std::string own = "sys/devices/pci0000:00/0000:00:03.0/virtio2";
  host.file("sys/devices/pci0000:00/0000:00:03.0/vendor", "0x1af4");
  host.symlink(own + "/net/eth0/device", "../..");
  host.symlink("sys/class/net/eth0", "../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0");
  link("{ifname: eth0}");

  EXPECT_EQ(read().interfaces[0].pci_address, "0000:00:03.0");
  EXPECT_EQ(read().interfaces[0].vendor, "1af4");
}

TEST_F(FactsTest, lists_a_link_once_though_the_kernel_told_it_twice) {
  class Twice : public Links {
   public:
    Result<LinkFacts> read() override {
      Link link;
      link.name = "eth0";
      link.index = 2;
      Link again = link;
      again.index = 3;
      return LinkFacts{{link, again}, ""};
    }
    bool changed() override { return false; }
  };
  HostFacts facts(std::make_unique<Twice>(), sim.runtime().clock, host.options());

  EXPECT_THAT(names(*facts.read()), ElementsAre("eth0"));
}

TEST_F(FactsTest, says_which_file_of_links_is_wrong) {
  host.file("links.json", "[{ifname: 'a/b'}]");
  HostFacts facts(recorded_links(runtime::system_files(), host.path() + "/links.json"),
                  sim.runtime().clock, host.options());

  const auto state = facts.read();

  ASSERT_FALSE(state.ok());
  EXPECT_THAT(state.error().message(), testing::HasSubstr("links.json: links[0].ifname: must be"));
}

TEST(RecordedLinks, refuses_what_is_no_record) {
  const std::pair<const char*, const char*> cases[] = {
      {"[{ifname: eth0, mtu: big}]", "links[0].mtu: must be an integer"},
      {"[{}]", "links[0].ifname: must be the name of an interface"},
      {"[{ifname: ..}]", "links[0].ifname: must be the name of an interface"},
      {"[{ifname: eth0, addr_info: [{local: x}]}]", "links[0].addr_info[0].local: "},
      {"[{ifname: eth0, addr_info: [{local: 10.0.0.1, prefixlen: 33}]}]", "at most 32"},
      {"{links: [], rdmaNetnsMode: mine}", "rdmaNetnsMode: must be shared or exclusive"},
      {"{lnks: []}", "lnks: unknown key"},
      {"[{ifname: eth0}, {ifname: eth0}]", "links: two are named \"eth0\""},
      {"links", "must be an object"},
  };
  for (const auto& [text, words] : cases) {
    const auto facts = parse_recorded_links(text);
    ASSERT_FALSE(facts.ok()) << text;
    EXPECT_THAT(facts.error().message(), testing::HasSubstr(words)) << text;
  }
}

}  // namespace
}  // namespace dibs::drivers::net
