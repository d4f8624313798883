// Nothing that the API admits may take long: counted in steps, since tests do not measure time.

#include "alloc/testing/hard_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "alloc/cases.h"

namespace dibs::alloc {
namespace {

TEST(HardCases, are_answered_within_the_limit) {
  std::uint64_t most = 0;
  std::string hardest;
  for (const HardCase& hard : hard_cases()) {
    SCOPED_TRACE(hard.name);
    Case example(hard.source);

    const Outcome outcome = example.run();

    EXPECT_EQ(outcome.answer, hard.solvable ? Answer::allocated : Answer::unavailable)
        << outcome.error;
    if (outcome.stats.steps <= most) continue;
    most = outcome.stats.steps;
    hardest = hard.name;
  }
  std::cout << "hardest: " << hardest << ", " << most << " of " << Limits().steps << " steps\n";
  // Far from the limit, so that a change for the worse shows before users see it.
  EXPECT_LT(most, Limits().steps / 2);
}

TEST(HardCases, get_the_devices_that_the_plain_walk_finds_where_it_ends) {
  int compared = 0;
  for (const HardCase& hard : hard_cases()) {
    if (!hard.solvable) continue;
    SCOPED_TRACE(hard.name);
    Limits plain;
    plain.plain_steps = 100'000;
    plain.steps = 1;

    const Outcome walked = Case(hard.source).run(plain);
    const Outcome outcome = Case(hard.source).run();

    if (walked.stats.deep) continue;
    ++compared;
    EXPECT_EQ(outcome.allocations, walked.allocations);
  }
  // Those with a list of values that the last devices share, at the least.
  EXPECT_GE(compared, 3);
}

TEST(HardCases, end_at_the_limit_when_there_is_no_proof) {
  for (const HardCase& hard : hard_cases()) {
    SCOPED_TRACE(hard.name);
    Limits limits;
    limits.plain_steps = 1;
    limits.quick_check = false;
    limits.steps = 2;
    Case example(hard.source);

    const Outcome outcome = example.run(limits);

    // A single check may run over, but not by much: it is bounded by the size of the problem.
    EXPECT_LT(outcome.stats.steps, 200'000U);
    EXPECT_NE(outcome.answer, Answer::failed);
    EXPECT_NE(outcome.answer, hard.solvable ? Answer::unavailable : Answer::allocated);
  }
}

}  // namespace
}  // namespace dibs::alloc
