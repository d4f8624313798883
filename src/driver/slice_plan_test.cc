#include "driver/slice_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "driver/test_world.h"

namespace dibs::driver {
namespace {

using json::Value;
using test::from_text;
using testing::ElementsAre;
using testing::IsEmpty;

Value content(std::string_view device) {
  return from_text(cat("{'devices': [{'name': '", device, "'}]}"));
}

PlanInput input_with(std::vector<Value> wanted) {
  PlanInput input;
  input.driver = "d.example.com";
  input.node = "n";
  input.pool = "p";
  input.wanted = std::move(wanted);
  return input;
}

/// As the server would have stored what a plan creates.
Value stored(const PlanInput& input, std::size_t index, std::int64_t generation,
             std::int64_t count) {
  const Plan plan = plan_pool(input);
  Value slice = plan.create[index].second;
  slice.mut("metadata").set("name", cat(slice["metadata"]["generateName"].as_string(), "abcde"));
  slice.mut("metadata").set("uid", cat("uid-", index));
  slice.mut("spec").mut("pool").set("generation", generation);
  slice.mut("spec").mut("pool").set("resourceSliceCount", count);
  return slice;
}

std::vector<std::size_t> indexes(const std::vector<std::pair<std::size_t, Value>>& list) {
  std::vector<std::size_t> out;
  for (const auto& [index, slice] : list) out.push_back(index);
  return out;
}

TEST(SlicePlan, first_publication_has_generation_one) {
  PlanInput input = input_with({content("a"), content("b")});
  input.owner = from_text("{'kind': 'Node', 'name': 'n'}");

  const Plan plan = plan_pool(input);

  EXPECT_EQ(plan.generation, 1);
  EXPECT_THAT(indexes(plan.create), ElementsAre(0, 1));
  EXPECT_EQ(plan.create[1].second, from_text(R"({'apiVersion': 'resource.k8s.io/v1',
      'kind': 'ResourceSlice',
      'metadata': {'generateName': '00001-d.example.com-n-',
                   'ownerReferences': [{'kind': 'Node', 'name': 'n'}]},
      'spec': {'driver': 'd.example.com', 'nodeName': 'n',
               'pool': {'name': 'p', 'generation': 1, 'resourceSliceCount': 2},
               'devices': [{'name': 'b'}]}})"));
}

TEST(SlicePlan, names_carry_the_index_as_hexadecimal_digits) {
  EXPECT_EQ(generate_name(0, "d", "n"), "00000-d-n-");
  EXPECT_EQ(generate_name(31, "d", "n"), "0001f-d-n-");
  EXPECT_EQ(generate_name(0x100000, "d", "n"), "100000-d-n-");
  EXPECT_EQ(generate_name(1, "d", ""), "00001-d-");
}

TEST(SlicePlan, what_is_right_stays) {
  PlanInput input = input_with({content("a"), content("b")});
  input.existing = {stored(input, 0, 4, 2), stored(input, 1, 4, 2)};

  const Plan plan = plan_pool(input);

  EXPECT_EQ(plan.generation, 4);
  EXPECT_THAT(plan.remove, IsEmpty());
  EXPECT_THAT(plan.update, IsEmpty());
  EXPECT_THAT(plan.create, IsEmpty());
}

TEST(SlicePlan, one_changed_slice_keeps_the_generation) {
  PlanInput input = input_with({content("a"), content("b")});
  input.existing = {stored(input, 0, 4, 2), stored(input, 1, 4, 2)};
  input.wanted[1] = content("c");

  const Plan plan = plan_pool(input);

  EXPECT_EQ(plan.generation, 4);
  EXPECT_THAT(indexes(plan.update), ElementsAre(1));
  EXPECT_EQ(plan.update[0].second["spec"]["devices"][0]["name"].str(), "c");
  EXPECT_EQ(plan.update[0].second["metadata"]["uid"].str(), "uid-1");
}

TEST(SlicePlan, two_changed_slices_or_a_new_one_raise_it) {
  PlanInput input = input_with({content("a"), content("b"), content("c")});
  input.existing = {stored(input, 0, 4, 3), stored(input, 1, 4, 3), stored(input, 2, 4, 3)};
  input.wanted[0] = content("x");
  input.wanted[2] = content("y");

  const Plan changed = plan_pool(input);

  EXPECT_EQ(changed.generation, 5);
  EXPECT_THAT(indexes(changed.update), ElementsAre(0, 1, 2));

  input.wanted = {content("a"), content("b"), content("c")};
  input.existing.pop_back();

  const Plan grown = plan_pool(input);

  EXPECT_EQ(grown.generation, 5);
  EXPECT_THAT(indexes(grown.update), ElementsAre(0, 1));
  EXPECT_THAT(indexes(grown.create), ElementsAre(2));
}

TEST(SlicePlan, a_generation_of_the_driver_wins_when_it_is_higher) {
  PlanInput input = input_with({content("a")});
  input.existing = {stored(input, 0, 4, 1)};

  input.generation = 9;
  EXPECT_EQ(plan_pool(input).generation, 9);
  EXPECT_THAT(indexes(plan_pool(input).update), ElementsAre(0));

  input.generation = 3;
  EXPECT_EQ(plan_pool(input).generation, 4);
}

TEST(SlicePlan, old_generations_other_names_and_doubles_are_removed) {
  PlanInput input = input_with({content("a")});
  Value good = stored(input, 0, 4, 1);
  Value old = good;
  old.mut("spec").mut("pool").set("generation", 3);
  Value twin = good;
  twin.mut("metadata").set("name", "00000-d.example.com-n-zzzzz");
  Value of_1_35 = good;
  of_1_35.mut("metadata").set("name", "abcde-d.example.com-xyz");
  of_1_35.mut("metadata").set("generateName", "abcde-d.example.com-");
  input.existing = {good, old, twin, of_1_35};

  const Plan plan = plan_pool(input);

  EXPECT_EQ(plan.remove.size(), 3u);
  EXPECT_THAT(plan.update, IsEmpty());
  EXPECT_THAT(plan.create, IsEmpty());
}

TEST(SlicePlan, a_pool_that_nobody_wants_loses_all_slices) {
  PlanInput input = input_with({content("a")});
  input.existing = {stored(input, 0, 4, 1)};
  input.wanted.clear();

  const Plan plan = plan_pool(input);

  EXPECT_EQ(plan.remove.size(), 1u);
  EXPECT_THAT(plan.create, IsEmpty());
}

TEST(SlicePlan, what_the_server_made_of_a_slice_is_as_good_as_what_was_wanted) {
  PlanInput input = input_with({from_text("{'devices': [{'name': 'a', 'new': 1}]}")});
  Value there = stored(input, 0, 1, 1);
  there.mut("spec").set("devices", from_text("[{'name': 'a'}]"));
  input.existing = {there};
  EXPECT_EQ(plan_pool(input).update.size(), 1u);

  input.stored = {content_of(there)};

  EXPECT_THAT(plan_pool(input).update, IsEmpty());
}

TEST(SlicePlan, times_of_taints_are_the_servers) {
  const Value wanted =
      from_text("{'devices': [{'name': 'a', 'taints': [{'key': 'k', 'effect': 'NoSchedule'}]}]}");
  Value there = wanted;
  there.mut("devices")
      .mut(std::size_t{0})
      .mut("taints")
      .mut(std::size_t{0})
      .set("timeAdded", "2026-01-02T03:04:05Z");
  EXPECT_TRUE(same_content(there, wanted));

  PlanInput input = input_with({wanted});
  Value slice = stored(input, 0, 1, 1);
  slice.mut("spec").set("devices", there["devices"]);
  input.existing = {slice};
  input.wanted[0].mut("devices").push(from_text("{'name': 'b'}"));

  const Plan plan = plan_pool(input);

  ASSERT_EQ(plan.update.size(), 1u);
  EXPECT_EQ(plan.update[0].second["spec"]["devices"][0]["taints"][0]["timeAdded"].str(),
            "2026-01-02T03:04:05Z");
}

TEST(SlicePlan, dropped_fields_name_their_feature) {
  const Value wanted = from_text(R"({'devices': [{'name': 'a', 'allowMultipleAllocations': true,
      'bindingConditions': ['x'], 'consumesCounters': [{'counterSet': 'c'}],
      'taints': [{'key': 'k'}], 'attributes': {'l': {'ints': [1]}},
      'nodeAllocatableResourceMappings': {'cpu': {}}}]})");

  EXPECT_THAT(dropped_features(wanted, wanted), IsEmpty());
  EXPECT_THAT(
      dropped_features(content("a"), wanted),
      ElementsAre("DRADeviceTaints", "DRAPartitionableDevices", "DRADeviceBindingConditions",
                  "DRAConsumableCapacity", "DRANodeAllocatableResources", "DRAListTypeAttributes"));
}

}  // namespace
}  // namespace dibs::driver
