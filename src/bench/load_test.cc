#include "bench/load.h"

#include <gtest/gtest.h>

#include "bench/scheduler.h"

namespace dibs::bench {
namespace {

TEST(BenchLoad, FindsTheKeyWithoutReadingAll) {
  EXPECT_EQ(quick_key(R"({"metadata":{"resourceVersion":"1","name":"a","namespace":"n"}})"), "n/a");
  EXPECT_EQ(quick_key(R"({"metadata":{"name":"a"}})"), "a");
  EXPECT_EQ(quick_key("{}"), "");
}

TEST(BenchLoad, PercentilesAreOfTheSortedValues) {
  std::vector<double> values = {5, 1, 4, 2, 3};
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile(values, 0.5), 3);
  EXPECT_EQ(percentile(values, 0.99), 5);
  std::vector<double> none;
  EXPECT_EQ(percentile(none, 0.5), 0);
}

}  // namespace
}  // namespace dibs::bench
