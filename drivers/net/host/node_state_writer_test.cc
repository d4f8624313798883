#include "drivers/net/host/node_state_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/test_cluster.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using std::chrono::seconds;

const client::Gvr kNodes = {"", "v1", "nodes"};

/// Links that a test changes, and that can fail.
struct World {
  LinkFacts facts;
  bool changed = false;
  bool fails = false;
  int reads = 0;
};

class FakeLinks : public Links {
 public:
  explicit FakeLinks(World& world) : world_(world) {}
  Result<LinkFacts> read() override {
    ++world_.reads;
    if (world_.fails) return Error::unavailable("netlink socket: Operation not permitted");
    return world_.facts;
  }
  bool changed() override { return std::exchange(world_.changed, false); }

 private:
  World& world_;
};

class NodeStateWriterTest : public testing::Test, protected cluster::test::TestCluster {
 protected:
  NodeStateWriterTest() { world.facts.links = {link("eth0", 2)}; }
  ~NodeStateWriterTest() override {
    writer.reset();
    close();
  }

  static Link link(const std::string& name, int index) {
    Link out;
    out.name = name;
    out.index = index;
    out.hardware_type = 1;
    out.up = true;
    return out;
  }

  void install_kinds() {
    for (int i = 0; i < 100; ++i) {
      if (install(*api).ok()) return;
      sim.advance(std::chrono::milliseconds(100));
    }
    FAIL() << "the kinds are not installed";
  }
  void make_node() { create(kNodes, "", "{'metadata': {'name': 'node-a'}}"); }

  void start() {
    FactsOptions options;
    options.node_name = "node-a";
    options.roots = {"/nonexistent", "/nonexistent"};
    NodeStateWriterOptions callbacks;
    callbacks.changed = [this](const NodeState&) { ++changes; };
    callbacks.background_error = [this](const Error& error) { errors.push_back(error.message()); };
    writer = std::make_unique<NodeStateWriter>(
        *api, sim.runtime(),
        std::make_unique<HostFacts>(std::make_unique<FakeLinks>(world), sim.runtime().clock,
                                    options),
        callbacks);
    writer->start();
    sim.advance(seconds(1));
  }
  Value stored() { return get(kNodeStates, "", "node-a"); }
  std::string version() { return stored()["metadata"]["resourceVersion"].str(); }

  World world;
  std::unique_ptr<NodeStateWriter> writer;
  int changes = 0;
  std::vector<std::string> errors;
};

TEST_F(NodeStateWriterTest, writes_what_the_node_has) {
  install_kinds();
  make_node();

  start();

  const Value object = stored();
  EXPECT_EQ(object["metadata"]["ownerReferences"][0]["uid"],
            get(kNodes, "", "node-a")["metadata"]["uid"]);
  const auto state = parse_node_state(object);
  ASSERT_TRUE(state.ok()) << state.error().message();
  EXPECT_TRUE(same_facts(*state, *writer->state()));
  EXPECT_EQ(state->interfaces[0].name, "eth0");
  EXPECT_TRUE(writer->written());
  EXPECT_EQ(changes, 1);
  EXPECT_THAT(errors, testing::IsEmpty());
}

TEST_F(NodeStateWriterTest, writes_only_changes_and_a_sign_of_life_a_minute) {
  install_kinds();
  make_node();
  start();
  const std::string first = version();

  sim.advance(seconds(55));
  EXPECT_EQ(version(), first);
  const std::string seen = stored()["status"]["observedTime"].str();
  sim.advance(seconds(10));
  const std::string second = version();
  EXPECT_NE(second, first);
  EXPECT_NE(stored()["status"]["observedTime"].str(), seen);
  sim.advance(seconds(50));
  EXPECT_EQ(version(), second);
  EXPECT_EQ(changes, 1);
}

TEST_F(NodeStateWriterTest, writes_a_change_within_two_seconds_and_many_at_once) {
  install_kinds();
  make_node();
  start();
  const int reads = world.reads;
  sim.advance(seconds(10));
  EXPECT_EQ(world.reads, reads);

  world.facts.links.push_back(link("eth1", 3));
  world.facts.links.push_back(link("eth2", 4));
  world.changed = true;
  sim.advance(seconds(2));

  EXPECT_EQ(stored()["status"]["nics"].as_int(), 3);
  EXPECT_EQ(world.reads, reads + 1);
  EXPECT_EQ(changes, 2);
}

TEST_F(NodeStateWriterTest, brings_back_what_somebody_deleted_or_changed) {
  install_kinds();
  make_node();
  start();

  ASSERT_TRUE(api->remove(kNodeStates, "", "node-a").ok());
  sim.advance(seconds(65));
  EXPECT_EQ(stored()["status"]["nics"].as_int(), 1);

  Value forged = stored();
  forged.mut("status").set("nics", 99);
  ASSERT_TRUE(api->update_status(kNodeStates, "", forged).ok());
  sim.advance(seconds(65));
  EXPECT_EQ(stored()["status"]["nics"].as_int(), 1);
  EXPECT_THAT(errors, testing::IsEmpty());
}

TEST_F(NodeStateWriterTest, belongs_to_the_node_that_is_there_now) {
  install_kinds();
  make_node();
  start();
  writer.reset();

  ASSERT_TRUE(api->remove(kNodes, "", "node-a").ok());
  make_node();
  start();

  EXPECT_EQ(stored()["metadata"]["ownerReferences"][0]["uid"],
            get(kNodes, "", "node-a")["metadata"]["uid"]);
  EXPECT_EQ(stored()["metadata"]["ownerReferences"].size(), 1U);
}

TEST_F(NodeStateWriterTest, waits_for_kinds_and_node) {
  start();
  EXPECT_FALSE(writer->written());
  EXPECT_TRUE(writer->state());
  sim.advance(seconds(60));
  // The same failure is told once.
  EXPECT_LE(errors.size(), 3U);

  install_kinds();
  make_node();
  sim.advance(seconds(40));

  EXPECT_TRUE(writer->written());
  EXPECT_EQ(stored()["status"]["nics"].as_int(), 1);
}

TEST_F(NodeStateWriterTest, says_that_it_cannot_look_and_does_not_pretend_to) {
  install_kinds();
  make_node();
  start();
  const std::string seen = stored()["status"]["observedTime"].str();

  world.fails = true;
  world.changed = true;
  sim.advance(seconds(200));

  EXPECT_FALSE(stored()["status"]["ready"].as_bool());
  EXPECT_EQ(stored()["status"]["message"].as_string(), "netlink socket: Operation not permitted");
  EXPECT_EQ(stored()["status"]["observedTime"].as_string(), seen);
  EXPECT_EQ(errors.size(), 1U);

  world.fails = false;
  sim.advance(seconds(3));
  EXPECT_TRUE(stored()["status"]["ready"].as_bool());
  EXPECT_FALSE(stored()["status"].contains("message"));
}

}  // namespace
}  // namespace dibs::drivers::net
