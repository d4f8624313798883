// Faults that Kubernetes' allocator has or had, and what is right instead.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "alloc/cases.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::alloc {
namespace {

using json::Value;
using testing::ElementsAre;
using testing::IsEmpty;

struct Problem {
  std::string devices;
  std::string counters = {};  // of set "s"; empty: none
  std::string requests;
  std::string constraints = "[]";
  std::string used = "[]";
  std::string features = R"(["DRAPartitionableDevices","DRAConsumableCapacity",
                             "DRAListTypeAttributes","DRAPrioritizedList"])";
  std::string more_sets = {};

  Value source() const {
    const std::string pool = cat(R"("pool":{"name":"p","generation":1,"resourceSliceCount":)",
                                 counters.empty() ? 1 : 2, R"(},"driver":"x","nodeName":"n")");
    std::string slices =
        cat(R"({"metadata":{"name":"a"},"spec":{)", pool, R"(,"devices":)", devices, "}}");
    if (!counters.empty()) {
      slices +=
          cat(R"(,{"metadata":{"name":"b"},"spec":{)", pool,
              R"(,"sharedCounters":[{"name":"s","counters":)", counters, "}", more_sets, "]}}");
    }
    Result<Value> parsed = json::parse(
        cat(R"({"name":"t","features":)", features, R"(,"node":{"metadata":{"name":"n"}},
          "classes":[{"metadata":{"name":"any"},"spec":{}}],"slices":[)",
            slices, R"(],"claims":[{"metadata":{"name":"c"},"spec":{"devices":{"requests":)",
            requests, R"(,"constraints":)", constraints, R"(}}}],"allocatedDevices":)", used, "}"));
    EXPECT_TRUE(parsed.ok()) << parsed.error().message();
    return parsed.ok() ? *parsed : Value();
  }

  std::vector<std::string> devices_of(const Outcome& outcome) const {
    std::vector<std::string> made;
    if (outcome.allocations.empty()) return made;
    for (const Value& result : outcome.allocations[0]["devices"]["results"].items()) {
      made.push_back(result["device"].str());
    }
    return made;
  }
  std::vector<std::string> solve() const { return devices_of(Case(source()).run()); }
};

std::string exactly(std::string_view name, int count, std::string_view more = {}) {
  return cat(R"({"name":")", name, R"(","exactly":{"deviceClassName":"any",
    "allocationMode":"ExactCount","count":)",
             count, more, "}}");
}

TEST(Defects, distinct_holds_between_all_devices_of_a_request) {
  Problem problem;
  problem.devices = R"([{"name":"d0","attributes":{"r":{"int":1}}},
    {"name":"d1","attributes":{"r":{"int":2}}},{"name":"d2","attributes":{"r":{"int":1}}}])";
  problem.requests = cat("[", exactly("r", 3), "]");
  problem.constraints = R"([{"distinctAttribute":"x/r"}])";
  EXPECT_THAT(problem.solve(), IsEmpty());

  problem.requests = cat("[", exactly("r", 2), "]");
  EXPECT_THAT(problem.solve(), ElementsAre("d0", "d1"));

  // Likewise when the third of three is equal to the first alone, and a fourth would do.
  problem.devices.insert(problem.devices.size() - 1,
                         R"(,{"name":"d3","attributes":{"r":{"int":3}}})");
  problem.requests = cat("[", exactly("r", 3), "]");
  EXPECT_THAT(problem.solve(), ElementsAre("d0", "d1", "d3"));
  problem.requests = cat("[", exactly("r", 2), ",", exactly("q", 1), "]");
  EXPECT_THAT(problem.solve(), ElementsAre("d0", "d1", "d3"));
}

TEST(Defects, an_intersection_is_restored_when_a_device_is_given_back) {
  // d0 and d1 leave only b, which d3 lacks; after giving d1 back, a counts again.
  Problem problem;
  problem.devices = R"([{"name":"d0","attributes":{"l":{"strings":["a","b"]}}},
    {"name":"d1","attributes":{"l":{"strings":["b"]}}},
    {"name":"d2","attributes":{"l":{"strings":["a"]}}},
    {"name":"d3","attributes":{"l":{"strings":["a"]}}}])";
  problem.requests = cat("[", exactly("r", 3), "]");
  problem.constraints = R"([{"matchAttribute":"x/l"}])";
  EXPECT_THAT(problem.solve(), ElementsAre("d0", "d2", "d3"));
}

