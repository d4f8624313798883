#include "node/runtime/machine_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "net/testing/own_network.h"
#include "runtime/files.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Ipv4Range range(const char* text) { return *Ipv4Range::parse(text); }

TEST(Routes, are_read_from_the_kernels_table) {
  const std::string text =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
      "eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
      "eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
      "dibs-1\t0000820A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
  EXPECT_THAT(routes_of(text, "dibs-1"), testing::ElementsAre(range("192.168.1.0/24")));
  EXPECT_EQ(routes_of(text, "").size(), 2U);
}

TEST(PickRange, avoids_what_is_taken) {
  const std::string free = pick_range("name", {});
  EXPECT_THAT(free, testing::MatchesRegex("10\\.[0-9]+\\.0\\.0/16"));
  EXPECT_NE(pick_range("name", {range(free.c_str())}), free);
  EXPECT_EQ(pick_range("name", {range("10.7.0.0/16")}), free);
  EXPECT_EQ(pick_range("name", {range("10.0.0.0/8")}), "");
  EXPECT_EQ(pick_service_range({}), "10.0.0.0/24");
  EXPECT_EQ(pick_service_range({range("10.0.0.0/15")}), "10.2.0.0/24");
  EXPECT_EQ(pick_service_range({range("10.0.0.0/8")}), "172.31.255.0/24");
  EXPECT_EQ(pick_service_range({range("10.0.0.0/8"), range("172.16.0.0/12")}), "");
}

/// Clusters of a machine whose claims lie in a folder of the test.
class MachineNetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "machine.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(root_); }

  NetworkOptions cluster(const std::string& name) const {
    fs::create_directories(cat(root_, "/", name));
    return network_of_folder({.name = cat(root_, "/", name), .state = cat(root_, "/net-", name)});
  }
  /// One that a test may name: free whatever routes this machine has.
  static std::string a_free_range() {
    auto routes = runtime::system_files().read("/proc/net/route");
    return pick_service_range(routes_of(routes.ok() ? *routes : "", ""));
  }

  std::string root_;
};

TEST_F(MachineNetworkTest, is_named_by_its_folder_however_that_is_written) {
  const auto one = network_of_folder({.name = root_ + "/one"});
  EXPECT_EQ(one.name, root_ + "/one");
  EXPECT_EQ(network_of_folder({.name = root_ + "/two/../one"}).state, one.state);
  EXPECT_NE(network_of_folder({.name = root_ + "/two"}).state, one.state);
}

TEST_F(MachineNetworkTest, two_clusters_share_nothing) {
  const auto one = claim_ranges(cluster("one"), {""});
  const auto two = claim_ranges(cluster("two"), {""});
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->bridge, two->bridge);
  EXPECT_NE(one->pods, two->pods);
  EXPECT_NE(one->services, two->services);
  EXPECT_EQ(one->gateway, Ipv4Range::parse(one->pods)->address(1));

  const auto again = claim_ranges(cluster("one"), {""});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->pods, one->pods);
  EXPECT_EQ(again->services, one->services);
}

TEST_F(MachineNetworkTest, a_range_of_another_cluster_is_refused_and_nothing_is_claimed) {
  const auto one = claim_ranges(cluster("one"), {""});
  ASSERT_TRUE(one.ok());
  for (const std::string& taken : {one->services, one->pods}) {
    const std::string asked = cat(taken.substr(0, taken.find('/')), "/24");
    const auto checked = check_service_range(cluster("two"), asked);
    const auto claimed = claim_ranges(cluster("two"), {asked});
    ASSERT_FALSE(checked.ok() || claimed.ok()) << asked;
    EXPECT_EQ(checked.error().message(), claimed.error().message());
    EXPECT_THAT(checked.error().message(), HasSubstr("--service-cluster-ip-range"));
    EXPECT_THAT(checked.error().message(), HasSubstr("of another cluster on this machine"));
    EXPECT_THAT(checked.error().message(), HasSubstr("for example 1"));
  }
  EXPECT_FALSE(fs::exists(root_ + "/net-two"));

  const auto kept = claim_ranges(cluster("two"), {one->services, true});
  ASSERT_FALSE(kept.ok());
  EXPECT_THAT(kept.error().message(), HasSubstr("for life; take the other away first"));
}

