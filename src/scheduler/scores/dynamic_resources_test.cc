#include "scheduler/scores/test_scores.h"

namespace dibs::scheduler::test {
namespace {

TEST(DynamicResourcesScore, prefers_early_alternatives_once_devices_are_found) {
  ScoreWorld world;
  world.add_node("a");
  world.add_node("b");
  const PodPtr pod = world.pod("p", "");
  std::vector<Candidate> candidates = {{0, 0, 8}, {1, 0, 2}};

  world.profile.scores = {{find_score("DynamicResources"), 2}};
  score_nodes(world.state, *pod, world.profile, candidates);
  EXPECT_EQ(candidates[0].score, 0);
  score_devices(world.state, *pod, world.profile, candidates);

  EXPECT_EQ(candidates[0].score, 200);
  EXPECT_EQ(candidates[1].score, 50);
}

}  // namespace
}  // namespace dibs::scheduler::test
