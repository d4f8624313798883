#include "api/kinds/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Names, generate_name_may_end_in_a_dash) {
  EXPECT_THAT(is_name(NameRule::subdomain, "pre-", true), IsEmpty());
  EXPECT_THAT(is_name(NameRule::subdomain, "pre-").size(), 1u);
  EXPECT_THAT(is_name(NameRule::subdomain, "dot.", true).size(), 1u);
  EXPECT_THAT(is_name(NameRule::path_segment, ".."), ElementsAre("may not be '..'"));
  EXPECT_THAT(is_name(NameRule::path_segment, "50%"), ElementsAre("may not contain '%'"));
}

TEST(Names, port_names_are_short_and_have_a_letter) {
  EXPECT_THAT(is_port_name("http-2"), IsEmpty());
  EXPECT_THAT(is_port_name("toolongportname1"), ElementsAre("must be no more than 15 characters"));
  EXPECT_THAT(is_port_name("80"), ElementsAre("must contain at least one letter (a-z)"));
  EXPECT_THAT(is_port_name("a--b"), ElementsAre("must not contain consecutive hyphens"));
  EXPECT_THAT(is_port_name("-a"), ElementsAre("must not begin or end with a hyphen"));
}

TEST(Names, addresses_are_judged_strictly) {
  struct Case {
    const char* text;
    const char* fault;
  };
  const Case cases[] = {
      {"10.9.8.7", ""},
      {"2001:db8::ffff", ""},
      {"010.9.8.7", "must not have leading 0s"},
      {"::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"},
      {"nope", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
      {"", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
  };
  for (const Case& c : cases) {
    FieldErrors errors;
    validate_ip(c.text, Path("ip"), errors);
    EXPECT_EQ(errors.size(), *c.fault == 0 ? 0u : 1u) << c.text;
    if (!errors.empty()) {
      EXPECT_THAT(errors.errors()[0].text, HasSubstr(c.fault));
    }
  }
}

TEST(Names, networks_have_no_bits_beyond_their_prefix) {
  struct Case {
    const char* text;
    const char* fault;
  };
  const Case cases[] = {
      {"10.9.8.0/24", ""},
      {"2001:db8::/64", ""},
      {"10.9.8.1/24", "must not have bits set beyond the prefix length"},
      {"10.9.8.0/024", "must not have leading 0s in IP or prefix length"},
      {"10.9.8.0/33", "must be a valid CIDR value"},
      {"nope", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"},
  };
  for (const Case& c : cases) {
    FieldErrors errors;
    validate_cidr(c.text, Path("cidr"), errors);
    EXPECT_EQ(errors.size(), *c.fault == 0 ? 0u : 1u) << c.text;
    if (!errors.empty()) {
      EXPECT_THAT(errors.errors()[0].text, HasSubstr(c.fault));
    }
  }
}

TEST(Names, keys_and_variables) {
  EXPECT_THAT(is_config_map_key("key.name"), IsEmpty());
  EXPECT_THAT(is_config_map_key(".."), ElementsAre("must not be '..'"));
  EXPECT_THAT(is_config_map_key("bad key").size(), 1u);
  EXPECT_THAT(is_relaxed_env_var_name("bad-name 1"), IsEmpty());
  EXPECT_THAT(is_relaxed_env_var_name("1=2"),
              ElementsAre("a valid environment variable name must consist only of printable ASCII "
                          "characters other than '='"));
  EXPECT_THAT(is_percent("93%"), IsEmpty());
  EXPECT_THAT(is_percent("%").size(), 1u);
}

}  // namespace
}  // namespace dibs::api
