// With the kernel's own links, in a network namespace of the test.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"
#include "drivers/net/host/facts.h"
#include "drivers/net/host/testing/fake_host.h"
#include "runtime/sim_runtime.h"

namespace dibs::drivers::net {
namespace {

using testing::ElementsAre;

class NetlinkTest : public testing::Test {
 protected:
  void SetUp() override {
    home_ = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(home_, 0);
    if (::unshare(CLONE_NEWNET) != 0) {
      GTEST_SKIP() << "no network namespace can be made here: " << std::strerror(errno);
    }
    if (!run("link set lo up")) GTEST_SKIP() << "the command ip is missing (package iproute2)";
    auto opened = open_netlink();
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    links_ = std::move(opened).value();
  }
  void TearDown() override {
    if (home_ < 0) return;
    EXPECT_EQ(::setns(home_, CLONE_NEWNET), 0);
    ::close(home_);
  }

  static bool run(const std::string& arguments) {
    return std::system(cat("ip ", arguments, " >/dev/null 2>&1").c_str()) == 0;
  }
  std::map<std::string, Link> read() {
    const auto facts = links_->read();
    EXPECT_TRUE(facts.ok()) << (facts.ok() ? "" : facts.error().message());
    std::map<std::string, Link> out;
    if (facts) {
      for (const auto& one : facts->links) out[one.name] = one;
    }
    return out;
  }
  static std::vector<std::string> addresses(const Link& link) {
    std::vector<std::string> out;
    for (const auto& one : link.addresses) {
      if (!one.link_local) out.push_back(cat(one.ip, "/", one.prefix));
    }
    return out;
  }

