#include "scheduler/scores/test_scores.h"

namespace dibs::scheduler::test {
namespace {

using testing::ElementsAre;

constexpr const char* kWish =
    "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':"
    "'ScheduleAnyway','labelSelector':{'matchLabels':{'app':'s'}}}]";

TEST(PodTopologySpreadScore, prefers_places_with_fewer_of_its_kind) {
  ScoreWorld world;
  for (const char* name : {"a", "b"}) world.add_node(name, cat("'zone':'", name, "'"));
  world.add_node("nowhere");
  for (const char* name : {"x", "y"}) world.assign(world.pod(name, "", "'app':'s'"), "a");
  world.assign(world.pod("z", "", "'app':'other'"), "b");

  EXPECT_THAT(world.score("PodTopologySpread", world.pod("p", kWish, "'app':'s'")),
              ElementsAre(0, 100, 0));
}

TEST(PodTopologySpreadScore, has_no_say_without_wishes) {
  ScoreWorld world;
  world.add_node("a", "'zone':'a'");
  EXPECT_THAT(world.score("PodTopologySpread", world.pod("p", "")), ElementsAre(0));
}

}  // namespace
}  // namespace dibs::scheduler::test
