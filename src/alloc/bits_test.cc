#include "alloc/bits.h"

#include <gtest/gtest.h>

#include <vector>

namespace dibs::alloc {
namespace {

std::vector<std::uint32_t> numbers(const Bits& bits) {
  std::vector<std::uint32_t> made;
  each_in(bits, [&](std::uint32_t i) { made.push_back(i); });
  return made;
}

using Numbers = std::vector<std::uint32_t>;

TEST(Bits, keep_their_numbers_when_they_grow_and_shrink) {
  Bits bits(70);
  bits.set(3);
  bits.set(69);

  bits.resize(300);
  bits.set(299);
  EXPECT_EQ(numbers(bits), (Numbers{3, 69, 299}));

  bits.resize(128);
  EXPECT_EQ(numbers(bits), (Numbers{3, 69}));
  bits.resize(60);
  bits.resize(128);
  EXPECT_EQ(numbers(bits), (Numbers{3}));
  EXPECT_EQ(bits.count(), 1U);
}

TEST(Bits, are_equal_by_their_numbers) {
  for (const std::size_t size : {60U, 128U, 129U, 400U}) {
    Bits a(size);
    Bits b(400);
    b.resize(size);
    a.set(size - 1);
    EXPECT_FALSE(a == b) << size;
    b.set(size - 1);
    EXPECT_TRUE(a == b) << size;
    a.reset(size - 1);
    EXPECT_TRUE(a.none()) << size;
  }
}

TEST(Bits, are_joined_compared_and_taken_out_of_each_other) {
  for (const std::size_t size : {100U, 200U}) {
    Bits few(size);
    few.set(1);
    few.set(99);
    Bits more = few;
    more.set(50);

    EXPECT_TRUE(few.within(more));
    EXPECT_FALSE(more.within(few));
    EXPECT_TRUE(more.remove(few));
    EXPECT_EQ(numbers(more), (Numbers{50}));
    EXPECT_FALSE(more.remove(few));
    more.add(few);
    EXPECT_EQ(numbers(more), (Numbers{1, 50, 99}));
  }
}

}  // namespace
}  // namespace dibs::alloc