  int home_ = -1;
  std::unique_ptr<Links> links_;
};

TEST_F(NetlinkTest, tells_links_and_their_addresses) {
  if (!run("link add eth0 type veth peer name far")) GTEST_SKIP() << "the kernel has no veth";
  ASSERT_TRUE(run("link set eth0 up mtu 1400 address 02:00:00:00:00:07"));
  ASSERT_TRUE(run("address add 172.18.0.11/16 dev eth0"));
  ASSERT_TRUE(run("address add fd00::11/64 dev eth0 nodad"));

  const auto links = read();

  const Link& eth0 = links.at("eth0");
  EXPECT_EQ(eth0.kind, "veth");
  EXPECT_EQ(eth0.hardware_type, 1);
  EXPECT_EQ(eth0.mtu, 1400);
  EXPECT_EQ(eth0.mac, "02:00:00:00:00:07");
  EXPECT_TRUE(eth0.up);
  EXPECT_EQ(eth0.parent, 0);
  EXPECT_THAT(addresses(eth0), ElementsAre("172.18.0.11/16", "fd00::11/64"));
  EXPECT_FALSE(links.at("far").up);
  EXPECT_EQ(links.at("far").oper_state, "down");
  EXPECT_EQ(links.at("lo").hardware_type, 772);
}

TEST_F(NetlinkTest, tells_what_stands_on_what) {
  ASSERT_TRUE(run("link add eth0 type veth peer name far"));
  if (!run("link add mv0 link eth0 type macvlan mode bridge")) {
    GTEST_SKIP() << "the kernel has no macvlan";
  }
  EXPECT_EQ(read().at("mv0").kind, "macvlan");
  EXPECT_EQ(read().at("mv0").parent, read().at("eth0").index);
  if (!run("link add br0 type bridge") || !run("link set far master br0")) {
    GTEST_SKIP() << "the kernel has no bridge";
  }
  EXPECT_EQ(read().at("br0").kind, "bridge");
  EXPECT_EQ(read().at("far").master, read().at("br0").index);
}

TEST_F(NetlinkTest, tells_vlans) {
  ASSERT_TRUE(run("link add eth0 type veth peer name far"));
  if (!run("link add eth0.100 link eth0 type vlan id 100")) {
    GTEST_SKIP() << "the kernel has no vlan";
  }
  EXPECT_EQ(read().at("eth0.100").vlan_id, 100);
  EXPECT_EQ(read().at("eth0.100").parent, read().at("eth0").index);
}

TEST_F(NetlinkTest, tells_bonds) {
  if (!run("link add bond0 type bond")) GTEST_SKIP() << "the kernel has no bond";
  ASSERT_TRUE(run("link add eth0 type veth peer name far"));
  ASSERT_TRUE(run("link set eth0 master bond0"));
  EXPECT_EQ(read().at("eth0").master, read().at("bond0").index);
}

TEST_F(NetlinkTest, knows_no_parent_in_another_namespace) {
  ASSERT_TRUE(run("link add eth0 type veth peer name far"));
  if (!run("link add mv0 link eth0 type macvlan mode bridge")) {
    GTEST_SKIP() << "the kernel has no macvlan";
  }
  // The other namespace is the one that the test began in; eth0 stays here.
  const int inside = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  const int far = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  auto there = open_netlink();
  ASSERT_TRUE(there.ok());
  ASSERT_EQ(::setns(inside, CLONE_NEWNET), 0);
  ASSERT_TRUE(run(cat("link set mv0 netns /proc/", ::getpid(), "/fd/", far)));

  const auto facts = (*there)->read();
  ASSERT_TRUE(facts.ok()) << facts.error().message();
  ASSERT_EQ(facts->links.back().name, "mv0");
  EXPECT_EQ(facts->links.back().parent, 0);
  EXPECT_EQ(read().count("mv0"), 0U);
  ::close(inside);
  ::close(far);
}

TEST_F(NetlinkTest, notices_changes_and_nothing_else) {
  ASSERT_TRUE(run("link add eth0 type veth peer name far"));
  ASSERT_TRUE(run("link set far up"));
  EXPECT_TRUE(links_->changed());
  EXPECT_FALSE(links_->changed());

  ASSERT_TRUE(run("address add 10.0.0.1/24 dev eth0"));
  EXPECT_TRUE(links_->changed());
  (void)links_->read();
  EXPECT_FALSE(links_->changed());

  ASSERT_TRUE(run("link delete eth0"));
  EXPECT_TRUE(links_->changed());
}

TEST_F(NetlinkTest, survives_more_events_than_fit) {
  ASSERT_TRUE(run("link add eth0 type veth peer name far"));
  for (int i = 0; i < 40; ++i) {
    std::string batch;
    for (int j = 0; j < 50; ++j) {
      append(batch, "link set eth0 mtu ", 1300 + j, "\\n");
    }
    ASSERT_EQ(std::system(cat("printf '", batch, "' | ip -batch - >/dev/null 2>&1").c_str()), 0);
  }
  EXPECT_TRUE(links_->changed());
  EXPECT_FALSE(links_->changed());
  EXPECT_EQ(read().at("eth0").mtu, 1349);
}

TEST_F(NetlinkTest, goes_with_hardware_that_is_made_up) {
  ASSERT_TRUE(run("link add eth0 type veth peer name veth-far"));
  ASSERT_TRUE(run("link set eth0 up"));
  ASSERT_TRUE(run("address add 172.18.0.11/16 dev eth0"));
  test::FakeHost host;
  host.pf({.name = "eth0", .pci = "0000:81:00.0", .vfs = 2, .rdma = "mlx5_0"});
  runtime::SimRuntime sim;
  HostFacts facts(std::move(links_), sim.runtime().clock, host.options());

  const auto state = facts.read();

  ASSERT_TRUE(state.ok()) << state.error().message();
  ASSERT_EQ(state->interfaces.size(), 1U);
  EXPECT_EQ(state->interfaces[0].kind, "veth");
  EXPECT_EQ(state->interfaces[0].pci_address, "0000:81:00.0");
  EXPECT_EQ(state->interfaces[0].sriov->vfs.size(), 2U);
  EXPECT_THAT(state->interfaces[0].subnets, ElementsAre("172.18.0.0/16"));
}

TEST_F(NetlinkTest, keeps_apart_what_the_hosts_sysfs_shows_of_another_namespace) {
  ASSERT_TRUE(run("link add eth0 type veth peer name veth-far"));
  runtime::SimRuntime sim;
  FactsOptions options;
  options.node_name = "node-a";
  HostFacts facts(std::move(links_), sim.runtime().clock, options);

  const auto state = facts.read();

  ASSERT_TRUE(state.ok()) << state.error().message();
  EXPECT_TRUE(state->find("eth0")->is_virtual);
  EXPECT_EQ(state->find("eth0")->pci_address, "");
  EXPECT_EQ(state->find("eth0")->speed_mbps.value_or(10000), 10000);
}

// -- Messages put together by hand: kinds of links that not every kernel has
// -----------------------

using Bytes = std::vector<std::uint8_t>;

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

template <typename T>
Bytes bytes_of(const T& value) {
  Bytes out(sizeof value);
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

Bytes padded(Bytes bytes) {
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

Bytes attribute(int type, const Bytes& payload) {
  return padded(bytes_of(nlattr{static_cast<std::uint16_t>(sizeof(nlattr) + payload.size()),
                                static_cast<std::uint16_t>(type)}) +
                payload);
}

Bytes attribute(int type, const std::string& text) {
  return attribute(type, Bytes(text.begin(), text.end()) + Bytes{0});
}

Bytes new_link(int index, const Bytes& attributes) {
  ifinfomsg info = {};
  info.ifi_index = index;
  info.ifi_type = 1;
  info.ifi_flags = IFF_UP;
  const Bytes payload = bytes_of(info) + attributes;
  nlmsghdr header = {};
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + payload.size());
  header.nlmsg_type = RTM_NEWLINK;
  return bytes_of(header) + payload;
}

TEST(NetlinkMessages, tell_vlans_and_bonds) {
  const Bytes vlan = attribute(
      IFLA_LINKINFO,
      attribute(IFLA_INFO_KIND, "vlan") +
          attribute(IFLA_INFO_DATA, attribute(IFLA_VLAN_ID, bytes_of(std::uint16_t{100}))));
  const Bytes bytes =
      new_link(2, attribute(IFLA_IFNAME, "eth0") + attribute(IFLA_MASTER, bytes_of(4))) +
      new_link(3, attribute(IFLA_IFNAME, "eth0.100") + attribute(IFLA_LINK, bytes_of(2)) + vlan) +
      new_link(4, attribute(IFLA_IFNAME, "bond0") +
                      attribute(IFLA_LINKINFO, attribute(IFLA_INFO_KIND, "bond"))) +
      new_link(5, attribute(IFLA_IFNAME, "../../etc"));

  LinkFacts facts;
  read_netlink_messages(bytes, facts);

  ASSERT_EQ(facts.links.size(), 3U);
  EXPECT_EQ(facts.links[0].master, 4);
  EXPECT_TRUE(facts.links[0].up);
  EXPECT_EQ(facts.links[1].vlan_id, 100);
  EXPECT_EQ(facts.links[1].parent, 2);
  EXPECT_EQ(facts.links[2].kind, "bond");
}

TEST(NetlinkMessages, are_read_as_far_as_they_go) {
  // A header that says more than there is, one that says nothing, and one with half an attribute.
  const std::vector<std::vector<std::uint8_t>> cases = {
      {},
      {1, 2, 3},
      {255, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
      {0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
      {16, 0, 0, 240, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
      {18, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2},
      {34, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
       0,  1, 0, 2, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0},
  };
  for (const auto& bytes : cases) {
    LinkFacts facts;
    read_netlink_messages(bytes, facts);
    EXPECT_TRUE(facts.links.empty());
  }
}

}  // namespace
}  // namespace dibs::drivers::net
