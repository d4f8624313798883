#include "drivers/net/address/ip.h"

#include <gtest/gtest.h>

namespace dibs::drivers::net {
namespace {

Ip ip(std::string_view text) { return Ip::parse(text).value(); }

TEST(Ip, prints_as_go_does) {
  const std::pair<const char*, const char*> texts[] = {
      {"172.18.30.131", "172.18.30.131"},
      {"0.0.0.0", "0.0.0.0"},
      {"255.255.255.255", "255.255.255.255"},
      {"::", "::"},
      {"::1", "::1"},
      {"1::", "1::"},
      {"FD00:0:0:1:0:0:0:1", "fd00:0:0:1::1"},
      {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
      {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
      {"fe80::0001", "fe80::1"},
      {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
      {"::ffff:1.2.3.4", "::ffff:1.2.3.4"},
      {"::1.2.3.4", "::102:304"},
      {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
      {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
  };
  for (const auto& [text, printed] : texts) {
    const auto parsed = Ip::parse(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->str(), printed);
    EXPECT_EQ(ip(printed), *parsed);
  }
}

TEST(Ip, refuses_what_is_no_address) {
  for (const char* text : {"",
                           "1",
                           "1.2.3",
                           "1.2.3.4.5",
                           "1.2.3.256",
                           "01.2.3.4",
                           "1.2.3.04",
                           "1.2.3.4 ",
                           " 1.2.3.4",
                           "1.2..4",
                           "-1.2.3.4",
                           "+1.2.3.4",
                           ":",
                           ":::",
                           "1:2",
                           "1::2::3",
                           "1:2:3:4:5:6:7:8:9",
                           "1:2:3:4:5:6:7:8::",
                           "12345::",
                           "g::",
                           "::1%eth0",
                           "1:2:3:4:5:6:7:1.2.3.4",
                           "1.2.3.4::",
                           "::1.2.3",
                           "1:",
                           ":1",
                           "0x1.2.3.4",
                           "a.b.c.d"}) {
    EXPECT_FALSE(Ip::parse(text).ok()) << text;
  }
  EXPECT_EQ(Ip::parse("1.2.3").error().message(), "invalid IP format '1.2.3'");
}

TEST(Ip, orders_by_family_and_number) {
  EXPECT_LT(ip("9.0.0.0"), ip("10.0.0.0"));
  EXPECT_LT(ip("255.255.255.255"), ip("::"));
  EXPECT_LT(ip("fd00::9"), ip("fd00::a"));
}

TEST(IpRange, reads_upstreams_grammar) {
  EXPECT_EQ(IpRange::parse("10.0.0.1")->str(), "10.0.0.1");
  EXPECT_EQ(IpRange::parse("10.0.0.1-10.0.0.1")->str(), "10.0.0.1");
  EXPECT_EQ(IpRange::parse("10.0.0.1-10.0.0.9")->str(), "10.0.0.1-10.0.0.9");
  EXPECT_EQ(IpRange::parse("fd00::1-FD00::a")->str(), "fd00::1-fd00::a");
  for (const char* text :
       {"10.0.0.9-10.0.0.1", "10.0.0.0/24", "10.0.0.1-", "-10.0.0.1", "10.0.0.1-10.0.0.2-10.0.0.3",
        "10.0.0.1 - 10.0.0.2", "10.0.0.1-fd00::1", "10.0.0.1-9", ""}) {
    EXPECT_FALSE(IpRange::parse(text).ok()) << text;
  }
}

TEST(Subnet, names_the_right_form) {
  EXPECT_EQ(Subnet::parse("172.18.0.0/16")->str(), "172.18.0.0/16");
  EXPECT_EQ(Subnet::parse("172.18.1.0/16").error().message(),
            "unformatted subnet 172.18.1.0/16, please change it to 172.18.0.0/16");
  EXPECT_EQ(Subnet::parse("FD00::/120").error().message(),
            "unformatted subnet FD00::/120, please change it to fd00::/120");
  EXPECT_EQ(Subnet::parse_lenient("172.18.30.131/16")->str(), "172.18.0.0/16");
  EXPECT_EQ(Subnet::parse("172.18.0.0").error().message(), "invalid CIDR format '172.18.0.0'");
  for (const char* text : {"172.18.0.0/33", "172.18.0.0/", "172.18.0.0/016", "/16", "fd00::/129",
                           "172.18.0.0/-1", "172.18.0.0/16/8", ""}) {
    EXPECT_FALSE(Subnet::parse_lenient(text).ok()) << text;
  }
}

TEST(Subnet, knows_its_addresses) {
  const Subnet subnet = Subnet::parse("172.18.0.0/16").value();
  EXPECT_TRUE(subnet.contains(ip("172.18.255.255")));
  EXPECT_FALSE(subnet.contains(ip("172.19.0.0")));
  EXPECT_FALSE(subnet.contains(ip("fd00::1")));
  EXPECT_TRUE(subnet.overlaps(Subnet::parse("172.18.7.0/24").value()));
  EXPECT_FALSE(subnet.overlaps(Subnet::parse("172.19.0.0/16").value()));
  EXPECT_EQ(subnet.address(ip("172.18.30.131")), "172.18.30.131/16");
  EXPECT_TRUE(Subnet::parse("::/0")->contains(ip("ffff::")));
  EXPECT_FALSE(Subnet::parse("::/0")->contains(ip("1.1.1.1")));
  EXPECT_EQ(Subnet::parse("0.0.0.0/0")->range().str(), "0.0.0.0-255.255.255.255");
}

}  // namespace
}  // namespace dibs::drivers::net
