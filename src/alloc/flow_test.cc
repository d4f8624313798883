#include "alloc/flow.h"

#include <gtest/gtest.h>

namespace dibs::alloc {
namespace {

FlowRow row(std::int64_t need, std::initializer_list<std::size_t> classes) {
  FlowRow made{need, Bits(8), 1};
  for (const std::size_t c : classes) made.classes.set(c);
  return made;
}

FlowStock stock(std::vector<std::int64_t> units) {
  FlowStock made;
  made.group.assign(units.size(), kNoGroup);
  made.each.assign(units.size(), 100);
  made.units = std::move(units);
  return made;
}

bool serves(const std::vector<FlowRow>& rows, const FlowStock& from) {
  std::uint64_t steps = 0;
  return Flow().can_serve(rows, from, steps);
}

TEST(Flow, serves_rows_that_must_make_way_for_each_other) {
  // First come, first served gives class 0 to the wrong rows.
  EXPECT_TRUE(
      serves({row(1, {0, 1}), row(1, {0, 2}), row(1, {0}), row(1, {1, 3})}, stock({1, 1, 1, 1})));
}

TEST(Flow, says_no_when_rows_compete_for_too_little) {
  EXPECT_FALSE(serves({row(2, {0, 1}), row(1, {0, 1}), row(1, {2})}, stock({1, 1, 5})));
  EXPECT_FALSE(serves({row(1, {0}), row(1, {0})}, stock({1})));
}

TEST(Flow, keeps_to_the_limits_of_groups) {
  FlowStock grouped = stock({3, 3, 3});
  grouped.group = {0, 0, kNoGroup};
  grouped.group_units = {4};

  EXPECT_TRUE(serves({row(3, {0}), row(3, {1, 2})}, grouped));
  EXPECT_FALSE(serves({row(3, {0}), row(2, {1})}, grouped));
}

TEST(Flow, gives_one_request_no_more_of_a_class_than_it_may_have) {
  FlowStock shared = stock({4, 1});
  shared.each = {1, 1};

  EXPECT_TRUE(serves({row(2, {0, 1}), row(1, {0})}, shared));
  EXPECT_FALSE(serves({row(2, {0})}, shared));
  FlowRow two = row(2, {0});
  two.requests = 2;
  EXPECT_TRUE(serves({two}, shared));
}

}  // namespace
}  // namespace dibs::alloc
