#include "base/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Names, label_tells_dots_apart_from_other_faults) {
  EXPECT_THAT(is_dns1123_label("my-name"), IsEmpty());
  EXPECT_THAT(is_dns1123_label("9x"), IsEmpty());
  EXPECT_THAT(is_dns1123_label("a.b"), ElementsAre("must not contain dots"));
  EXPECT_THAT(
      is_dns1123_label("Upper"),
      ElementsAre("a lowercase RFC 1123 label must consist of lower case alphanumeric "
                  "characters or '-', and must start and end with an alphanumeric character "
                  "(e.g. 'my-name',  or '123-abc', regex used for validation is "
                  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"));
  EXPECT_THAT(is_dns1123_label(std::string(64, 'a')),
              ElementsAre("must be no more than 63 characters"));
  EXPECT_THAT(is_dns1123_label("").size(), 1u);
}

TEST(Names, subdomain_allows_dots_between_labels) {
  EXPECT_THAT(is_dns1123_subdomain("a.b-c.9"), IsEmpty());
  EXPECT_THAT(is_dns1123_subdomain("a..b").size(), 1u);
  EXPECT_THAT(is_dns1123_subdomain(std::string(254, 'a')),
              ElementsAre("must be no more than 253 characters"));
}

TEST(Names, dns1035_label_begins_with_a_letter) {
  EXPECT_THAT(is_dns1035_label("abc-123"), IsEmpty());
  EXPECT_THAT(is_dns1035_label("1a"), ElementsAre(HasSubstr("a DNS-1035 label must consist")));
}

TEST(Names, qualified_name_has_an_optional_prefix) {
  EXPECT_THAT(is_qualified_name("MyName"), IsEmpty());
  EXPECT_THAT(is_qualified_name("example.com/My.Name_1"), IsEmpty());
  EXPECT_THAT(is_qualified_name("/b"), ElementsAre("prefix part must be non-empty"));
  EXPECT_THAT(is_qualified_name("").front(), "name part must be non-empty");
  EXPECT_THAT(is_qualified_name("a/b/c"), ElementsAre(HasSubstr("a valid label key must consist")));
  EXPECT_THAT(is_qualified_name(std::string(64, 'x')),
              ElementsAre("name part must be no more than 63 bytes"));
}

TEST(Names, limits_are_counted_in_what_the_caller_says) {
  const std::string long_prefix(254, 'a');
  EXPECT_THAT(is_qualified_name(long_prefix + "/b"),
              ElementsAre("prefix part must be no more than 253 bytes"));
  EXPECT_THAT(is_qualified_name(long_prefix + "/b", Unit::characters),
              ElementsAre("prefix part must be no more than 253 characters"));
  EXPECT_THAT(is_dns1123_subdomain(long_prefix, Unit::bytes),
              ElementsAre("must be no more than 253 bytes"));
  EXPECT_EQ(max_length_text(1, Unit::bytes), "must be no more than 1 byte");
}

TEST(Names, values_of_labels_may_be_empty) {
  EXPECT_THAT(is_label_value(""), IsEmpty());
  EXPECT_THAT(is_label_value("a_b.C"), IsEmpty());
  EXPECT_THAT(is_label_value("-"),
              ElementsAre("a valid label must be an empty string or consist of alphanumeric "
                          "characters, '-', '_' or '.', and must start and end with an "
                          "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
                          "regex used for validation is "
                          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"));
}

TEST(Names, a_prefix_may_end_in_a_dash) {
  EXPECT_EQ(as_name_prefix("ab-"), "aa");
  EXPECT_EQ(as_name_prefix("-"), "-");
  EXPECT_EQ(as_name_prefix("a"), "a");
}

}  // namespace
}  // namespace dibs