TEST(Defects, counters_of_a_device_that_was_given_back_are_free_again) {
  // d0 takes all of the counter and then fails the constraint of the second request.
  Problem problem;
  problem.devices = R"([
    {"name":"d0","attributes":{"r":{"int":1}},
     "consumesCounters":[{"counterSet":"s","counters":{"m":{"value":"4"}}}]},
    {"name":"d1","attributes":{"r":{"int":2}},
     "consumesCounters":[{"counterSet":"s","counters":{"m":{"value":"4"}}}]},
    {"name":"d2","attributes":{"r":{"int":2}}}])";
  problem.counters = R"({"m":{"value":"4"}})";
  problem.requests = cat("[", exactly("r", 1), ",", exactly("q", 1), "]");
  problem.constraints = R"([{"matchAttribute":"x/r"}])";
  EXPECT_THAT(problem.solve(), ElementsAre("d1", "d2"));
}

TEST(Defects, counters_of_a_claim_that_was_freed_are_free_again) {
  Problem problem;
  problem.devices = R"([
    {"name":"d0","consumesCounters":[{"counterSet":"s","counters":{"m":{"value":"3"}}}]},
    {"name":"d1","consumesCounters":[{"counterSet":"s","counters":{"m":{"value":"3"}}}]}])";
  problem.counters = R"({"m":{"value":"4"}})";
  problem.requests = cat("[", exactly("r", 1), "]");
  Case example(problem.source());
  for (int round = 0; round < 5; ++round) {
    const Outcome outcome = example.run();
    ASSERT_EQ(problem.devices_of(outcome), std::vector<std::string>{"d0"}) << round;
    example.inventory().take(outcome.allocations[0]);
    // While it is held, the slices may be written anew.
    example.inventory().put("0", problem.source()["slices"][0]);
    example.inventory().put("1", problem.source()["slices"][1]);
    EXPECT_EQ(example.run().answer, Answer::unavailable) << round;
    example.inventory().release(outcome.allocations[0]);
  }
}

TEST(Defects, counters_of_an_alternative_that_was_left_are_free_again) {
  // The first alternative takes all of the counter and then finds no second device.
  Problem problem;
  problem.devices = R"([
    {"name":"d0","consumesCounters":[{"counterSet":"s","counters":{"m":{"value":"4"}}}]},
    {"name":"d1","consumesCounters":[{"counterSet":"s","counters":{"m":{"value":"1"}}}]}])";
  problem.counters = R"({"m":{"value":"4"}})";
  problem.requests = R"([{"name":"r","firstAvailable":[
    {"name":"two","deviceClassName":"any","allocationMode":"ExactCount","count":2},
    {"name":"one","deviceClassName":"any","allocationMode":"ExactCount","count":1}]}])";
  EXPECT_THAT(problem.solve(), ElementsAre("d0"));
}

TEST(Defects, an_overdrawn_counter_blocks_only_those_who_need_it) {
  Problem problem;
  problem.devices = R"([
    {"name":"d0","consumesCounters":[{"counterSet":"s","counters":{"m":{"value":"9"}}}]},
    {"name":"d1","consumesCounters":[{"counterSet":"t","counters":{"m":{"value":"1"}}}]}])";
  problem.counters = R"({"m":{"value":"4"}})";
  problem.more_sets = R"(,{"name":"t","counters":{"m":{"value":"1"}}})";
  problem.requests = cat("[", exactly("r", 1), "]");
  problem.used = R"(["x/p/d0"])";
  EXPECT_THAT(problem.solve(), ElementsAre("d1"));
}

TEST(Defects, a_share_without_capacity_is_not_charged_twice) {
  Problem problem;
  problem.devices = R"([{"name":"d0","allowMultipleAllocations":true,
    "consumesCounters":[{"counterSet":"s","counters":{"m":{"value":"3"}}}]}])";
  problem.counters = R"({"m":{"value":"4"}})";
  problem.requests = cat("[", exactly("r", 1), "]");
  Case example(problem.source());
  const Outcome first = example.run();
  ASSERT_EQ(first.answer, Answer::allocated);

  example.inventory().take(first.allocations[0]);

  EXPECT_THAT(problem.devices_of(example.run()), ElementsAre("d0"));
}

