#include "server/usage/holding.h"

#include <gtest/gtest.h>

#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::from_text;

json::Value claim(std::string_view results, std::string_view more = "") {
  return from_text(
      "{'metadata':{'uid':'u1'},'spec':{'devices':{'requests':["
      "{'name':'a','exactly':{'deviceClassName':'big'}},"
      "{'name':'b','firstAvailable':[{'name':'x','deviceClassName':'fast'},"
      "{'name':'y','deviceClassName':'slow'}]}]}},'status':{'allocation':{'devices':"
      "{'results':[" +
      std::string(results) + "]}}" + std::string(more) + "}}");
}

TEST(Holding, has_devices_with_the_class_that_they_were_chosen_by) {
  const auto text = holding_of(
      claim("{'request':'a','driver':'d','pool':'n/1','device':'g0'},"
            "{'request':'b/y','driver':'d','pool':'n/1','device':'g1'}",
            ",'reservedFor':[{'resource':'pods','name':'p2'},{'resource':'pods','name':'p1'},"
            "{'resource':'podgroups','name':'g'}]"),
      {});

  EXPECT_EQ(text, "u1 p1,p2,podgroups/g d/n/1/g0=big=1 d/n/1/g1=slow=1");
  const auto holding = parse_holding(text);
  ASSERT_TRUE(holding);
  EXPECT_EQ(holding->users.size(), 3U);
  ASSERT_EQ(holding->devices.size(), 2U);
  EXPECT_EQ(holding->devices[1].id, "d/n/1/g1");
  EXPECT_EQ(holding->devices[1].device_class, "slow");
}

TEST(Holding, is_nothing_of_a_claim_without_devices_of_its_own) {
  EXPECT_EQ(holding_of(claim(""), {}), "");
  EXPECT_EQ(holding_of(claim("{'request':'a','driver':'d','pool':'n','device':'g',"
                             "'adminAccess':true}"),
                       {}),
            "");
}

TEST(Holding, has_named_resources_of_the_classic_model) {
  const auto text = holding_of(
      from_text("{'metadata':{'uid':'u'},'spec':{'resourceClassName':'old'},'status':{'allocation':"
                "{'resourceHandles':[{'driverName':'d','structuredData':{'nodeName':'n','results':"
                "[{'namedResources':{'name':'i1'}}]}}]}}}"),
      {});

  EXPECT_EQ(text, "u - d/n/i1=old=1");
}

TEST(Holding, stays_one_line_whatever_stands_in_the_store) {
  const auto text =
      holding_of(claim("{'request':'?','driver':'d\\n- 1','pool':'p=1','device':'g,0'}",
                       ",'reservedFor':[{'resource':'pods','name':'a b'}]"),
                 {});

  EXPECT_EQ(text, "u1 a_b d_-_1/p_1/g_0=-=1");
  EXPECT_TRUE(parse_holding(text));
}

TEST(Holding, is_not_read_from_garbage) {
  for (const std::string_view text : {"", "u", "u p", "u p d", "u p d=c", "u p d=c=", "u p d=c=x",
                                      "u p d=c=1x", "u p d=c=1=2", "u p d=c=1 "}) {
    EXPECT_FALSE(parse_holding(text)) << text;
  }
}

json::Value slice(std::string_view spec) {
  return from_text("{'spec':{'driver':'d','pool':{'name':'p','generation':1}," + std::string(spec) +
                   "}}");
}

json::Value result(std::string_view device, std::string_view more = "") {
  return from_text("{'driver':'d','pool':'p','device':'" + std::string(device) + "'" +
                   std::string(more) + "}");
}

TEST(DeviceShares, parts_of_one_device_are_never_more_than_it) {
  DeviceShares shares;
  // Counters and devices may be in slices of their own.
  shares.put_slice("s1", slice("'sharedCounters':[{'name':'gpu-0','counters':{'memory':{'value':"
                               "'80Gi'},'cores':{'value':'8'},'none':{'value':'0'}}}]"));
  shares.put_slice(
      "s2",
      slice("'devices':[{'name':'half','consumesCounters':[{'counterSet':'gpu-0','counters':"
            "{'memory':{'value':'40Gi'},'cores':{'value':'4'}}}]},{'name':'odd','consumesCounters':"
            "[{'counterSet':'gpu-0','counters':{'memory':{'value':'20Gi'}}}]},{'name':'whole'}]"));

  EXPECT_DOUBLE_EQ(shares.share_of(result("half")).value_or(-1), 0.5);
  EXPECT_DOUBLE_EQ(shares.share_of(result("odd")).value_or(-1), 0.125);
  EXPECT_FALSE(shares.share_of(result("whole")));
  EXPECT_FALSE(shares.share_of(result("unknown")));

  shares.remove_slice("s1");
  EXPECT_FALSE(shares.share_of(result("half")));
}

TEST(Holding, has_the_share_of_before_where_the_device_is_not_published_any_more) {
  const auto part = claim("{'request':'a','driver':'d','pool':'p','device':'g'}");
  const auto whole = claim("{'request':'a','driver':'d','pool':'p','device':'h'}");

  EXPECT_EQ(holding_of(part, {}, "u1 p d/p/g=big=0.25"), "u1 - d/p/g=big=0.25");
  EXPECT_EQ(holding_of(part, {}, "other p d/p/g=big=0.25"), "u1 - d/p/g=big=1");
  EXPECT_EQ(holding_of(whole, {}, "u1 p d/p/g=big=0.25"), "u1 - d/p/h=big=1");
}

TEST(DeviceShares, a_device_that_is_given_several_times_counts_by_what_is_consumed) {
  DeviceShares shares;
  shares.put_slice("s", slice("'devices':[{'name':'g','allowMultipleAllocations':true,'capacity':"
                              "{'d/memory':{'value':'80Gi'},'lanes':{'value':'4'}}},"
                              "{'name':'n','allowMultipleAllocations':true}]"));

  EXPECT_DOUBLE_EQ(shares.share_of(result("g", ",'consumedCapacity':{'memory':'20Gi','lanes':'1'}"))
                       .value_or(-1),
                   0.25);
  EXPECT_DOUBLE_EQ(shares.share_of(result("n", ",'shareID':'x'")).value_or(-1), 1);
}

TEST(DeviceShares, the_newest_generation_of_a_pool_counts) {
  DeviceShares shares;
  const auto of = [](int generation, int capacity) {
    return from_text(
        "{'spec':{'driver':'d','pool':{'name':'p','generation':" + std::to_string(generation) +
        "},'devices':[{'name':'g','allowMultipleAllocations':true,'capacity':{'m':"
        "{'value':'" +
        std::to_string(capacity) + "'}}}]}}");
  };
  shares.put_slice("new", of(2, 4));
  shares.put_slice("old", of(1, 2));
  const auto one = result("g", ",'consumedCapacity':{'m':'1'}");
  EXPECT_DOUBLE_EQ(shares.share_of(one).value_or(-1), 0.25);
  shares.remove_slice("old");
  EXPECT_DOUBLE_EQ(shares.share_of(one).value_or(-1), 0.25);
  shares.clear();
  EXPECT_FALSE(shares.share_of(one));
}

}  // namespace
}  // namespace dibs::server
