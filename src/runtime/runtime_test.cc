#include "runtime/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/sim_runtime.h"

namespace dibs::runtime {
namespace {

TEST(Random, below_covers_its_range_and_stays_inside) {
  SimRuntime sim;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    std::uint64_t n = sim.runtime().random.below(7);
    EXPECT_LT(n, 7u);
    seen.insert(n);
  }
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(sim.runtime().random.below(1), 0u);
}

TEST(Random, uuids_have_version_4) {
  SimRuntime sim;
  EXPECT_THAT(make_uuid(sim.runtime().random),
              testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-"
                                    "[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(make_uuid(sim.runtime().random), make_uuid(sim.runtime().random));
}

TEST(Random, suffixes_use_the_alphabet_of_generated_names) {
  SimRuntime sim;
  EXPECT_THAT(make_suffix(sim.runtime().random),
              testing::MatchesRegex("[bcdfghjklmnpqrstvwxz2456789]{5}"));
  EXPECT_EQ(make_suffix(sim.runtime().random, 12).size(), 12u);
}

}  // namespace
}  // namespace dibs::runtime
