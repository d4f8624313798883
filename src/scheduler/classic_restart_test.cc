// Claims of v1alpha2 when schedulers die between any two writes, or are two: drivers and schedulers
// end with every pod on the node of its claims, nothing reserved for nobody, and no context left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/classic_cluster.h"

namespace dibs::scheduler::test {
namespace {

/// Two drivers; "two" wants a claim of each, and "moved" has one that is on the wrong node.
class World {
 public:
  explicit World(int release, const runtime::SimOptions& world = {})
      : cluster(release, world), cats(cluster, "cats"), dogs(cluster, "dogs") {
    for (const char* node : {"a", "b", "c"}) cluster.add_named_node(node);
    for (const char* name : {"cats", "dogs"}) cluster.add_resource_class(name);
    cluster.add_classic_claim("moved");
    cluster.allocate("moved", "a");
    cats.full = {"a"};
    dogs.full = {"c"};
  }
  void add_pods() {
    cluster.add_classic_claim("one");
    cluster.add_classic_pod("single", {"one"});
    cluster.add_classic_claim("cat");
    cluster.add_classic_claim("dog", "dogs");
    cluster.add_classic_pod("two", {"cat", "dog"});
    cluster.add_classic_pod("away", {"moved"}, ",'nodeSelector':{'kubernetes.io/hostname':'b'}");
  }
  void run(int turns = 30) { run_with(cluster, {&cats, &dogs}, turns); }
  void expect_done() {
    EXPECT_NE(cluster.node_of("single"), "") << cluster.condition("single");
    EXPECT_NE(cluster.node_of("single"), "a");
    EXPECT_EQ(cluster.node_of("two"), "b") << cluster.condition("two");
    EXPECT_EQ(cluster.node_of("away"), "b") << cluster.condition("away");
    const std::map<std::string, std::string> users = {
        {"one", "single"}, {"cat", "two"}, {"dog", "two"}, {"moved", "away"}};
    for (const auto& [claim, pod] : users) {
      EXPECT_THAT(cluster.users_of(claim), testing::ElementsAre(pod)) << claim;
      const Value found = cluster.classic_claim(claim);
      EXPECT_EQ(found["status"]["allocation"]["resourceHandles"][0]["data"].str(),
                cluster.node_of(pod))
          << claim;
      EXPECT_FALSE(found["status"]["deallocationRequested"].as_bool()) << claim;
    }
    for (const char* pod : {"single", "two", "away"}) EXPECT_EQ(cluster.proposed(pod), "none");
  }

  ClassicCluster cluster;
  TestDriver cats;
  TestDriver dogs;
};

class ClassicRestart : public testing::TestWithParam<std::tuple<int, bool, int>> {};

TEST_P(ClassicRestart, finishes_what_was_begun) {
  const auto [write, arrives, release] = GetParam();
  World world(release);
  world.cluster.cut->cut_at(write, arrives);
  world.add_pods();
  world.run(10);
  world.cluster.stop();
  world.cluster.start();
  world.run();
  world.expect_done();
}

INSTANTIATE_TEST_SUITE_P(AtEachWrite, ClassicRestart,
                         testing::Combine(testing::Range(1, 20), testing::Bool(),
                                          testing::Values(27, 30)));

/// A pod with a claim of each generation: only b has something for all three.
class AllGenerations : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(AllGenerations, are_had_on_one_node) {
  const auto [write, arrives] = GetParam();
  ClassicCluster cluster;
  for (const char* node : {"a", "b", "c", "d"}) cluster.add_named_node(node);
  cluster.add_resource_class("cats");
  TestDriver cats(cluster, "cats");
  cats.full = {"a"};
  cluster.add_structured("dogs", {"a", "b", "d"});
  cluster.add_class();
  for (const char* node : {"a", "b", "c"}) cluster.add_devices(node, 1);
  cluster.add_classic_claim("cat");
  cluster.add_classic_claim("dog", "dogs");
  cluster.add_claim("gpu");
  if (write > 0) cluster.cut->cut_at(write, arrives);
  cluster.add_classic_pod("p", {"cat", "dog", "gpu"});
  cluster.settle();
  if (write == 0) {
    EXPECT_EQ(cluster.proposed("p"), "|a,b");  // nobody else comes into question
    EXPECT_TRUE(cluster.classic_claim("dog")["status"].empty());
    EXPECT_THAT(cluster.held_devices(), testing::IsEmpty());
  }
  run_with(cluster, {&cats}, 5);
  if (write > 0) {
    cluster.stop();
    cluster.start();
    run_with(cluster, {&cats}, 15);
  }

  EXPECT_EQ(cluster.node_of("p"), "b") << cluster.condition("p");
  EXPECT_THAT(cluster.held_devices(), testing::ElementsAre("b/gpu-0"));
  for (const char* claim : {"cat", "dog"}) {
    EXPECT_THAT(cluster.users_of(claim), testing::ElementsAre("p")) << claim;
  }
  const Value dog = cluster.classic_claim("dog");
  EXPECT_EQ(
      dog["status"]["allocation"]["resourceHandles"][0]["structuredData"]["nodeName"].as_string(),
      "b");
  EXPECT_EQ(cluster.proposed("p"), "none");
}

INSTANTIATE_TEST_SUITE_P(AtEachWrite, AllGenerations,
                         testing::Combine(testing::Range(0, 10), testing::Bool()));

class ClassicTwoSchedulers : public testing::TestWithParam<int> {
 protected:
  static runtime::SimOptions world() {
    runtime::SimOptions made;
    made.seed = static_cast<std::uint64_t>(GetParam());
    made.shuffle = true;
    return made;
  }
};

TEST_P(ClassicTwoSchedulers, agree) {
  World world(30, ClassicTwoSchedulers::world());
  const auto transport = client::make_resource_transport(world.cluster.api->transport());
  client::Client client(*transport);
  Scheduler other(client, world.cluster.sim.runtime(), at_release(30));
  other.start();
  world.cluster.settle();
  world.add_pods();
  world.run(60);
  world.expect_done();
  // They do not keep the drivers busy for nothing.
  EXPECT_LE(world.cats.allocations() + world.dogs.allocations(), 6);
  other.stop();
  world.cluster.sim.run_until_idle();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClassicTwoSchedulers, testing::Range(1, 9));

TEST(ClassicScarce, gives_every_unit_once_and_to_everybody_in_turn) {
  ClassicCluster cluster(30);
  for (const char* node : {"a", "b"}) cluster.add_named_node(node);
  cluster.add_resource_class("cats");
  TestDriver cats(cluster, "cats");
  cats.units = {{"a", 1}, {"b", 1}};
  for (const char* name : {"x", "y", "z"}) {
    cluster.add_classic_claim(name);
    cluster.add_classic_pod(name, {name});
  }
  run_with(cluster, {&cats}, 20);
  int placed = 0;
  std::string first;
  for (const char* name : {"x", "y", "z"}) {
    if (cluster.node_of(name).empty()) continue;
    ++placed;
    first = name;
  }
  EXPECT_EQ(placed, 2);

  cluster.remove(kPodsOf, "default", first);
  cluster.patch(kClassicClaimsOf, "default", first,
                "{'status':{'reservedFor':null,'deallocationRequested':true}}", "status");
  run_with(cluster, {&cats}, 20);
  for (const char* name : {"x", "y", "z"}) {
    if (name != first) {
      EXPECT_NE(cluster.node_of(name), "") << name << ": " << cluster.condition(name);
    }
  }
}

}  // namespace
}  // namespace dibs::scheduler::test
