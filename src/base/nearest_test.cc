#include "base/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Nearest, counts_edits_up_to_a_limit) {
  struct Case {
    const char* a;
    const char* b;
    std::size_t limit;
    std::size_t wanted;
  };
  for (const Case& c : {Case{"", "", 3, 0}, Case{"", "abc", 5, 3}, Case{"driver", "driver", 3, 0},
                        Case{"Driver", "driver", 3, 0}, Case{"drvier", "driver", 3, 1},
                        Case{"drivr", "driver", 3, 1}, Case{"drive", "driver", 3, 1},
                        Case{"capacity", "driver", 3, 4}, Case{"a", "abcdef", 2, 3}}) {
    EXPECT_EQ(edit_distance(c.a, c.b, c.limit), c.wanted) << c.a << " " << c.b;
  }
}

TEST(Nearest, gives_the_nearest_names_first) {
  const std::vector<std::string> names = {"uuid", "model", "memory", "memoryType", "index"};

  EXPECT_THAT(nearest("memmory", names), ElementsAre("memory"));
  EXPECT_THAT(nearest("modle", names), ElementsAre("model"));
  EXPECT_THAT(nearest("memory", names), IsEmpty());
  EXPECT_THAT(nearest("banana", names), IsEmpty());
  EXPECT_THAT(nearest("abb", {"abc", "abd", "ab", "xyz"}, 2), ElementsAre("ab", "abc"));
  EXPECT_THAT(nearest("x", {"x1", "x1"}), ElementsAre("x1"));
}

}  // namespace
}  // namespace dibs
