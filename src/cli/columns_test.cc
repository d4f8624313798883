#include "cli/columns.h"

#include <gtest/gtest.h>

namespace dibs::cli {
namespace {

TEST(Columns, are_as_wide_as_their_widest_cell) {
  EXPECT_EQ(in_columns({{"A", "B"}, {"long", "x"}}), "A      B\nlong   x\n");
}

TEST(Columns, have_no_control_characters) {
  EXPECT_EQ(in_one_line("a\nb\t\x1b[31mc\x7f"), "a b  [31mc ");
  EXPECT_EQ(in_one_line("\u009b31m \u00fc \u65e5"), "  31m \u00fc \u65e5");
  EXPECT_EQ(in_one_line("\xc2"), "\xc2");
  EXPECT_EQ(in_columns({{"a\nb", "\x1b]0;title\a"}}), "a b    ]0;title \n");
}

}  // namespace
}  // namespace dibs::cli
