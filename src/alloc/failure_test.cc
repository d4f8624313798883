#include "alloc/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "alloc/cases.h"
#include "alloc/testing/random_case.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::alloc {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Eight devices: i = 0…7, numa = i / 4; d6 is tainted.
std::string with_claims(std::string_view claims, std::string_view used = "[]") {
  std::string devices;
  for (int i = 0; i < 8; ++i) {
    devices += cat(i > 0 ? "," : "", R"({"name":"d)", i, R"(","attributes":{"i":{"int":)", i,
                   R"(},"numa":{"int":)", i / 4, "}}",
                   i == 6 ? R"(,"taints":[{"key":"ill","effect":"NoSchedule"}])" : "", "}");
  }
  return cat(R"({"name":"x","features":["DRADeviceTaints","DRAPrioritizedList"],
    "node":{"metadata":{"name":"n"}},
    "classes":[{"metadata":{"name":"gpu"},"spec":{"selectors":[
       {"cel":{"expression":"device.driver == \"x\""}}]}}],
    "slices":[{"metadata":{"name":"s"},"spec":{"driver":"x","nodeName":"n",
       "pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[)",
             devices, R"(]}}],"claims":)", claims, R"(,"allocatedDevices":)", used, "}");
}

std::string claim(std::string_view name, std::string_view devices) {
  return cat(R"({"metadata":{"name":")", name, R"(","namespace":"ns"},"spec":{"devices":)", devices,
             "}}");
}

std::string exactly(std::string_view name, int count, std::string_view expression = {}) {
  return cat(R"({"name":")", name, R"(","exactly":{"deviceClassName":"gpu",
    "allocationMode":"ExactCount","count":)",
             count,
             expression.empty()
                 ? ""
                 : cat(R"(,"selectors":[{"cel":{"expression":")", expression, R"("}}])"),
             "}}");
}

struct Explained {
  explicit Explained(const std::string& text)
      : example(*json::parse(text)),
        failure(explain(example.inventory(), example.node(), example.demand())),
        lines(describe(failure, example.demand())) {}
  Case example;
  NodeFailure failure;
  std::vector<std::string> lines;
};

TEST(Failure, counts_what_took_devices_away) {
  const Explained found(with_claims(
      cat("[",
          claim("c",
                cat(R"({"requests":[)", exactly("r", 3, "device.attributes['x'].i > 1"), "]}")),
          "]"),
      R"(["x/p/d2","x/p/d3","x/p/d4","x/p/d0"])"));

  ASSERT_EQ(found.failure.requests.size(), 1U);
  const RequestFindings& request = found.failure.requests[0];
  EXPECT_EQ(request.seen, 8U);
  EXPECT_EQ(request.left, 2U);
  EXPECT_THAT(request.losses,
              ElementsAre(Loss{Cause::request_selector, 0, "", 2}, Loss{Cause::in_use, 0, "", 3},
                          Loss{Cause::taint, 0, "ill", 1}));
  EXPECT_TRUE(found.failure.possible_when_idle);
  EXPECT_THAT(
      found.lines,
      Contains("request r of claim ns/c wants 3 of 8 devices, and 2 are left: 2 do not match "
               "the request (device.attributes['x'].i > 1), 3 are in use and 1 has the taint ill, "
               "which is not "
               "tolerated"));
}

TEST(Failure, names_what_would_help_cheapest_first) {
  const Explained found(with_claims(
      cat("[",
          claim("c",
                cat(R"({"requests":[)", exactly("r", 3, "device.attributes['x'].i > 1"), "]}")),
          "]"),
      R"(["x/p/d2","x/p/d3","x/p/d4","x/p/d0"])"));

  EXPECT_THAT(found.lines, testing::IsSupersetOf(
                               {"would help: tolerate the taint ill in request r of claim ns/c",
                                "would help: ask for 2 devices in request r of claim ns/c",
                                "would help: drop the selector (device.attributes['x'].i > 1) of "
                                "request r of claim ns/c"}));
  EXPECT_EQ(found.failure.relaxations.front().kind, Relaxation::Kind::tolerate);
  EXPECT_EQ(found.failure.relaxations.back().kind, Relaxation::Kind::release);
}

TEST(Failure, finds_the_smallest_conflict) {
  // Five of one numa node are not there; the claim before it has nothing to do with that.
  const Explained found(with_claims(
      cat("[", claim("a", cat(R"({"requests":[)", exactly("one", 1), "]}")), ",",
          claim("b", cat(R"({"requests":[)", exactly("two", 2), ",", exactly("three", 3),
                         R"(],"constraints":[{"matchAttribute":"x/numa"}]})")),
          "]")));

  EXPECT_THAT(found.failure.conflict,
              ElementsAre(ConflictItem{1, 0}, ConflictItem{1, 1}, ConflictItem{1, 0xffffffff, 0}));
  EXPECT_TRUE(found.failure.conflict_is_minimal);
  EXPECT_FALSE(found.failure.possible_when_idle);
  EXPECT_THAT(
      found.lines,
      Contains("cannot be served together: request two of claim ns/b, request three of claim "
               "ns/b and matching x/numa in claim ns/b"));
  EXPECT_THAT(found.lines,
              Contains("5 devices with the same x/numa are wanted: 4 have 0, 3 have 1"));
  EXPECT_THAT(found.lines, Contains("would help: drop the constraint on x/numa in claim ns/b"));
}

TEST(Failure, tells_waiting_from_hopeless) {
  const std::string claims =
      cat("[", claim("c", cat(R"({"requests":[)", exactly("r", 7), "]}")), "]");

  const Explained busy(with_claims(claims, R"(["x/p/d0"])"));
  EXPECT_TRUE(busy.failure.possible_when_idle);
  EXPECT_THAT(busy.lines, Contains("would help: wait until 1 device in use is given back"));

  const Explained hopeless(
      with_claims(cat("[", claim("c", cat(R"({"requests":[)", exactly("r", 9), "]}")), "]")));
  EXPECT_FALSE(hopeless.failure.possible_when_idle);
}

TEST(Failure, names_as_few_devices_to_wait_for_as_would_do) {
  // d5 and d7 are free, both of numa node 1; d4 of the same would do, as would three of node 0.
  const Explained found(
      with_claims(cat("[",
                      claim("c", cat(R"({"requests":[)", exactly("r", 3),
                                     R"(],"constraints":[{"matchAttribute":"x/numa"}]})")),
                      "]"),
                  R"(["x/p/d0","x/p/d1","x/p/d2","x/p/d3","x/p/d4"])"));

  ASSERT_FALSE(found.failure.relaxations.empty());
  const Relaxation& fix = found.failure.relaxations.back();
  EXPECT_EQ(fix.kind, Relaxation::Kind::release);
  EXPECT_THAT(fix.devices, ElementsAre("x/p/d4"));
}

TEST(Failure, names_the_device_whose_parts_are_wanted) {
  // Somebody has the whole; its halves are free, but there is nothing left to make them of.
  const std::string part = R"("consumesCounters":[{"counterSet":"s","counters":{"m":{"value":")";
  const Explained found(cat(
      R"({"name":"x","features":["DRAPartitionableDevices"],"node":{"metadata":{"name":"n"}},
       "classes":[{"metadata":{"name":"gpu"},"spec":{}}],"slices":[
       {"metadata":{"name":"a"},"spec":{"driver":"x","nodeName":"n","pool":{"name":"p",
       "generation":1,"resourceSliceCount":2},"sharedCounters":[{"name":"s","counters":
       {"m":{"value":"2"}}}]}},
       {"metadata":{"name":"b"},"spec":{"driver":"x","nodeName":"n","pool":{"name":"p",
       "generation":1,"resourceSliceCount":2},"devices":[)",
      R"({"name":"whole",)", part, R"(2"}}}]},{"name":"half-0",)", part,
      R"(1"}}}]},{"name":"half-1",)", part, R"(1"}}}]}]}}],"claims":[)",
      claim("c", cat(R"({"requests":[)", exactly("r", 2), "]}")),
      R"(],"allocatedDevices":["x/p/whole"]})"));

  EXPECT_THAT(found.failure.requests[0].losses,
              ElementsAre(Loss{Cause::in_use, 0, "", 1}, Loss{Cause::counters, 0, "", 2}));
  ASSERT_FALSE(found.failure.relaxations.empty());
  EXPECT_THAT(found.failure.relaxations.back().devices, ElementsAre("x/p/whole"));
}

