#include "scheduler/scores/test_scores.h"

namespace dibs::scheduler::test {
namespace {

using testing::ElementsAre;

/// Two nodes, the first of which is half full.
struct HalfFull : ScoreWorld {
  HalfFull() {
    add_node("half");
    add_node("empty");
    assign(pod("other", asking("'cpu':'2','memory':'2Gi'")), "half");
  }
  const PodPtr one = pod("p", asking("'cpu':'1','memory':'1Gi'"));
};

TEST(NodeResourcesFitScore, prefers_the_emptier_node) {
  HalfFull world;
  EXPECT_THAT(world.score("NodeResourcesFit", world.one), ElementsAre(25, 75));
}

TEST(NodeResourcesFitScore, counts_a_little_for_pods_that_ask_for_nothing) {
  HalfFull world;
  const PodPtr modest = world.pod("q", "'containers':[{'name':'c'}]");
  // 100m of 4 and 200Mi of 4Gi.
  EXPECT_THAT(world.score("NodeResourcesFit", modest), ElementsAre(46, 96));
}

TEST(NodeResourcesFitScore, prefers_the_fuller_node_when_told_to) {
  HalfFull world;
  world.profile.fit.strategy = FitArgs::Strategy::most_allocated;
  EXPECT_THAT(world.score("NodeResourcesFit", world.one), ElementsAre(75, 25));
}

TEST(NodeResourcesFitScore, weighs_resources) {
  HalfFull world;
  const PodPtr lopsided = world.pod("q", asking("'cpu':'2','memory':'0'"));
  world.profile.fit.resources = {ScoredResource::of("cpu", 3), ScoredResource::of("memory", 1)};
  EXPECT_THAT(world.score("NodeResourcesFit", lopsided), ElementsAre(12, 62));
}

TEST(NodeResourcesFitScore, draws_lines_between_the_points_of_a_shape) {
  HalfFull world;
  world.profile.fit.strategy = FitArgs::Strategy::requested_to_capacity;
  world.profile.fit.resources = {ScoredResource::of("cpu")};
  world.profile.fit.shape = {{0, 0}, {50, 100}, {100, 20}};
  // 75 and 25 percent of the processors.
  EXPECT_THAT(world.score("NodeResourcesFit", world.one), ElementsAre(60, 50));
}

TEST(NodeResourcesFitScore, counts_other_resources_for_those_who_ask_for_them) {
  ScoreWorld world;
  world.add_node("a", "", "", "'allocatable':{'cpu':'4','x.io/gpu':'4'}");
  world.add_node("b", "", "", "'allocatable':{'cpu':'4','x.io/gpu':'2'}");
  world.add_node("c", "", "", "'allocatable':{'cpu':'4'}");
  world.profile.fit.resources = {ScoredResource::of("x.io/gpu")};

  EXPECT_THAT(world.score("NodeResourcesFit", world.pod("p", asking("'x.io/gpu':'1'"))),
              ElementsAre(75, 50, 0));
  EXPECT_THAT(world.score("NodeResourcesFit", world.pod("q", asking("'cpu':'1'"))),
              ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace dibs::scheduler::test
