#include "base/ipv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs {
namespace {

using testing::HasSubstr;

TEST(Ipv4, reads_what_it_writes_and_nothing_else) {
  EXPECT_EQ(parse_ipv4("10.1.2.3"), 0x0a010203U);
  EXPECT_EQ(ipv4_text(0x0a010203U), "10.1.2.3");
  for (const char* bad : {"", "10", "10.1.2", "10.1.2.3.4", "10.1.2.256", "10.1.2.03", " 10.1.2.3",
                          "10.1.2.3 ", "::1", "a.b.c.d", "0x0a.1.2.3"}) {
    EXPECT_EQ(parse_ipv4(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_ipv4(std::string_view("10.1.2.3\0", 9)), std::nullopt);
}

TEST(Ipv4Range, knows_its_addresses) {
  const Ipv4Range range = *Ipv4Range::parse("10.0.0.0/24");
  EXPECT_EQ(range.text(), "10.0.0.0/24");
  EXPECT_EQ(range.size(), 256U);
  EXPECT_EQ(range.address(10), "10.0.0.10");
  EXPECT_TRUE(range.contains(*parse_ipv4("10.0.0.255")));
  EXPECT_FALSE(range.contains(*parse_ipv4("10.0.1.0")));
  for (const char* other : {"10.0.0.0/8", "10.0.0.128/25", "0.0.0.0/0", "10.0.0.7/32"}) {
    EXPECT_TRUE(range.overlaps(*Ipv4Range::parse(other))) << other;
    EXPECT_TRUE(Ipv4Range::parse(other)->overlaps(range)) << other;
  }
  EXPECT_FALSE(range.overlaps(*Ipv4Range::parse("10.0.1.0/24")));
}

TEST(ServiceRange, is_refused_with_what_would_be_right) {
  EXPECT_TRUE(parse_service_range("10.96.0.0/12").ok());
  EXPECT_TRUE(parse_service_range("192.168.7.16/28").ok());
  const std::pair<const char*, const char*> cases[] = {
      {"garbage", "must be ADDRESS/BITS"},
      {"", "must be ADDRESS/BITS"},
      {"10.0.0.0", "must be ADDRESS/BITS"},
      {"10.0.0.0/", "must be ADDRESS/BITS"},
      {"10.0.0.0/024", "must be ADDRESS/BITS"},
      {"10.0.0.0/33", "must be ADDRESS/BITS"},
      {"10.0.0.0/-1", "must be ADDRESS/BITS"},
      {"10.0.0.0/24 ", "must be ADDRESS/BITS"},
      {"010.0.0.0/24", "must be ADDRESS/BITS"},
      {"10.0.0.1/24", "must be the first address of the range: 10.0.0.0/24"},
      {"10.0.0.0/11", "must have from 12 to 28 bits"},
      {"10.0.0.0/29", "must have from 12 to 28 bits"},
      {"127.0.0.0/24", "the loopback"},
      {"224.0.1.0/24", "multicast"},
      {"255.255.255.0/24", "reserved"},
      {"169.254.3.0/24", "link-local"},
      {"0.0.0.0/24", "this network"},
      {"fd00::/112", "IPv6"},
      {"10.0.0.0/24,fd00::/112", "IPv6"}};
  for (const auto& [text, why] : cases) {
    const auto range = parse_service_range(text);
    ASSERT_FALSE(range.ok()) << text;
    EXPECT_THAT(range.error().message(), HasSubstr(why)) << text;
  }
}

}  // namespace
}  // namespace dibs
