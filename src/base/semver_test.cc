#include "base/semver.h"

#include <gtest/gtest.h>

namespace dibs {
namespace {

TEST(SemanticVersion, parses_what_it_writes) {
  for (const char* text :
       {"0.0.0", "1.2.3", "1.2.3-alpha.1", "1.2.3-0.x-y.92+build.007", "1.0.0+a"}) {
    auto version = SemanticVersion::parse(text);
    ASSERT_TRUE(version.ok()) << text;
    EXPECT_EQ(version->str(), text);
  }
}

TEST(SemanticVersion, refuses_broken_text) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"", "Version string empty"},
           {"1.2", "No Major.Minor.Patch elements found"},
           {"v1.2.3", R"(Invalid character(s) found in major number "v1")"},
           {"01.2.3", R"(Major number must not contain leading zeroes "01")"},
           {"1.2.", R"(strconv.ParseUint: parsing "": invalid syntax)"},
           {"1.2.3.4", R"(Invalid character(s) found in patch number "3.4")"},
           {"1.2.3-", "Prerelease is empty"},
           {"1.2.3-01", R"(Numeric PreRelease version must not contain leading zeroes "01")"},
           {"1.2.3-a_b", R"(Invalid character(s) found in prerelease "a_b")"},
           {"1.2.3+", "Build meta data is empty"},
           {"1.2.99999999999999999999",
            R"(strconv.ParseUint: parsing "99999999999999999999": value out of range)"}}) {
    auto version = SemanticVersion::parse(c.text);
    ASSERT_FALSE(version.ok()) << c.text;
    EXPECT_EQ(version.error().message(), c.message);
  }
}

TEST(SemanticVersion, orders_by_precedence) {
  const char* ordered[] = {"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta",
                           "1.0.0-beta",  "1.0.0-beta.2",  "1.0.0-beta.11",
                           "1.0.0-rc.1",  "1.0.0",         "1.0.1",
                           "1.1.0",       "2.0.0",         "10.0.0"};
  for (std::size_t i = 0; i + 1 < std::size(ordered); ++i) {
    EXPECT_LT(*SemanticVersion::parse(ordered[i]), *SemanticVersion::parse(ordered[i + 1]));
  }
  EXPECT_EQ(*SemanticVersion::parse("1.0.0+a"), *SemanticVersion::parse("1.0.0+b"));
}

TEST(SemanticVersion, tolerant_parsing_fills_in) {
  EXPECT_EQ(SemanticVersion::parse_tolerant("v1")->str(), "1.0.0");
  EXPECT_EQ(SemanticVersion::parse_tolerant("1.02")->str(), "1.2.0");
  EXPECT_EQ(SemanticVersion::parse_tolerant("01.2.3-rc.1")->str(), "1.2.3-rc.1");
  EXPECT_FALSE(SemanticVersion::parse_tolerant("1.2-rc").ok());
}

}  // namespace
}  // namespace dibs
