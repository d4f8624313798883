#include "driver/publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "client/resource_versions.h"
#include "driver/test_world.h"

namespace dibs::driver {
namespace {

using json::Value;
using test::from_text;
using test::TestWorld;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Device> make_devices(std::size_t count, std::size_t from = 0) {
  std::vector<Device> devices;
  for (std::size_t i = 0; i < count; ++i) devices.emplace_back(cat("d", from + i));
  return devices;
}

class PublisherTest : public testing::Test {
 protected:
  std::unique_ptr<Publisher> make(const std::string& node = "node-0") {
    PublisherOptions options;
    options.driver_name = "d.example.com";
    options.node_name = node;
    options.may_have_successor = successor;
    options.failed = [this](const Error& error) { errors.push_back(error.message()); };
    return std::make_unique<Publisher>(resource_api, world.sim.runtime(), options);
  }

  /// "name/generation/count/devices" without the random part of names.
  std::vector<std::string> shown() {
    std::vector<std::string> out;
    for (const auto& slice : world.slices()) {
      const Value& pool = slice["spec"]["pool"];
      out.push_back(cat(slice["metadata"]["generateName"].as_string(), " ",
                        pool["generation"].as_int(), "/", pool["resourceSliceCount"].as_int(), "/",
                        slice["spec"]["devices"].size()));
    }
    return out;
  }

  void remove_all() {
    for (const auto& slice : world.slices()) {
      ASSERT_TRUE(world.api->remove(test::kSlices, "", slice["metadata"]["name"].str()).ok());
    }
  }

  std::uint64_t revision(std::size_t index) {
    return std::stoull(world.slices()[index]["metadata"]["resourceVersion"].str());
  }

  TestWorld world;
  client::ResourceClient resource_api{*world.api};
  std::vector<std::string> errors;
  bool successor = false;
};

TEST_F(PublisherTest, publishes_for_its_node) {
  auto publisher = make();

  ASSERT_TRUE(publisher->update({make_pool("node-0", make_devices(2))}).ok());
  world.settle();

  EXPECT_TRUE(publisher->is_done());
  EXPECT_THAT(errors, IsEmpty());
  ASSERT_EQ(world.slices().size(), 1u);
  const Value slice = world.slices()[0];
  EXPECT_EQ(slice["spec"]["nodeName"].str(), "node-0");
  const Value& owner = slice["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["kind"].str(), "Node");
  EXPECT_EQ(owner["uid"],
            world.api->get(test::kNodes, "", "node-0")->operator[]("metadata")["uid"]);
  EXPECT_THAT(shown(), ElementsAre("00000-d.example.com-node-0- 1/1/2"));
}

TEST_F(PublisherTest, waits_for_a_node_that_is_not_there_yet) {
  auto publisher = make("late");
  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(1))}).ok());
  world.settle();
  EXPECT_FALSE(publisher->is_done());
  EXPECT_THAT(errors.at(0), HasSubstr("look up node \"late\": nodes \"late\" not found"));

  ASSERT_TRUE(
      world.api->create(test::kNodes, "", from_text("{'metadata': {'name': 'late'}}")).ok());
  world.settle(std::chrono::seconds(31));

  EXPECT_TRUE(publisher->is_done());
  EXPECT_EQ(world.slices().size(), 1u);
}

TEST_F(PublisherTest, a_change_of_one_slice_is_an_update_in_place) {
  auto publisher = make();
  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(2))}).ok());
  world.settle();
  const std::string name = world.slices()[0]["metadata"]["name"].str();

  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(3))}).ok());
  world.settle();

  EXPECT_THAT(shown(), ElementsAre("00000-d.example.com-node-0- 1/1/3"));
  EXPECT_EQ(world.slices()[0]["metadata"]["name"].str(), name);
}

TEST_F(PublisherTest, grows_and_shrinks_with_its_pool) {
  auto publisher = make();
  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(100))}).ok());
  world.settle();

  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(300))}).ok());
  world.settle();
  EXPECT_THAT(shown(), ElementsAre("00000-d.example.com-node-0- 2/3/128",
                                   "00001-d.example.com-node-0- 2/3/128",
                                   "00002-d.example.com-node-0- 2/3/44"));

  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(1))}).ok());
  world.settle();
  EXPECT_THAT(shown(), ElementsAre("00000-d.example.com-node-0- 2/1/1"));

  ASSERT_TRUE(publisher->update({}).ok());
  world.settle();
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(PublisherTest, a_new_instance_writes_nothing_when_nothing_changed) {
  auto first = make();
  ASSERT_TRUE(first->update({make_pool("p", make_devices(2))}).ok());
  world.settle();
  first->stop();
  first.reset();
  const std::uint64_t before = revision(0);

  auto second = make();
  ASSERT_TRUE(second->update({make_pool("p", make_devices(2))}).ok());
  world.settle(std::chrono::minutes(5));

  EXPECT_TRUE(second->is_done());
  EXPECT_EQ(revision(0), before);
}

TEST_F(PublisherTest, slices_of_pools_from_before_the_start_go) {
  auto first = make();
  ASSERT_TRUE(first->update({make_pool("old", make_devices(1))}).ok());
  world.settle();
  first.reset();

  auto second = make();
  ASSERT_TRUE(second->update({make_pool("new", make_devices(1, 7))}).ok());
  world.settle();

  ASSERT_EQ(world.slices().size(), 1u);
  EXPECT_EQ(world.slices()[0]["spec"]["pool"]["name"].str(), "new");
}