TEST(Defects, what_is_written_at_once_is_not_given_out_twice) {
  Problem problem;
  problem.devices = R"([{"name":"d0"},{"name":"d1"}])";
  problem.requests = cat("[", exactly("r", 1), "]");
  Case example(problem.source());

  const Outcome first = example.run();
  example.inventory().take(first.allocations[0]);
  const Outcome second = example.run();
  example.inventory().take(second.allocations[0]);

  EXPECT_THAT(problem.devices_of(first), ElementsAre("d0"));
  EXPECT_THAT(problem.devices_of(second), ElementsAre("d1"));
  EXPECT_EQ(example.run().answer, Answer::unavailable);
}

TEST(Defects, capacity_beyond_the_arithmetic_is_an_error_not_a_small_amount) {
  Problem problem;
  problem.devices = R"([{"name":"d0","allowMultipleAllocations":true,"capacity":{"m":{"value":"4",
    "requestPolicy":{"default":"2","validRange":{"min":"2","step":"2"}}}}}])";
  problem.requests =
      cat("[", exactly("r", 1, R"(,"capacity":{"requests":{"m":"9223372036854775807"}})"), "]");
  const Outcome outcome = Case(problem.source()).run();
  EXPECT_EQ(outcome.answer, Answer::failed);
  EXPECT_THAT(outcome.error, testing::HasSubstr("passes MaxInt64"));
}

TEST(Defects, rounding_up_never_passes_the_largest_amount_unseen) {
  struct Example {
    const char* asked;
    const char* step;
    const char* has;
  };
  // Each rounds to an amount that does not fit; a sum that wraps around would look small.
  for (const Example& example :
       {Example{"9223372036854775807", "4", "9223372036854775807"},
        Example{"9223372036854775807", "2", "9223372036854775807"}, Example{"8Ei", "2", "4"},
        Example{"9223372036854775805", "9223372036854775804", "100"}}) {
    SCOPED_TRACE(example.asked);
    Problem problem;
    problem.devices =
        cat(R"([{"name":"d0","allowMultipleAllocations":true,"capacity":{"m":{"value":")",
            example.has, R"(","requestPolicy":{"default":"2","validRange":{"min":"2","step":")",
            example.step, R"("}}}}}])");
    problem.requests =
        cat("[", exactly("r", 1, cat(R"(,"capacity":{"requests":{"m":")", example.asked, R"("}})")),
            "]");
    const Outcome outcome = Case(problem.source()).run();
    EXPECT_NE(outcome.answer, Answer::allocated);
  }
}

TEST(Defects, a_bad_device_is_the_fault_of_its_node_alone) {
  Problem problem;
  problem.devices = R"([{"name":"d0"}])";
  problem.requests = cat(
      "[",
      exactly("r", 1, R"(,"selectors":[{"cel":{"expression":"device.attributes['x'].m == 1"}}])"),
      "]");
  Case example(problem.source());
  example.inventory().put("other", *json::parse(R"({"metadata":{"name":"o"},"spec":{"driver":"x",
    "nodeName":"m","pool":{"name":"m","generation":1,"resourceSliceCount":1},
    "devices":[{"name":"good","attributes":{"m":{"int":1}}}]}})"));

  Node good;
  good.name = "m";
  EXPECT_EQ(example.run().answer, Answer::failed);
  EXPECT_EQ(probe(example.inventory(), good, example.demand()).answer, Answer::allocated);
}

TEST(Defects, all_devices_means_all_of_them) {
  // One of the two is used up by others: not to be left out, but to be waited for.
  Problem problem;
  problem.devices = R"([
    {"name":"d0","allowMultipleAllocations":true,"capacity":{"m":{"value":"4"}}},
    {"name":"d1","allowMultipleAllocations":true,"capacity":{"m":{"value":"4"}}}])";
  problem.requests = R"([{"name":"r","exactly":{"deviceClassName":"any","allocationMode":"All"}}])";
  Case example(problem.source());
  EXPECT_THAT(problem.devices_of(example.run()), ElementsAre("d0", "d1"));

  example.inventory().take_capacity("x", "p", "d1", *json::parse(R"({"m":"1"})"));
  EXPECT_EQ(example.run().answer, Answer::unavailable);
}

}  // namespace
}  // namespace dibs::alloc
