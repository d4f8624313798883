#include "scheduler/scores/test_scores.h"

namespace dibs::scheduler::test {
namespace {

using testing::ElementsAre;

constexpr const char* kBalance = "NodeResourcesBalancedAllocation";

TEST(NodeResourcesBalancedAllocationScore, prefers_shares_that_are_alike) {
  ScoreWorld world;
  world.add_node("even");
  world.add_node("odd", "", "", "'allocatable':{'cpu':'4','memory':'2Gi'}");

  EXPECT_THAT(world.score(kBalance, world.pod("p", asking("'cpu':'2','memory':'2Gi'"))),
              ElementsAre(100, 75));
}

TEST(NodeResourcesBalancedAllocationScore, has_no_say_about_pods_that_ask_for_nothing) {
  ScoreWorld world;
  world.add_node("a");
  world.add_node("b");
  EXPECT_THAT(world.score(kBalance, world.pod("p", "")), ElementsAre(0, 0));
}

TEST(NodeResourcesBalancedAllocationScore, compares_the_resources_of_the_profile) {
  ScoreWorld world;
  world.add_node("a", "", "", "'allocatable':{'cpu':'4','memory':'4Gi','x.io/gpu':'1'}");
  world.profile.balanced = {ScoredResource::of("cpu"), ScoredResource::of("memory"),
                            ScoredResource::of("x.io/gpu")};

  // 0, 0 and 1: a deviation of 0.47.
  EXPECT_THAT(world.score(kBalance, world.pod("p", asking("'x.io/gpu':'1'"))), ElementsAre(52));
}

}  // namespace
}  // namespace dibs::scheduler::test
