#include "scheduler/scores/test_scores.h"

namespace dibs::scheduler::test {
namespace {

using testing::ElementsAre;

TEST(NodeAffinityScore, adds_up_the_preferred_terms_that_hold) {
  ScoreWorld world;
  world.add_node("both", "'zone':'a','disk':'fast'");
  world.add_node("zone", "'zone':'a'");
  world.add_node("none");
  const auto term = [](const char* key, const char* value, int weight) {
    return cat("{'weight':", weight, ",'preference':{'matchExpressions':[{'key':'", key,
               "','operator':'In','values':['", value, "']}]}}");
  };
  const std::string spec =
      cat("'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[",
          term("zone", "a", 30), ",", term("disk", "fast", 10), "]}}");

  EXPECT_THAT(world.score("NodeAffinity", world.pod("p", spec)), ElementsAre(100, 75, 0));
  EXPECT_THAT(world.score("NodeAffinity", world.pod("q", "")), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace dibs::scheduler::test