TEST_F(MachineNetworkTest, garbage_is_refused_by_the_flags_name) {
  for (const char* bad : {"garbage", "10.0.0.1/24", "10.0.0.0/8", "10.0.0.0/30", "fd00::/112"}) {
    const auto claimed = claim_ranges(cluster("one"), {bad});
    ASSERT_FALSE(claimed.ok()) << bad;
    EXPECT_THAT(claimed.error().message(), HasSubstr("--service-cluster-ip-range")) << bad;
  }
  EXPECT_FALSE(fs::exists(root_ + "/net-one"));
}

TEST_F(MachineNetworkTest, pods_and_services_avoid_each_other) {
  // What the pods would get is asked for Services first, and the other way round.
  const std::string pods = claim_pod_range(cluster("one"))->pods;
  const std::string part = cat(pods.substr(0, pods.find('/')), "/24");
  const auto refused = claim_ranges(cluster("one"), {part});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("the range of this cluster's pods"));

  fs::remove_all(root_ + "/net-one");
  const auto claimed = claim_ranges(cluster("one"), {part});
  ASSERT_TRUE(claimed.ok()) << claimed.error().message();
  EXPECT_EQ(claimed->services, part);
  EXPECT_NE(claimed->pods, pods);
}

TEST_F(MachineNetworkTest, tells_whose_a_range_is) {
  const auto one = claim_ranges(cluster("one"), {});
  ASSERT_TRUE(one.ok()) << one.error().message();
  EXPECT_EQ(other_owner_of(cluster("two"), range(one->pods.c_str())),
            cat("another cluster on this machine, ", one->pods, " (", root_, "/one)"));
  const Ipv4Range part{range(one->services.c_str()).first, 28};
  EXPECT_THAT(other_owner_of(cluster("two"), part), HasSubstr(one->services));
  EXPECT_EQ(other_owner_of(cluster("two"), range("198.18.7.0/24")), "");
  EXPECT_EQ(other_owner_of(cluster("one"), part), "");
  // A claim is over with its folder.
  fs::remove_all(root_ + "/one");
  EXPECT_EQ(other_owner_of(cluster("two"), part), "");
}

TEST_F(MachineNetworkTest, tells_whose_an_added_range_is) {
  const auto one = claim_ranges(cluster("one"), {});
  ASSERT_TRUE(one.ok()) << one.error().message();
  std::string failed;
  std::string owner;
  const std::string skipped = net::in_own_network("", [&] {
    if (auto made = make_bridge(*one); !made.ok()) failed = made.error().message();
    (void)runtime::run({.argv = {"ip", "route", "add", "198.18.7.0/24", "dev", one->bridge}});
    owner = other_owner_of(cluster("two"), *Ipv4Range::parse("198.18.0.0/16"));
  });
  if (!cat(skipped, failed).empty()) GTEST_SKIP() << skipped << failed;
  EXPECT_THAT(owner, HasSubstr("another cluster on this machine, 198.18.7.0/24"));
}

TEST_F(MachineNetworkTest, the_claim_of_a_folder_that_is_gone_is_free_again) {
  const std::string services = a_free_range();
  const auto one = claim_ranges(cluster("one"), {services});
  ASSERT_TRUE(one.ok()) << one.error().message();
  fs::remove_all(root_ + "/one");
  const auto two = claim_ranges(cluster("two"), {services});
  ASSERT_TRUE(two.ok()) << two.error().message();
  EXPECT_FALSE(fs::exists(root_ + "/net-one"));
}

TEST_F(MachineNetworkTest, the_bridge_is_up_with_its_address_and_the_services_route) {
  std::string failed;
  std::string shown;
  const std::string skipped = net::in_own_network("", [&] {
    const MachineRanges ranges{"dibs-test", "10.130.0.0/16", "10.130.0.1", "10.0.0.0/24"};
    for (int i = 0; i < 2; ++i) {
      if (auto made = make_bridge(ranges); !made.ok()) failed = made.error().message();
    }
    auto output = runtime::run({.argv = {"ip", "-4", "route", "get", "10.0.0.77"}});
    if (output.ok()) shown = output->out + output->err;
  });
  if (!cat(skipped, failed).empty()) GTEST_SKIP() << skipped << failed;
  EXPECT_THAT(shown, HasSubstr("10.0.0.77 dev dibs-test src 10.130.0.1"));
}

}  // namespace
}  // namespace dibs::node
