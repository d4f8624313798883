#include "base/interface_name.h"

#include <gtest/gtest.h>

#include <string>

namespace dibs {
namespace {

using namespace std::string_literals;

TEST(InterfaceName, is_what_the_kernel_takes) {
  for (const auto* name : {"eth0", "bond0.100", "a", "br-9f_A", "exactly15bytes!", "...", "naïve"})
    EXPECT_TRUE(is_interface_name(name)) << name;
}

TEST(InterfaceName, is_no_path_and_has_no_end_within) {
  for (const auto& name : {""s, "."s, ".."s, "a/b"s, "eth0:1"s, "a b"s, "a\tb"s, "a\x7f"s, "n1\0["s,
                           "sixteen-bytes-xx"s})
    EXPECT_FALSE(is_interface_name(name)) << name;
}

}  // namespace
}  // namespace dibs
