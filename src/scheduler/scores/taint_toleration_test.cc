#include "scheduler/scores/test_scores.h"

namespace dibs::scheduler::test {
namespace {

using testing::ElementsAre;

TEST(TaintTolerationScore, prefers_fewer_taints_that_are_not_tolerated) {
  ScoreWorld world;
  const std::string taint = "{'key':'k','effect':'PreferNoSchedule'}";
  world.add_node("none");
  world.add_node("one", "", cat("'taints':[", taint, "]"));
  world.add_node("two", "",
                 cat("'taints':[", taint, ",{'key':'other','effect':'PreferNoSchedule'}]"));

  EXPECT_THAT(world.score("TaintToleration", world.pod("p", "")), ElementsAre(100, 50, 0));
  EXPECT_THAT(world.score("TaintToleration",
                          world.pod("q", "'tolerations':[{'key':'k','operator':'Exists'}]")),
              ElementsAre(100, 100, 0));
}

TEST(TaintTolerationScore, is_full_where_nothing_is_tainted) {
  ScoreWorld world;
  world.add_node("a");
  world.add_node("b", "", "'taints':[{'key':'k','effect':'NoSchedule'}]");

  EXPECT_THAT(world.score("TaintToleration", world.pod("p", "")), ElementsAre(100, 100));
}

}  // namespace
}  // namespace dibs::scheduler::test
