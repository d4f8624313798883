// Claims of v1alpha2 that drivers allocate, in clusters that have more: devices of today's claims,
// hundreds of nodes, a server elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/classic_cluster.h"

namespace dibs::scheduler::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

class ClassicRemote : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Releases, ClassicRemote, testing::Values(27, 30, kNewestRelease));

TEST(ClassicMixed, asks_the_driver_and_allocates_devices_where_it_did) {
  ClassicCluster cluster;
  for (const char* node : {"a", "b", "c"}) cluster.add_named_node(node);
  cluster.add_resource_class("cats");
  cluster.add_class();
  cluster.add_devices("b", 1);
  cluster.add_devices("c", 1);
  cluster.add_claim("gpu");
  cluster.add_classic_claim("cat");
  cluster.add_classic_pod("p", {"cat", "gpu"});
  cluster.settle();
  // Nodes without the device are not even asked about, and nothing is selected before the answer.
  EXPECT_EQ(cluster.proposed("p"), "|b,c");
  EXPECT_THAT(cluster.held_devices(), IsEmpty());

  cluster.answer("p", "{'name':'cat','unsuitableNodes':['b']}");
  EXPECT_EQ(cluster.proposed("p"), "c|b,c");
  EXPECT_THAT(cluster.held_devices(), IsEmpty());

  cluster.allocate("cat", "c");
  EXPECT_EQ(cluster.node_of("p"), "c");
  EXPECT_THAT(cluster.held_devices(), ElementsAre("c/gpu-0"));
  EXPECT_THAT(cluster.users_of("cat"), ElementsAre("p"));
  EXPECT_EQ(cluster.proposed("p"), "none");
}

TEST(ClassicMixed, starts_over_elsewhere_when_the_devices_have_gone) {
  ClassicCluster cluster;
  for (const char* node : {"a", "b"}) cluster.add_named_node(node);
  cluster.add_resource_class("cats");
  cluster.add_class();
  cluster.add_devices("a", 1);
  cluster.add_devices("b", 1);
  for (const char* claim : {"gpu", "other"}) cluster.add_claim(claim);
  cluster.add_classic_claim("cat");
  cluster.add_classic_pod("p", {"cat", "gpu"});
  cluster.settle();
  cluster.answer("p", "{'name':'cat','unsuitableNodes':['b']}");
  ASSERT_EQ(cluster.proposed("p"), "a|a,b");
  cluster.add_pod("thief",
                  "{'resourceClaims':[{'name':'d','resourceClaimName':'other'}],'nodeSelector':{"
                  "'kubernetes.io/hostname':'a'}}");
  cluster.settle();
  ASSERT_EQ(cluster.node_of("thief"), "a");

  cluster.allocate("cat", "a");
  EXPECT_TRUE(cluster.classic_claim("cat")["status"]["deallocationRequested"].as_bool());
  EXPECT_EQ(cluster.proposed("p"), "|a,b");
  cluster.deallocate("cat");
  cluster.answer("p", "{'name':'cat'}");
  EXPECT_EQ(cluster.proposed("p"), "b|a,b");
  cluster.allocate("cat", "b");
  EXPECT_EQ(cluster.node_of("p"), "b");
  EXPECT_THAT(cluster.held_devices(), ElementsAre("a/gpu-0", "b/gpu-0"));
}

TEST(ClassicScale, asks_about_at_most_128_nodes) {
  ClassicCluster cluster;
  for (int i = 0; i < 150; ++i) cluster.add_named_node(cat("n", i));
  cluster.add_resource_class("cats");
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"});
  cluster.settle();
  const Proposal proposal = Proposal::read(cluster.context("p"));
  EXPECT_LE(proposal.potential_nodes.size(), kMostPotentialNodes);
  EXPECT_GE(proposal.potential_nodes.size(), 100U);
  EXPECT_THAT(proposal.potential_nodes, Contains(proposal.selected_node));
}

TEST(ClassicScale, comes_to_the_one_node_that_will_do) {
  ClassicCluster cluster;
  cluster.add_resource_class("cats");
  TestDriver cats(cluster, "cats");
  for (int i = 0; i < 300; ++i) {
    const std::string name = cat("n", i);
    cluster.add_named_node(name);
    if (i != 250) cats.full.insert(name);
  }
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"});
  cluster.settle();
  run_with(cluster, {&cats}, 20);
  EXPECT_EQ(cluster.node_of("p"), "n250") << cluster.condition("p");
}

TEST(ClassicScale, does_not_ask_without_end_where_nothing_will_do) {
  ClassicCluster cluster;
  cluster.add_resource_class("cats");
  TestDriver cats(cluster, "cats");
  for (int i = 0; i < 200; ++i) {
    cluster.add_named_node(cat("n", i));
    cats.full.insert(cat("n", i));
  }
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"});
  const int before = cluster.cut->writes();
  for (int i = 0; i < 120; ++i) {  // one minute
    cats.turn();
    cluster.settle(std::chrono::milliseconds(500));
  }
  EXPECT_LE(cluster.cut->writes() - before, 40);
}

TEST(ClassicScale, asks_about_a_new_node_beside_the_others) {
  ClassicCluster cluster;
  cluster.add_resource_class("cats");
  TestDriver cats(cluster, "cats");
  for (const char* name : {"a", "b"}) cluster.add_named_node(name);
  cats.full = {"a", "b", "c"};
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"});
  run_with(cluster, {&cats}, 5);
  cluster.add_named_node("c");
  run_with(cluster, {&cats}, 5);
  EXPECT_THAT(cluster.proposed("p"), testing::EndsWith("|a,b,c"));
  const int before = cluster.cut->writes();
  run_with(cluster, {&cats}, 30);
  EXPECT_EQ(cluster.cut->writes() - before, 0);  // all is said

  cats.full.erase("a");
  run_with(cluster, {&cats}, 5);
  EXPECT_EQ(cluster.node_of("p"), "a") << cluster.condition("p");
}

TEST_P(ClassicRemote, goes_the_same_way_over_http) {
  ClassicCluster cluster(GetParam(), {}, true);
  for (const char* node : {"a", "b"}) cluster.add_named_node(node);
  for (const char* name : {"cats", "dogs"}) cluster.add_resource_class(name);
  TestDriver cats(cluster, "cats");
  TestDriver dogs(cluster, "dogs");
  cats.full = {"a"};
  cluster.add_classic_claim("cat");
  cluster.add_classic_claim("dog", "dogs");
  cluster.add_classic_pod("p", {"cat", "dog"});
  run_with(cluster, {&cats, &dogs}, 10);
  EXPECT_EQ(cluster.node_of("p"), "b") << cluster.condition("p");
  EXPECT_EQ(cluster.proposed("p"), "none");
}

}  // namespace
}  // namespace dibs::scheduler::test
