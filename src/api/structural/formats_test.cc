#include "api/structural/formats.h"

#include <gtest/gtest.h>

#include <vector>

#include "api/structural/pattern.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

TEST(Formats, take_what_upstream_takes) {
  struct Case {
    const char* format;
    std::vector<const char*> good;
    std::vector<const char*> bad;
  };
  const std::vector<Case> cases = {
      {"bsonobjectid", {"507f1f77bcf86cd799439011"}, {"", "507f1f77bcf86cd79943901"}},
      {"uri",
       {"https://a.b/c?d=e#f", "/path", "urn:/x"},
       {"", "relative", "http://a b", "%zz", "/%zz"}},
      {"email",
       {"a@b", "a.b@c.d", "Bob <a@b>", "\"q q\"@c", " a@b "},
       {"x", "a@", "a b@c", "a@b c", "a.@b"}},
      {"hostname",
       {"a", "a-b", "a.example", "1.example.com", "x-y-z.london", "exämple.com"},
       {"", "-a", "my-host", "a_b", "a..b", "a.b1", "a.b", "-a.com", "a-.com"}},
      {"ipv4", {"1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"}, {"x", "1.2.3", "1.2.3.256", "::1"}},
      {"ipv6", {"::1", "2001:db8::", "::ffff:1.2.3.4"}, {"1.2.3.4", "x", ":::"}},
      {"cidr", {"10.0.0.0/8", "::/0", "010.0.0.0/8"}, {"10.0.0.0", "10.0.0.0/33", "::/129", "/8"}},
      {"mac",
       {"00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455", "00:11:22:33:44:55:66:77"},
       {"", "00:11:22:33:44", "00:11:22:33:44:5g", "001122334455"}},
      {"uuid",
       {"123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"},
       {"x", "123e4567"}},
      {"uuid3", {"123e4567-e89b-32d3-a456-426614174000"}, {"123e4567-e89b-12d3-a456-426614174000"}},
      {"uuid4", {"123e4567-e89b-42d3-a456-426614174000"}, {"123e4567-e89b-42d3-c456-426614174000"}},
      {"uuid5", {"123e4567-e89b-52d3-a456-426614174000"}, {"123e4567-e89b-42d3-a456-426614174000"}},
      {"isbn", {"0321751043", "978-0321751041"}, {"0321751044", "978-0321751042"}},
      {"isbn10", {"0321751043", "0-9752298-0-X"}, {"978-0321751041"}},
      {"isbn13", {"978-0321751041"}, {"0321751043"}},
      {"creditcard", {"4111-1111-1111-1111", "5555 5555 5555 4444"}, {"4111-1111-1111-1112", "1"}},
      {"ssn", {"111-11-1111", "111 11 1111"}, {"11-111-1111", "111111111"}},
      {"hexcolor", {"#FFFFFF", "fff"}, {"#FFFF", "#ggg"}},
      {"rgbcolor", {"rgb(255,255,255)", "rgb( 0, 1 ,2 )"}, {"rgb(256,0,0)", "255,255,255"}},
      {"byte", {"YQ==", "YWI=", "YWJj"}, {"", "***", "YQ", "YQ="}},
      {"password", {"", "anything"}, {}},
      {"date", {"2006-01-02", "2024-02-29"}, {"2006-1-2", "2023-02-29", "x"}},
      {"date-time",
       {"2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20z", "2014-12-15T19:30:20+01:00"},
       {"yesterday", "2014-12-15", "2014-12-15T24:00:00Z", "2014-12-15T19:30:60Z",
        "2014-12-15T19:30:20"}},
      {"datetime", {"2014-12-15T19:30:20Z"}, {"x"}},
      {"duration",
       {"1h2m", "300ms", "22 ns", "3 days", "1 week 2 hours", "5 MIN"},
       {"x", "", "5 lightyears"}},
      {"k8s-short-name", {"a", "a-b1"}, {"A", "-a", "a.b"}},
      {"k8s-long-name", {"a.b-c", "a"}, {"A.b", "a..b", ".a"}},
  };
  for (const Case& test : cases) {
    EXPECT_TRUE(is_known_format("string", test.format)) << test.format;
    for (const char* text : test.good)
      EXPECT_TRUE(has_format(text, test.format)) << test.format << " " << text;
    for (const char* text : test.bad)
      EXPECT_FALSE(has_format(text, test.format)) << test.format << " " << text;
  }
}

TEST(Formats, depend_on_the_type) {
  EXPECT_TRUE(is_known_format("", "email"));
  EXPECT_TRUE(is_known_format("integer", "int32"));
  EXPECT_FALSE(is_known_format("integer", "email"));
  EXPECT_TRUE(is_known_format("number", "double"));
  EXPECT_FALSE(is_known_format("number", "int32"));
  EXPECT_FALSE(is_known_format("string", "int32"));
  EXPECT_FALSE(is_known_format("boolean", "date"));
  EXPECT_TRUE(has_format("anything", "odd"));
}

TEST(Pattern, occurs_anywhere) {
  EXPECT_TRUE(Pattern("b+").occurs_in("abbc"));
  EXPECT_FALSE(Pattern("^b").occurs_in("ab"));
  EXPECT_TRUE(Pattern("(?<n>a)").occurs_in("a"));
  EXPECT_FALSE(Pattern("(").occurs_in("("));
}

TEST(Pattern, faults_are_in_the_words_of_go) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"a+", ""},
      {"(?<n>a)", ""},
      {"(", "error parsing regexp: missing closing ): `(`"},
      {"[a", "error parsing regexp: missing closing ]: `[a`"},
      {"a**", "error parsing regexp: invalid nested repetition operator: `**`"},
      {"a{2,1}", "error parsing regexp: invalid repeat count: `{2,1}`"},
      {"a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"},
      {"\\", "error parsing regexp: trailing backslash at end of expression: ``"},
      {"x)", "error parsing regexp: unexpected ): `x)`"},
      {"[z-a]", "error parsing regexp: invalid character class range: `z-a`"},
      {"\\8", "error parsing regexp: invalid escape sequence: `\\8`"},
      {"(?!a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?!`"},
      {"*a", "error parsing regexp: missing argument to repetition operator: `*`"},
  };
  for (const auto& [pattern, fault] : cases)
    EXPECT_EQ(Pattern::fault_of(pattern), fault) << pattern;
}

}  // namespace
}  // namespace dibs::api
