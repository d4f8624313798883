// The search for hard cases gives what the plain walk gives.

#include "alloc/search.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "alloc/cases.h"
#include "alloc/random_case.h"
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
    const json::Value source = random_case(seed, options);
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

std::uint64_t rounds(std::uint64_t usual) {
  const char* set = std::getenv("DIBS_ALLOC_ROUNDS");
  return set != nullptr ? std::strtoull(set, nullptr, 10) : usual;
}

TEST(DeepSearch, agrees_with_the_walk_on_small_cases) {
  Compared compared;
  for (std::uint64_t seed = 1; seed <= rounds(1200); ++seed) {
    compared.one(seed, {});
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

}  // namespace
}  // namespace dibs::alloc
