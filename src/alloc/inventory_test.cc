#include "alloc/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "alloc/cases.h"
#include "alloc/testing/random_case.h"
#include "alloc/view.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::alloc {
namespace {

using json::Value;

Value parsed(std::string_view text) {
  Result<Value> value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

/// A slice with devices d0, d1, …
Value slice(std::string_view name, std::string_view pool, int generation, int count,
            std::string_view place, int devices) {
  std::string list;
  for (int i = 0; i < devices; ++i) {
    list += cat(i > 0 ? "," : "", R"({"name":"d)", i, R"(","attributes":{"i":{"int":)", i, "}}}");
  }
  return parsed(cat(R"({"metadata":{"name":")", name, R"("},"spec":{"driver":"x","pool":{"name":")",
                    pool, R"(","generation":)", generation, R"(,"resourceSliceCount":)", count,
                    "},", place, R"(,"devices":[)", list, "]}}"));
}

Node node(std::string name, std::string_view labels = "{}") {
  Node made;
  made.name = std::move(name);
  made.labels = parsed(labels);
  return made;
}

constexpr std::string_view kOnN = R"("nodeName":"n")";

std::vector<std::string> devices(Inventory& inventory, const Node& at) {
  std::vector<std::string> made;
  const NodeView& view = inventory.view(at);
  for (const Row row : view.rows) {
    const RowInfo& info = inventory.row(row);
    made.push_back(cat(info.record->slice.pool, "/", info.device->name));
  }
  return made;
}

TEST(Inventory, shows_a_node_its_own_and_shared_devices_in_order) {
  Inventory inventory(Features::all());
  inventory.put("b", slice("b", "local", 1, 1, kOnN, 2));
  inventory.put("a", slice("a", "everywhere", 1, 1, R"("allNodes":true)", 1));
  inventory.put("c", slice("c", "other", 1, 1, R"("nodeName":"m")", 1));
  inventory.put("d", slice("d", "zone", 1, 1,
                           R"("nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":
                              [{"key":"zone","operator":"In","values":["a"]}]}]})",
                           1));

  EXPECT_THAT(devices(inventory, node("n")),
              testing::ElementsAre("everywhere/d0", "local/d0", "local/d1"));
  EXPECT_THAT(devices(inventory, node("m", R"({"zone":"a"})")),
              testing::ElementsAre("everywhere/d0", "other/d0", "zone/d0"));
}

TEST(Inventory, leaves_incomplete_and_obsolete_pools_out) {
  Inventory inventory(Features::all());
  inventory.put("a", slice("a", "p", 1, 2, kOnN, 1));
  EXPECT_THAT(devices(inventory, node("n")), testing::IsEmpty());
  EXPECT_EQ(inventory.view(node("n")).pools[0].state, PoolView::State::incomplete);

  inventory.put("b", slice("b", "p", 1, 2, R"("nodeName":"m")", 1));
  EXPECT_THAT(devices(inventory, node("n")), testing::ElementsAre("p/d0"));

  inventory.put("b", slice("b", "p", 2, 1, R"("nodeName":"m")", 1));
  EXPECT_THAT(inventory.view(node("n")).pools, testing::IsEmpty());
}

TEST(Inventory, finds_pools_with_repeated_names_invalid) {
  Inventory inventory(Features::all());
  inventory.put("a", slice("a", "p", 1, 2, kOnN, 1));
  inventory.put("b", slice("b", "p", 1, 2, kOnN, 1));

  const NodeView& view = inventory.view(node("n"));

  ASSERT_EQ(view.pools.size(), 1U);
  EXPECT_EQ(view.pools[0].state, PoolView::State::invalid);
  EXPECT_EQ(view.pools[0].reason, "duplicate device name d0");
}

