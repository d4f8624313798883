#include "scheduler/scores/test_scores.h"

namespace dibs::scheduler::test {
namespace {

using testing::ElementsAre;

constexpr const char* kScore = "InterPodAffinity";

std::string term(const char* app) {
  return cat("{'topologyKey':'zone','labelSelector':{'matchLabels':{'app':'", app, "'}}}");
}

std::string preferred(const char* kind, const char* app, int weight) {
  return cat("'affinity':{'", kind,
             "':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':", weight,
             ",'podAffinityTerm':", term(app), "}]}}");
}

struct Zones : ScoreWorld {
  Zones() {
    for (const char* name : {"a", "b", "c"}) add_node(name, cat("'zone':'", name, "'"));
  }
};

TEST(InterPodAffinityScore, goes_where_its_friends_are_and_not_where_others_are) {
  Zones world;
  world.assign(world.pod("x", "", "'app':'web'"), "a");
  world.assign(world.pod("y", "", "'app':'web'"), "b");
  world.assign(world.pod("z", "", "'app':'web'"), "b");

  EXPECT_THAT(world.score(kScore, world.pod("p", preferred("podAffinity", "web", 5))),
              ElementsAre(50, 100, 0));
  EXPECT_THAT(world.score(kScore, world.pod("q", preferred("podAntiAffinity", "web", 5))),
              ElementsAre(50, 0, 100));
}

TEST(InterPodAffinityScore, counts_what_assigned_pods_prefer_and_require) {
  Zones world;
  world.assign(world.pod("x", preferred("podAffinity", "web", 4)), "a");
  world.assign(world.pod("y", cat("'affinity':{'podAffinity':{"
                                  "'requiredDuringSchedulingIgnoredDuringExecution':[",
                                  term("web"), "]}}")),
               "b");
  const PodPtr pod = world.pod("p", "", "'app':'web'");

  EXPECT_THAT(world.score(kScore, pod), ElementsAre(100, 25, 0));
  world.profile.hard_affinity_weight = 8;
  EXPECT_THAT(world.score(kScore, pod), ElementsAre(50, 100, 0));
  world.profile.ignore_preferred_terms = true;
  EXPECT_THAT(world.score(kScore, pod), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace dibs::scheduler::test
