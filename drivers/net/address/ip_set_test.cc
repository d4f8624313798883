// IpSet against a set that is kept address by address.

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "drivers/net/address/ip.h"

namespace dibs::drivers::net {
namespace {

Ip ip(std::string_view text) { return Ip::parse(text).value(); }
IpSet set_of(const std::vector<std::string>& ranges) { return IpSet::parse(ranges).value(); }
using Texts = std::vector<std::string>;

TEST(IpSet, sorts_and_merges) {
  EXPECT_EQ(set_of({"10.0.0.5", "10.0.0.1-10.0.0.4", "10.0.0.9", "10.0.0.3-10.0.0.6"}).to_strings(),
            (Texts{"10.0.0.1-10.0.0.6", "10.0.0.9"}));
  EXPECT_EQ(set_of({"fd00::1", "255.255.255.255", "::"}).to_strings(),
            (Texts{"255.255.255.255", "::", "fd00::1"}));
  EXPECT_EQ(set_of({"::ffff", "255.255.255.254", "255.255.255.255", "::"}).to_strings(),
            (Texts{"255.255.255.254-255.255.255.255", "::", "::ffff"}));
  EXPECT_FALSE(IpSet::parse({"10.0.0.1", "nonsense"}).ok());
}

TEST(IpSet, counts_what_it_has) {
  EXPECT_EQ(IpSet().count(), 0);
  EXPECT_EQ(set_of({"0.0.0.0-255.255.255.255"}).count(), std::int64_t{1} << 32);
  EXPECT_EQ(set_of({"fd00::-fd00::ffff:ffff:ffff"}).count(), std::int64_t{1} << 48);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  IpSet all(Subnet::parse("::/0")->range());
  EXPECT_EQ(all.count(), most);
  EXPECT_EQ(IpSet(Subnet::parse("fd00::/64")->range()).count(), most);
  all.remove(Subnet::parse("::/1")->range());
  EXPECT_EQ(all.count(), most);
  all.remove(IpRange{ip("8000::"), ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0")});
  EXPECT_EQ(all.count(), 15);
  all.remove(Subnet::parse("::/0")->range());
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(all.count(), 0);
}

TEST(IpSet, removes_at_the_ends_of_a_family) {
  IpSet set = set_of({"0.0.0.0-255.255.255.255", "::"});
  set.remove(ip("0.0.0.0"));
  set.remove(ip("255.255.255.255"));
  set.remove(ip("::"));
  EXPECT_EQ(set.to_strings(), (Texts{"0.0.0.1-255.255.255.254"}));
}

TEST(IpSet, gives_the_lowest) {
  const IpSet set = set_of({"10.0.0.5-10.0.0.6", "10.0.0.9", "fd00::1-fd00::ffff"});
  EXPECT_EQ(set.lowest(), ip("10.0.0.5"));
  EXPECT_EQ(IpSet().lowest(), std::nullopt);
  EXPECT_EQ(set.lowest_of(4).to_strings(), (Texts{"10.0.0.5-10.0.0.6", "10.0.0.9", "fd00::1"}));
  EXPECT_EQ(set.lowest_of(0).to_strings(), Texts{});
  EXPECT_EQ(set.lowest_of(1'000'000), set);
}

/// Also of a range that ends where its family does.
std::vector<Ip> each(const IpRange& range) {
  std::vector<Ip> ips;
  for (IpBits i = 0; i <= range.last.bits - range.first.bits; ++i) {
    ips.push_back({range.first.v6, range.first.bits + i});
  }
  return ips;
}

class Brute {
 public:
  explicit Brute(unsigned seed) : random_(seed) {}

  void step() {
    const IpRange range = some_range();
    const bool add = pick(2) == 0;
    if (add) {
      set_.add(range);
    } else {
      set_.remove(range);
    }
    for (const Ip& one : each(range)) {
      if (add) {
        plain_.insert(one);
      } else {
        plain_.erase(one);
      }
    }
  }

  void compare() {
    ASSERT_EQ(set_.count(), static_cast<std::int64_t>(plain_.size()));
    std::set<Ip> listed;
    std::optional<IpRange> before;
    for (const IpRange& range : set_.ranges()) {
      if (before && before->first.v6 == range.first.v6) {
        ASSERT_LT(before->last.bits + 1, range.first.bits) << "ranges touch";
      }
      before = range;
      for (const Ip& one : each(range)) listed.insert(one);
    }
    ASSERT_EQ(listed, plain_);
    ASSERT_EQ(set_.lowest(), plain_.empty() ? std::nullopt : std::optional(*plain_.begin()));
    const IpRange range = some_range();
    const auto at = plain_.lower_bound(range.first);
    ASSERT_EQ(set_.contains(range.first), plain_.count(range.first) == 1);
    ASSERT_EQ(set_.intersects(range), at != plain_.end() && *at <= range.last);
    ASSERT_EQ(IpSet::parse(set_.to_strings()).value(), set_);
  }

  const IpSet& set() const { return set_; }
  const std::set<Ip>& plain() const { return plain_; }

 private:
  unsigned pick(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  IpRange some_range() {
    const bool v6 = pick(2) == 0;
    // The upper ends of both families are where sums overflow.
    const IpBits top = v6 ? ~IpBits{0} : IpBits{0xffffffff};
    const IpBits base = pick(2) == 0 ? IpBits{0} : top - 63;
    const unsigned first = pick(64);
    const unsigned last = first + pick(std::min(64U - first, 9U));
    return {Ip{v6, base + first}, Ip{v6, base + last}};
  }

  std::mt19937 random_;
  IpSet set_;
  std::set<Ip> plain_;
};

IpSet of(const std::set<Ip>& plain) {
  IpSet set;
  for (const Ip& one : plain) set.add(one);
  return set;
}

TEST(IpSet, is_a_set) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Brute a(seed);
    Brute b(seed + 1000);
    for (int i = 0; i < 60; ++i) {
      a.step();
      b.step();
      ASSERT_NO_FATAL_FAILURE(a.compare());
    }
    std::set<Ip> both;
    std::set<Ip> only_a;
    for (const Ip& one : a.plain()) (b.plain().count(one) == 1 ? both : only_a).insert(one);
    EXPECT_EQ(a.set().intersection(b.set()), of(both));
    EXPECT_EQ(a.set().minus(b.set()), of(only_a));
    EXPECT_EQ(a.set().intersects(b.set()), !both.empty());
    IpSet united = a.set();
    united.add(b.set());
    EXPECT_EQ(united.count(),
              static_cast<std::int64_t>(a.plain().size() + b.plain().size() - both.size()));
  }
}

TEST(IpSet, hands_out_a_large_pool_one_by_one) {
  IpSet free(Subnet::parse("10.0.0.0/16")->range());
  for (IpBits i = 0; i < 65536; ++i) {
    const auto lowest = free.lowest();
    ASSERT_TRUE(lowest);
    ASSERT_EQ(lowest->bits, ip("10.0.0.0").bits + i);
    free.remove(*lowest);
  }
  EXPECT_TRUE(free.empty());
}

}  // namespace
}  // namespace dibs::drivers::net
