#include <gtest/gtest.h>

#include <random>

#include "base/strings.h"
#include "drivers/net/model/ip_pool.h"

namespace dibs::drivers::net {
namespace {

IpPool pool(std::string name, std::string created, std::string_view subnet,
            const std::vector<std::string>& ips) {
  IpPool made;
  made.name = std::move(name);
  made.created = std::move(created);
  made.subnet = Subnet::parse(subnet).value();
  made.version = made.subnet.version();
  made.total = IpSet::parse(ips).value();
  return made;
}

TEST(RefusedPools, the_older_stays) {
  const IpPool old = pool("z", "2024-01-01T00:00:00Z", "10.0.0.0/24", {"10.0.0.1-10.0.0.9"});
  const IpPool young = pool("a", "2024-01-02T00:00:00Z", "10.0.0.0/24", {"10.0.0.9-10.0.0.12"});
  const IpPool wide = pool("b", "2024-01-03T00:00:00Z", "10.0.0.0/16", {});
  const IpPool after = pool("c", "2024-01-04T00:00:00Z", "10.0.0.0/24", {"10.0.0.10"});
  const auto refused = refused_pools({&young, &after, &wide, &old});
  ASSERT_EQ(refused.size(), 2U);
  EXPECT_NE(refused.at("a").find("overlap with IPPool z in IP ranges [10.0.0.9]"),
            std::string::npos);
  EXPECT_NE(refused.at("b").find("overlap with IPPool z which 'spec.subnet' is 10.0.0.0/24"),
            std::string::npos);
}

TEST(RefusedPools, those_that_are_left_get_along) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<IpPool> pools;
    for (int i = 0; i < 12; ++i) {
      const unsigned prefix = 24 + random() % 5;
      const IpBits base = (IpBits{10} << 24) | (random() % 256);
      const auto subnet = Subnet::parse_lenient(cat(Ip{false, base}.str(), '/', prefix)).value();
      const IpBits first = subnet.base.bits + random() % 8;
      const IpRange range{{false, first},
                          {false, std::min(first + random() % 4, subnet.range().last.bits)}};
      pools.push_back(pool(cat("p", i), cat(random() % 3), subnet.str(), {range.str()}));
    }
    std::vector<const IpPool*> all;
    for (const IpPool& one : pools) all.push_back(&one);
    const auto refused = refused_pools(all);
    std::vector<IpPool> left;
    for (const IpPool& one : pools) {
      if (refused.count(one.name) == 0) left.push_back(one);
    }
    for (const IpPool& one : pools) {
      if (refused.count(one.name) == 0) {
        EXPECT_TRUE(conflicts(one, left).empty()) << one.name;
        continue;
      }
      std::vector<IpPool> older;
      for (const IpPool& other : left) {
        if (std::tie(other.created, other.name) < std::tie(one.created, one.name)) {
          older.push_back(other);
        }
      }
      EXPECT_FALSE(conflicts(one, older).empty()) << one.name << " was refused for nothing";
    }
  }
}

}  // namespace
}  // namespace dibs::drivers::net