TEST(Failure, names_the_capacity_that_could_be_had) {
  const std::string nic = R"("allowMultipleAllocations":true,"capacity":{"bw":{"value":)";
  Case example(*json::parse(cat(
      R"({"name":"x","features":["DRAConsumableCapacity"],"node":{"metadata":{"name":"n"}},
       "classes":[{"metadata":{"name":"nic"},"spec":{}}],"slices":[
       {"metadata":{"name":"a"},"spec":{"driver":"x","nodeName":"n","pool":{"name":"p",
       "generation":1,"resourceSliceCount":1},"devices":[{"name":"a",)",
      nic, R"("10G"}}},{"name":"b",)", nic, R"("5G"}}}]}}],"claims":[)",
      claim("c", R"({"requests":[{"name":"r","exactly":{"deviceClassName":"nic","allocationMode":
        "ExactCount","count":1,"capacity":{"requests":{"bw":"8G"}}}}]})"),
      R"(],"allocatedCapacity":[{"device":"x/p/a","consumed":{"bw":"3G"}}]})")));

  const NodeFailure failure = explain(example.inventory(), example.node(), example.demand());

  EXPECT_THAT(failure.requests[0].losses,
              ElementsAre(Loss{Cause::capacity, 0, "", 1}, Loss{Cause::capacity_in_use, 0, "", 1}));
  EXPECT_THAT(describe(failure, example.demand()),
              Contains("would help: ask for no more than 7G of bw in request r of claim ns/c"));
}

