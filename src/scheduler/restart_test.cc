// A scheduler may be killed between any two writes: the next one goes on, and no device is given
// out twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {
namespace {

class Restart : public testing::TestWithParam<std::tuple<int, bool, bool>> {};

TEST_P(Restart, finishes_what_was_begun) {
  const auto [write, arrives, remote] = GetParam();
  TestCluster cluster({}, {}, remote);
  cluster.add_class("gpu", "'extendedResourceName':'example.com/gpu'");
  cluster.add_node("a");
  cluster.add_node("b");
  cluster.add_devices("a", 3);
  cluster.add_devices("b", 3);
  cluster.add_claim("shared");
  cluster.add_claim("own", 2);
  cluster.cut->cut_at(write, arrives);
  cluster.add_claim_pod("one", "shared");
  cluster.add_claim_pod("two", "shared");
  cluster.add_claim_pod("three", "own");
  cluster.add_pod("four", "{}", "{'limits':{'example.com/gpu':'2'}}");
  cluster.settle();
  cluster.stop();
  cluster.start();
  cluster.settle(std::chrono::seconds(30));

  for (const char* pod : {"one", "two", "three", "four"}) {
    EXPECT_NE(cluster.node_of(pod), "") << pod << ": " << cluster.condition(pod);
  }
  const std::vector<std::string> held = cluster.held_devices();
  EXPECT_EQ(std::set<std::string>(held.begin(), held.end()).size(), held.size());
  EXPECT_EQ(held.size(), 5U);
  EXPECT_EQ(cluster.get(kClaimsOf, "default", "shared")["status"]["reservedFor"].size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(AtEachWrite, Restart,
                         testing::Combine(testing::Range(1, 15), testing::Bool(), testing::Bool()));

class AnyOrder : public testing::TestWithParam<int> {};

TEST_P(AnyOrder, gives_every_device_once) {
  runtime::SimOptions world;
  world.seed = static_cast<std::uint64_t>(GetParam());
  world.shuffle = true;
  TestCluster cluster({}, world);
  cluster.add_class();
  for (const char* node : {"a", "b", "c"}) {
    cluster.add_node(node);
    cluster.add_devices(node, 2);
  }
  for (int i = 0; i < 8; ++i) {
    cluster.add_claim(cat("c", i));
    cluster.add_claim_pod(cat("p", i), cat("c", i));
  }
  cluster.settle(std::chrono::seconds(20));
  EXPECT_THAT(cluster.held_devices(), testing::ElementsAre("a/gpu-0", "a/gpu-1", "b/gpu-0",
                                                           "b/gpu-1", "c/gpu-0", "c/gpu-1"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyOrder, testing::Range(1, 9));

}  // namespace
}  // namespace dibs::scheduler::test
