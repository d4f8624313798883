#include "scheduler/scores/test_scores.h"

namespace dibs::scheduler::test {
namespace {

using testing::ElementsAre;
using testing::IsNull;

constexpr const char* kScore = "ImageLocality";

std::string having(const std::string& name, std::int64_t megabytes) {
  return cat("'images':[{'names':['", name, "'],'sizeBytes':", megabytes * 1024 * 1024, "}]");
}

std::string running(const std::string& image) {
  return cat("'containers':[{'name':'c','image':'", image, "'}]");
}

TEST(ImageLocalityScore, prefers_nodes_that_have_the_image_by_its_size_and_spread) {
  ScoreWorld world;
  world.add_node("has", "", "", having("r.io/app:v1", 1000));
  world.add_node("lacks", "", "", having("r.io/other:v1", 1000));

  // Half of the nodes have it: half of its size counts.
  EXPECT_THAT(world.score(kScore, world.pod("p", running("r.io/app:v1"))), ElementsAre(48, 0));
  EXPECT_THAT(world.score(kScore, world.pod("q", running("r.io/app:v2"))), ElementsAre(0, 0));
}

TEST(ImageLocalityScore, is_full_for_a_large_image_on_all_nodes) {
  ScoreWorld world;
  for (const char* name : {"a", "b"}) world.add_node(name, "", "", having("app:latest", 2000));
  // A name without a tag means the latest; a port is no tag.
  EXPECT_THAT(world.score(kScore, world.pod("p", running("app"))), ElementsAre(100, 100));
  EXPECT_THAT(world.score(kScore, world.pod("q", running("localhost:5000/app"))),
              ElementsAre(0, 0));
}

TEST(ImageLocalityScore, leaves_small_images_alone) {
  ScoreWorld world;
  world.add_node("has", "", "", having("app:v1", 23));
  world.add_node("lacks");
  EXPECT_THAT(world.score(kScore, world.pod("p", running("app:v1"))), ElementsAre(0, 0));
}

TEST(ImageLocalityScore, counts_init_containers_and_image_volumes) {
  ScoreWorld world;
  world.add_node("init", "", "", having("init:v1", 1000));
  world.add_node("volume", "", "", having("data:v1", 1000));
  const PodPtr pod =
      world.pod("p", cat("'initContainers':[{'name':'i','image':'init:v1'}],", running("app:v1"),
                         ",'volumes':[{'name':'v','image':{'reference':'data:v1'}}]"));
  // 500 MiB of at most 2000.
  EXPECT_THAT(world.score(kScore, pod), ElementsAre(24, 24));
}

TEST(ImageLocalityScore, follows_what_nodes_report) {
  ScoreWorld world;
  const PodPtr pod = world.pod("p", running("app:v1"));
  world.add_node("a", "", "", having("app:v1", 2000));
  world.add_node("b");
  EXPECT_THAT(world.score(kScore, pod), ElementsAre(100, 0));

  world.add_node("a");
  world.add_node("b", "", "", having("app:v1", 2000));
  EXPECT_THAT(world.score(kScore, pod), ElementsAre(0, 100));

  world.state.remove_node("b");
  EXPECT_THAT(world.state.image("app:v1"), IsNull());
  EXPECT_FALSE(world.state.knows_images());
}

}  // namespace
}  // namespace dibs::scheduler::test