TEST(Failure, leaves_the_inventory_as_it_was) {
  RandomCaseOptions options;
  options.faults = false;
  int checked = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Case example(random_case(seed + 7'000'000, options));
    const auto picture = [&] {
      std::vector<std::uint32_t> made;
      for (Row row = 0; row < example.inventory().row_count(); ++row) {
        made.push_back(example.inventory().use(row).exclusive);
      }
      return made;
    };
    const Outcome before = example.run();
    if (before.answer != Answer::unavailable) continue;
    const std::vector<std::uint32_t> used = picture();

    const NodeFailure failure = explain(example.inventory(), example.node(), example.demand());

    EXPECT_EQ(picture(), used);
    EXPECT_EQ(explain(example.inventory(), example.node(), example.demand()), failure);
    EXPECT_EQ(example.run().answer, before.answer);
    ++checked;
  }
  EXPECT_GT(checked, 20);
}

TEST(Failure, passes_faults_on) {
  const Explained found(with_claims(cat(
      "[",
      claim("c", cat(R"({"requests":[)", exactly("r", 1, "device.attributes['x'].z == 1"), "]}")),
      "]")));

  EXPECT_EQ(found.failure.answer, Answer::failed);
  EXPECT_THAT(found.lines, Contains(HasSubstr("CEL runtime error: no such key: z")));
  EXPECT_THAT(found.failure.conflict, IsEmpty());
}

TEST(Failure, holds_in_random_cases) {
  RandomCaseOptions options;
  options.faults = false;
  int checked = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const json::Value source = random_case(seed + 3'000'000, options);
    Case example(source);
    if (example.run().answer != Answer::unavailable) continue;
    ++checked;

    const NodeFailure failure = explain(example.inventory(), example.node(), example.demand());

    // Each part of the conflict can be left out, and then the others can be served.
    const Demand& demand = example.demand();
    Bits positions(demand.positions.size());
    Bits constraints(demand.constraints.size());
    for (const ConflictItem& item : failure.conflict) {
      if (item.constraint == 0xffffffff) {
        positions.set(demand.claims[item.claim].first_position + item.request);
      } else {
        constraints.set(demand.claims[item.claim].first_constraint + item.constraint);
      }
    }
    const auto answer = [&] {
      return allocate(example.inventory(), example.node(), demand.part(positions, constraints),
                      [] { return std::string("s"); })
          .answer;
    };
    ASSERT_EQ(answer(), Answer::unavailable) << json::write(source);
    for (std::size_t p = 0; p < demand.positions.size(); ++p) {
      if (!positions.test(p)) continue;
      positions.reset(p);
      EXPECT_NE(answer(), Answer::unavailable) << json::write(source);
      positions.set(p);
    }
    for (const RequestFindings& found : failure.requests) {
      std::uint32_t lost = 0;
      for (const Loss& loss : found.losses) lost += loss.devices;
      EXPECT_EQ(lost + found.left, found.seen);
    }
    EXPECT_FALSE(to_json(failure, demand)["requests"].empty());
  }
  EXPECT_GT(checked, 50);
}

}  // namespace
}  // namespace dibs::alloc
