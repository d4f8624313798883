// The search for hard cases gives what the plain walk gives.

#include "alloc/search.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "alloc/cases.h"
#include "alloc/testing/random_case.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::alloc {
namespace {

std::string text(const Outcome& outcome) {
  std::string made = std::to_string(static_cast<int>(outcome.answer)) + " " + outcome.error;
  for (const json::Value& allocation : outcome.allocations) made += json::write(allocation);
  return made;
}

struct Compared {
  int allocated = 0;
  int unavailable = 0;
  int failed = 0;
  int given_up = 0;

  void one(std::uint64_t seed, const RandomCaseOptions& options) {
    one(seed, random_case(seed, options));
  }
  void one(std::uint64_t seed, const json::Value& source) {
    Limits plain;
    plain.plain_steps = 300'000;
    plain.steps = 1;
    plain.quick_check = false;
    Limits deep;
    deep.plain_steps = 0;
    deep.steps = 50'000'000;
    deep.quick_check = seed % 2 == 0;

    const Outcome expected = Case(source).run(plain);
    const Outcome outcome = Case(source).run(deep);

    if (expected.answer == Answer::undecided || outcome.answer == Answer::undecided) {
      // Neither may be alone in this: what the walk answers, the search answers.
      ASSERT_EQ(expected.answer, Answer::undecided) << json::write(source);
      ++given_up;
      return;
    }
    ASSERT_EQ(text(outcome), text(expected)) << json::write(source);
    ++(outcome.answer == Answer::allocated     ? allocated
       : outcome.answer == Answer::unavailable ? unavailable
                                               : failed);
  }

  void print(const char* what) const {
    std::cout << what << ": " << allocated << " allocated, " << unavailable << " unavailable, "
              << failed << " faulty, " << given_up << " too long for the plain walk\n";
  }
};

/// Lists of values: some that many devices have, some that are a device's own, a few requests
/// under constraints that overlap.
json::Value list_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint64_t limit) { return static_cast<int>(random() % limit); };
  json::Value devices = json::Value::array();
  const int count = 6 + below(8);
  const auto pool_of_values = static_cast<std::uint64_t>(2 + below(5));
  for (int i = 0; i < count; ++i) {
    json::Value attributes = json::Value::object();
    for (const char* name : {"a", "b"}) {
      json::Value values = json::Value::array();
      for (int k = below(4); k > 0; --k) values.push(cat("v", below(pool_of_values)));
      for (int k = 0; k < 2; ++k) values.push(cat("own-", i, "-", k));
      if (below(12) > 0) attributes.set(name, json::Value::object({{"strings", values}}));
    }
    devices.push(json::Value::object({{"name", cat("dev-", i)}, {"attributes", attributes}}));
  }
  json::Value requests = json::Value::array();
  const int wanted = 2 + below(4);
  for (int r = 0; r < wanted; ++r) {
    requests.push(
        json::Value::object({{"name", cat("r", r)},
                             {"exactly", json::Value::object({{"deviceClassName", "any"},
                                                              {"allocationMode", "ExactCount"},
                                                              {"count", 1 + below(4) / 3}})}}));
  }
  json::Value constraints = json::Value::array();
  for (int k = 0; k < 2; ++k) {
    json::Value names = json::Value::array();
    for (int r = 0; r < wanted; ++r) {
      if (below(4) > 0) names.push(cat("r", r));
    }
    if (names.size() == 0) continue;
    constraints.push(json::Value::object(
        {{below(5) > 0 ? "matchAttribute" : "distinctAttribute", k == 0 ? "d/a" : "d/b"},
         {"requests", std::move(names)}}));
  }
  const auto named = [](std::string_view name, json::Value spec) {
    return json::Value::object(
        {{"metadata", json::Value::object({{"name", name}})}, {"spec", std::move(spec)}});
  };
  const json::Value pool =
      json::Value::object({{"name", "p"}, {"generation", 1}, {"resourceSliceCount", 1}});
  json::Value slice = json::Value::object(
      {{"driver", "d"}, {"pool", pool}, {"nodeName", "n"}, {"devices", std::move(devices)}});
  json::Value wants = json::Value::object(
      {{"requests", std::move(requests)}, {"constraints", std::move(constraints)}});
  json::Value claim = json::Value::object({{"devices", std::move(wants)}});
  json::Value features = json::Value::array();
  for (const char* gate : {"DRAConsumableCapacity", "DRAListTypeAttributes"}) features.push(gate);
  return json::Value::object(
      {{"features", std::move(features)},
       {"node", named("n", json::Value::object())},
       {"classes", json::Value::array({named("any", json::Value::object())})},
       {"slices", json::Value::array({named("s", std::move(slice))})},
       {"claims", json::Value::array({named("c", std::move(claim))})}});
}

std::uint64_t rounds(std::uint64_t usual) {
  const char* set = std::getenv("DIBS_ALLOC_ROUNDS");
  return set != nullptr ? std::strtoull(set, nullptr, 10) : usual;
}

TEST(DeepSearch, agrees_with_the_walk_on_small_cases) {
  Compared compared;
  for (std::uint64_t seed = 1; seed <= rounds(1200); ++seed) {
    compared.one(seed, RandomCaseOptions());
    if (HasFatalFailure()) return;
  }
  compared.print("small cases");
}

TEST(DeepSearch, agrees_with_the_walk_without_faults) {
  Compared compared;
  RandomCaseOptions options;
  options.faults = false;
  options.pools = 1;
  options.devices = 10;
  options.claims = 3;
  for (std::uint64_t seed = 1; seed <= rounds(600); ++seed) {
    compared.one(seed + 1'000'000, options);
    if (HasFatalFailure()) return;
  }
  compared.print("without faults");
}

TEST(DeepSearch, agrees_with_the_walk_on_partitions) {
  Compared compared;
  RandomCaseOptions options;
  options.faults = false;
  options.lists = false;
  options.capacity = false;
  options.devices = 12;
  for (std::uint64_t seed = 1; seed <= rounds(600); ++seed) {
    compared.one(seed + 2'000'000, options);
    if (HasFatalFailure()) return;
  }
  compared.print("partitions");
}

TEST(DeepSearch, agrees_with_the_walk_on_lists_of_values) {
  Compared compared;
  for (std::uint64_t seed = 1; seed <= rounds(600); ++seed) {
    compared.one(seed, list_case(seed));
    if (HasFatalFailure()) return;
  }
  compared.print("lists of values");
  EXPECT_GT(compared.allocated, 0);
  EXPECT_GT(compared.unavailable, 0);
}

}  // namespace
}  // namespace dibs::alloc
