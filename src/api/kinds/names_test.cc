#include "api/kinds/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::api {
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