TEST(Inventory, asks_selectors_again_only_about_what_changed) {
  Inventory inventory(Features::all());
  inventory.put("a", slice("a", "p", 1, 1, kOnN, 3));
  SelectorTable& selectors = inventory.selectors();
  const SelectorId id = selectors.intern(R"(device.attributes["x"].i * 2 > 0)");
  const auto ask = [&] {
    int matches = 0;
    for (const Row row : inventory.view(node("n")).rows) {
      matches += selectors.verdict(id, row) == Verdict::yes ? 1 : 0;
    }
    return matches;
  };

  EXPECT_EQ(ask(), 2);
  const std::uint64_t at_first = selectors.evaluations();
  EXPECT_GE(at_first, 3U);
  EXPECT_EQ(ask(), 2);
  EXPECT_EQ(selectors.evaluations(), at_first);

  Value changed = slice("a", "p", 2, 1, kOnN, 3);
  changed.mut("spec").mut("devices").mut(std::size_t{0}).mut("attributes").mut("i").set("int", 7);
  inventory.put("a", changed);

  EXPECT_EQ(ask(), 3);
  EXPECT_EQ(selectors.evaluations(), at_first + 1);
}

TEST(Inventory, keeps_counters_in_step_with_what_is_in_use) {
  Inventory inventory(Features::all());
  inventory.put("c", parsed(R"({"metadata":{"name":"c"},"spec":{"driver":"x","nodeName":"n",
      "pool":{"name":"p","generation":1,"resourceSliceCount":2},
      "sharedCounters":[{"name":"s","counters":{"m":{"value":"10Gi"}}}]}})"));
  inventory.put("d", parsed(R"({"metadata":{"name":"d"},"spec":{"driver":"x","nodeName":"n",
      "pool":{"name":"p","generation":1,"resourceSliceCount":2},
      "devices":[{"name":"one","consumesCounters":[{"counterSet":"s",
        "counters":{"m":{"value":"4Gi"}}}]}]}})"));
  const auto left = [&] {
    Generation& generation = *inventory.view(node("n")).pools[0].generation;
    inventory.resolve(generation);
    return static_cast<std::int64_t>(generation.available[0] / kAmountUnit) >> 30;
  };

  EXPECT_EQ(left(), 10);
  inventory.take_device("x", "p", "one");
  EXPECT_EQ(left(), 6);
  inventory.take_share("x", "p", "one");
  EXPECT_EQ(left(), 6) << "a device counts once";
  inventory.release_device("x", "p", "one");
  EXPECT_EQ(left(), 6);
  inventory.release_share("x", "p", "one");
  EXPECT_EQ(left(), 10);
}

TEST(Inventory, ignores_access_for_administration_in_allocations) {
  Inventory inventory(Features::all());
  inventory.put("a", slice("a", "p", 1, 1, kOnN, 2));
  const Value allocation = parsed(R"({"devices":{"results":[
      {"driver":"x","pool":"p","device":"d0","adminAccess":true},
      {"driver":"x","pool":"p","device":"d1"}]}})");
  const NodeView& view = inventory.view(node("n"));

  inventory.take(allocation);
  EXPECT_FALSE(inventory.use(view.rows[0]).allocated());
  EXPECT_TRUE(inventory.use(view.rows[1]).allocated());

  inventory.release(allocation);
  EXPECT_FALSE(inventory.use(view.rows[1]).allocated());
}

TEST(Inventory, answers_the_same_however_it_came_about) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Value source = random_case(seed);
    const Value other = random_case(seed + 100'000);
    Case fresh(source);
    const Outcome expected = fresh.run();

    // The same slices after others were there under the same keys, and usage came and went.
    Case worn(source);
    for (std::size_t i = 0; i < other["slices"].size(); ++i) {
      worn.inventory().put(std::to_string(i), other["slices"][i]);
    }
    worn.run();
    worn.inventory().take_device("d", "pool-0", "dev-0");
    for (std::size_t i = 0; i < other["slices"].size(); ++i) {
      worn.inventory().remove(std::to_string(i));
    }
    for (std::size_t i = 0; i < source["slices"].size(); ++i) {
      worn.inventory().put(std::to_string(i), source["slices"][i]);
    }
    worn.run();
    worn.inventory().release_device("d", "pool-0", "dev-0");
    const Outcome outcome = worn.run();

    ASSERT_EQ(outcome.answer, expected.answer) << json::write(source);
    ASSERT_EQ(outcome.error, expected.error);
    ASSERT_EQ(outcome.allocations, expected.allocations);
  }
}

}  // namespace
}  // namespace dibs::alloc
