#include "controllers/autoscaling/replica_plan.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::controllers {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

Value pod(const std::string& name, const std::string& memory) {
  return json::parse(cat(R"({"metadata":{"name":")", name, R"("},"status":{"phase":"Running"},
                             "spec":{"containers":[{"name":"c","resources":{"requests":{"memory":")",
                         memory, R"("}}}]}})"))
      .value();
}

TEST(ReplicaPlan, takes_a_share_of_what_is_requested) {
  Measured measured;
  measured.replicas = 2;
  measured.pods = {pod("a", "1Gi"), pod("b", "1Gi")};
  const std::int64_t gibibyte = (std::int64_t{1} << 30) * 1000;
  const PodUsages usages = {{"a", {{}, Duration(0), gibibyte}}, {"b", {{}, Duration(0), gibibyte}}};
  const auto made = propose_by_utilization(measured, usages, "memory", "", 50);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->replicas, 4);
  EXPECT_EQ(made->utilization, 100);
}

// Sums that pass the largest number would turn negative, and the smallest of all cannot be divided
// by -1: whoever requests and measures could end the process.
TEST(ReplicaPlan, stays_in_bounds_whatever_is_requested_and_measured) {
  EXPECT_EQ(sum_of(kLargest, kLargest), kLargest);
  EXPECT_EQ(sum_of(-kLargest, -kLargest), -kLargest);
  EXPECT_EQ(sum_of(kLargest, -1), kLargest - 1);
  Measured measured;
  measured.replicas = 3;
  measured.pods = {pod("a", "9000P"), pod("b", "9000P"), pod("c", "1m"), pod("d", "1")};
  for (const std::int64_t used : {kLargest, -kLargest, kLargest / 100, std::int64_t{0}}) {
    const PodUsages usages = {{"a", {{}, Duration(0), used}},
                              {"b", {{}, Duration(0), used}},
                              {"c", {{}, Duration(0), used}}};
    for (const std::int64_t target : {std::int64_t{1}, std::int64_t{2'000'000'000}}) {
      const auto share = propose_by_utilization(measured, usages, "memory", "", target);
      ASSERT_TRUE(share.ok());
      EXPECT_GE(share->replicas, 0);
      const auto average = propose_by_average(measured, usages, "memory", target);
      ASSERT_TRUE(average.ok());
    }
  }
}

}  // namespace
}  // namespace dibs::controllers
