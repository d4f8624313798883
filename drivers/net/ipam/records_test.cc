#include "drivers/net/ipam/records.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "json/parse.h"
#include "json/test_text.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using json::test::from_text;
using testing::ElementsAre;
using testing::IsEmpty;

Value pool(const std::string& ips, const std::string& status = "") {
  return from_text(cat(
      "{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': 'SpiderIPPool',",
      "'metadata': {'name': 'p', 'uid': 'u'}, 'spec': {'subnet': ", "'172.18.0.0/16', 'ips': ['",
      ips, "']}, 'status': {'admittedIPs': ['", ips, "']", status, "}}"));
}
Ip ip(std::string_view text) { return *Ip::parse(text); }
std::string taken(const Result<Ip>& result) {
  return result ? result->str() : result.error().message();
}

TEST(PoolRecords, gives_the_lowest_address_that_is_free) {
  PoolRecords records(pool("172.18.0.1-172.18.0.4"), IpSet(*IpRange::parse("172.18.0.2")));

  EXPECT_EQ(taken(records.take("ns/a", "a", {})), "172.18.0.1");
  EXPECT_EQ(taken(records.take("ns/b", "b", {})), "172.18.0.3") << "one is reserved";
  EXPECT_TRUE(records.drop(ip("172.18.0.1"), {"ns/a", "a", 0}));
  EXPECT_EQ(taken(records.take("ns/c", "c", {})), "172.18.0.1");
  EXPECT_EQ(taken(records.take("ns/d", "d", {})), "172.18.0.4");
  EXPECT_EQ(taken(records.take("ns/e", "e", {})), kUsedOut);
}

TEST(PoolRecords, takes_up_what_an_earlier_attempt_has_left) {
  PoolRecords records(pool("172.18.0.1-172.18.0.4"), {});
  const Ip first = *records.take("ns/a", "a", {});
  const PoolRecord before = *records.find(first);

  EXPECT_EQ(*records.take("ns/a", "a", {}), first);
  EXPECT_FALSE(records.drop(first, before)) << "another attempt relies on it now";
  EXPECT_EQ(taken(records.take("ns/a", "a", {first})), "172.18.0.2") << "that one is in use";
}

TEST(PoolRecords, refuses_what_was_not_admitted) {
  PoolRecords narrow(pool("172.18.0.1", ", 'admittedIPs': ['172.18.0.2']"), {});
  EXPECT_FALSE(narrow.refusal().empty());
  EXPECT_FALSE(narrow.take("ns/a", "a", {}).ok());
}

TEST(PoolRecords, does_not_touch_a_status_that_it_cannot_read) {
  PoolRecords records(pool("172.18.0.1", ", 'allocatedIPs': 'nonsense'"), {});
  EXPECT_FALSE(records.readable());
  EXPECT_FALSE(records.take("ns/a", "a", {}).ok());
}

TEST(PoolRecords, gives_65000_addresses_and_stays_small) {
  PoolRecords records(pool("172.18.0.1-172.18.253.232"), {});
  ASSERT_EQ(records.free_count(), 65000);
  std::size_t longest = 0;
  for (int i = 0; i < 65000; ++i) {
    const std::string uid = cat("00000000-0000-4000-8000-", i);
    ASSERT_TRUE(records.take(cat("default/pod-", i), uid, {}).ok());
    if (records.status().allocated.size() > (i < 1000 ? 256u : 32u)) {
      longest = std::max(longest, json::write(records.to_object()).size());
      records.settle([](const Ip&, const PoolRecord&) { return true; });
    }
  }

  EXPECT_EQ(records.free_count(), 0);
  EXPECT_EQ(taken(records.take("ns/a", "a", {})), kUsedOut);
  EXPECT_EQ(records.to_object()["status"]["allocatedIPCount"], Value(65000));
  EXPECT_LT(longest, 48u * 1024);
  // Every second one is given back: the worst for ranges.
  IpSet odd;
  for (int i = 0; i < 65000; i += 2) odd.add(Ip{false, ip("172.18.0.1").bits + IpBits(i)});
  records.settle([](const Ip&, const PoolRecord&) { return true; });
  records.drop_settled(odd);
  EXPECT_EQ(records.free_count(), 32500);
  EXPECT_EQ(taken(records.take("ns/a", "a", {})), "172.18.0.1");
  EXPECT_LT(json::write(records.to_object()).size(), 1024u * 1024) << "what an object may have";
}

}  // namespace
}  // namespace dibs::drivers::net