TEST_F(PublisherTest, publishes_at_once_what_others_delete_but_not_over_and_over) {
  auto publisher = make();
  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(2))}).ok());
  world.settle();

  remove_all();
  world.settle(std::chrono::seconds(1));
  EXPECT_THAT(shown(), ElementsAre("00000-d.example.com-node-0- 1/1/2"));

  remove_all();
  world.settle(std::chrono::seconds(28));
  EXPECT_THAT(shown(), IsEmpty());
  world.settle(std::chrono::seconds(3));
  EXPECT_THAT(shown(), ElementsAre("00000-d.example.com-node-0- 1/1/2"));

  world.settle(std::chrono::minutes(1));
  remove_all();
  world.settle(std::chrono::seconds(1));
  EXPECT_EQ(world.slices().size(), 1u);
}

TEST_F(PublisherTest, its_own_deletions_are_not_those_of_others) {
  auto publisher = make();
  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(300))}).ok());
  world.settle();
  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(1))}).ok());
  world.settle();

  remove_all();
  world.settle(std::chrono::seconds(1));

  EXPECT_EQ(world.slices().size(), 1u);
}

TEST_F(PublisherTest, leaves_deletions_to_a_successor_for_half_a_minute) {
  successor = true;
  auto publisher = make();
  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(2))}).ok());
  world.settle(std::chrono::minutes(2));

  remove_all();
  world.settle(std::chrono::seconds(29));
  EXPECT_THAT(shown(), IsEmpty());
  world.settle(std::chrono::seconds(2));
  EXPECT_THAT(shown(), ElementsAre("00000-d.example.com-node-0- 1/1/2"));
}

TEST_F(PublisherTest, puts_right_what_others_change_after_half_a_minute) {
  auto publisher = make();
  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(2))}).ok());
  world.settle(std::chrono::minutes(2));

  Value slice = world.slices()[0];
  slice.mut("spec").set("devices", from_text("[{'name': 'other'}]"));
  ASSERT_TRUE(world.api->update(test::kSlices, "", slice).ok());
  world.settle(std::chrono::seconds(31));
  EXPECT_THAT(shown(), ElementsAre("00000-d.example.com-node-0- 1/1/2"));
}

TEST_F(PublisherTest, a_node_that_is_there_anew_owns_the_slices) {
  auto publisher = make();
  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(1))}).ok());
  world.settle(std::chrono::minutes(2));

  ASSERT_TRUE(world.api->remove(test::kNodes, "", "node-0").ok());
  remove_all();
  world.settle(std::chrono::seconds(40));
  EXPECT_THAT(shown(), IsEmpty());
  const auto node =
      world.api->create(test::kNodes, "", from_text("{'metadata': {'name': 'node-0'}}"));
  ASSERT_TRUE(node.ok());
  world.settle(std::chrono::seconds(31));

  ASSERT_EQ(world.slices().size(), 1u);
  EXPECT_EQ(world.slices()[0]["metadata"]["ownerReferences"][0]["uid"], (*node)["metadata"]["uid"]);
}

TEST_F(PublisherTest, dropped_fields_are_told_once_and_not_written_again) {
  auto publisher = make();
  Device device("d");
  device
      .set("nodeAllocatableResourceMappings",
           from_text("{'cpu': {'capacityKey': 'd.example.com/cpu'}}"))
      .capacity("d.example.com/cpu", "4");

  ASSERT_TRUE(publisher->update({make_pool("p", {device})}).ok());
  world.settle();
  const std::uint64_t before = revision(0);
  world.settle(std::chrono::minutes(5));

  EXPECT_TRUE(publisher->is_done());
  EXPECT_EQ(revision(0), before);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_THAT(errors[0], HasSubstr("some fields were dropped by the apiserver, probably because "
                                   "these features are disabled: DRANodeAllocatableResources"));
}

TEST_F(PublisherTest, what_the_server_refuses_is_told_and_tried_again) {
  auto publisher = make();
  Device bad("d");
  bad.attribute("x", "y").set("attributes", from_text("{'x': {}}"));

  ASSERT_TRUE(publisher->update({make_pool("p", {bad})}).ok());
  world.settle();
  EXPECT_FALSE(publisher->is_done());
  EXPECT_THAT(errors.at(0), HasSubstr("spec.devices[0].attributes[x]"));

  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(1))}).ok());
  world.settle(std::chrono::seconds(31));

  EXPECT_TRUE(publisher->is_done());
  EXPECT_EQ(world.slices().size(), 1u);
}

TEST_F(PublisherTest, a_wrong_pool_changes_nothing) {
  auto publisher = make();
  ASSERT_TRUE(publisher->update({make_pool("p", make_devices(1))}).ok());
  world.settle();

  EXPECT_FALSE(publisher->update({make_pool("p", {Device("a"), Device("a")})}).ok());
  EXPECT_FALSE(publisher->update({make_pool("p", {}), make_pool("p", {})}).ok());
  world.settle();

  EXPECT_EQ(world.slices()[0]["spec"]["devices"][0]["name"].str(), "d0");
}

TEST(PublisherOfRelease, servers_of_1_32_get_v1beta1) {
  cluster::Options options;
  options.server.release = "1.32";
  options.server.feature_gates = "DynamicResourceAllocation=true";
  TestWorld world(std::move(options));
  client::ResourceClient resource_api(*world.api);
  Publisher publisher(resource_api, world.sim.runtime(), {"d.example.com", "node-0"});
  Device device("d");
  device.attribute("index", 1);

  ASSERT_TRUE(publisher.update({make_pool("p", {device})}).ok());
  world.settle();

  auto listed = world.api->list({"resource.k8s.io", "v1beta1", "resourceslices"}, "");
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->items.size(), 1u);
  EXPECT_EQ(listed->items[0]["spec"]["devices"][0]["basic"]["attributes"]["index"]["int"].as_int(),
            1);
  world.settle(std::chrono::minutes(2));
  EXPECT_TRUE(publisher.is_done());
}

}  // namespace
}  // namespace dibs::driver
