#include "server/plugins/device_index.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::server {
namespace {

Value parsed(std::string text) {
  for (char& c : text) {
    if (c == '\'') c = '"';
  }
  auto value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

/// A claim that holds devices: {'driver':…} objects, joined by commas.
Value holding(std::string_view results) {
  return parsed(cat("{'status':{'allocation':{'devices':{'results':[", results, "]}}}}"));
}

std::string device(std::string_view name, std::string_view more = "") {
  return cat("{'driver':'d','pool':'p','device':'", name, "'", more, "}");
}

std::string share(std::string_view id, std::string_view memory = "1Gi") {
  return device("gpu", cat(",'shareID':'", id, "','consumedCapacity':{'memory':'", memory, "'}"));
}

Value slice(std::string_view generation, std::string_view device) {
  return parsed(cat("{'spec':{'driver':'d','pool':{'name':'p','generation':", generation,
                    "},'devices':[", device, "]}}"));
}

std::string holder(const DeviceIndex& index, const std::string& claim, const Value& object) {
  auto conflict = index.conflict(claim, holds_of(object));
  return conflict ? conflict->holder : "";
}

TEST(DeviceIndex, gives_a_device_to_one_claim) {
  DeviceIndex index;
  index.put_claim("n/a", holding(device("gpu")));

  EXPECT_EQ(holder(index, "n/b", holding(device("gpu"))), "n/a");
  EXPECT_EQ(holder(index, "n/b", holding(device("other"))), "");
  EXPECT_EQ(holder(index, "n/a", holding(device("gpu"))), "");

  index.put_claim("n/a", parsed("{'status':{}}"));
  EXPECT_EQ(holder(index, "n/b", holding(device("gpu"))), "");
  EXPECT_EQ(index.held_devices(), 0U);
}

TEST(DeviceIndex, takes_a_claim_that_names_a_device_twice) {
  DeviceIndex index;
  const std::string twice = cat(share("1"), ",", share("2"));
  index.put_claim("n/a", holding(twice));
  EXPECT_EQ(index.held_devices(), 1U);
  EXPECT_EQ(holder(index, "n/b", holding(share("1"))), "n/a");
  index.remove_claim("n/a");
  EXPECT_EQ(index.held_devices(), 0U);
  EXPECT_EQ(holder(index, "n/b", holding(share("1"))), "");
}

TEST(DeviceIndex, keeps_who_holds_a_device_that_is_no_longer_published) {
  DeviceIndex index;
  index.put_slice("s", slice("1", "{'name':'gpu'}"));
  index.put_claim("n/a", holding(device("gpu")));
  index.remove_slice("s");
  EXPECT_EQ(holder(index, "n/b", holding(device("gpu"))), "n/a");
  index.put_slice("s", slice("2", "{'name':'gpu'}"));
  index.clear_claims();
  EXPECT_EQ(index.held_devices(), 0U);
  index.clear_slices();
  EXPECT_EQ(holder(index, "n/b", holding(device("gpu"))), "");
}

TEST(DeviceIndex, does_not_count_access_for_administration) {
  DeviceIndex index;
  index.put_claim("n/admin", holding(device("gpu", ",'adminAccess':true")));
  EXPECT_EQ(holder(index, "n/b", holding(device("gpu"))), "");
  index.put_claim("n/b", holding(device("gpu")));
  EXPECT_EQ(holder(index, "n/other", holding(device("gpu", ",'adminAccess':true"))), "");
}

TEST(DeviceIndex, holds_devices_of_writes_on_their_way) {
  DeviceIndex index;
  const auto first = index.reserve("n/a", holds_of(holding(device("gpu"))));
  EXPECT_EQ(holder(index, "n/b", holding(device("gpu"))), "n/a");
  index.release(first);
  EXPECT_EQ(holder(index, "n/b", holding(device("gpu"))), "");
  index.release(first);
}

TEST(DeviceIndex, lets_shares_live_side_by_side) {
  DeviceIndex index;
  index.put_claim("n/a", holding(share("1")));

  EXPECT_EQ(holder(index, "n/b", holding(share("2"))), "");
  EXPECT_EQ(holder(index, "n/b", holding(share("1"))), "n/a");
  EXPECT_EQ(holder(index, "n/b", holding(device("gpu"))), "n/a");
}

TEST(DeviceIndex, believes_the_newest_slice_about_sharing) {
  DeviceIndex index;
  index.put_claim("n/a", holding(share("1")));
  index.put_slice("s1", slice("1", "{'name':'gpu','allowMultipleAllocations':true}"));
  EXPECT_EQ(holder(index, "n/b", holding(share("2"))), "");

  index.put_slice("s2", slice("2", "{'name':'gpu'}"));
  EXPECT_EQ(holder(index, "n/b", holding(share("2"))), "n/a");

  index.remove_slice("s2");
  EXPECT_EQ(holder(index, "n/b", holding(share("2"))), "");
}

TEST(DeviceIndex, gives_out_no_more_than_there_is) {
  DeviceIndex index;
  index.put_slice("s", slice("1",
                             "{'name':'gpu','allowMultipleAllocations':true,'capacity':{'d/memory':"
                             "{'value':'3Gi'}}}"));
  index.put_claim("n/a", holding(share("1", "1Gi")));
  EXPECT_EQ(holder(index, "n/b", holding(share("2", "2Gi"))), "");
  auto conflict = index.conflict("n/b", holds_of(holding(share("2", "2049Mi"))));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->why,
            "it is allocated to claim n/a, and together they would use 3073Mi of its d/memory, "
            "which is 3Gi");

  // The share of a write counts once, though it is stored by now.
  index.reserve("n/a", holds_of(holding(share("1", "1Gi"))));
  EXPECT_EQ(holder(index, "n/b", holding(share("2", "2Gi"))), "");
}

TEST(DeviceIndex, gives_one_claim_no_more_of_a_shared_device_than_there_is) {
  DeviceIndex index;
  index.put_slice("s", slice("1",
                             "{'name':'gpu','allowMultipleAllocations':true,'capacity':{'memory':"
                             "{'value':'3Gi'}}}"));
  EXPECT_EQ(holder(index, "n/a", holding(cat(share("1", "1Gi"), ",", share("2", "2Gi")))), "");
  EXPECT_EQ(holder(index, "n/a", holding(cat(share("1", "2Gi"), ",", share("2", "2Gi")))), "n/a");
}

/// A device that is made of counters of the set "whole".
std::string part(std::string_view name, std::string_view memory) {
  return cat("{'name':'", name,
             "','consumesCounters':[{'counterSet':'whole','counters':{'memory':", "{'value':'",
             memory, "'}}}]}");
}

Value counters(std::string_view generation, std::string_view memory) {
  return parsed(cat("{'spec':{'driver':'d','pool':{'name':'p','generation':", generation,
                    "},'sharedCounters':[{'name':'whole','counters':{'memory':{'value':'", memory,
                    "'}}}]}}"));
}

TEST(DeviceIndex, gives_out_no_more_of_shared_counters_than_there_is) {
  DeviceIndex index;
  index.put_slice("s1", counters("1", "40Gi"));
  index.put_slice("s2", slice("1", cat(part("half-0", "20Gi"), ",", part("half-1", "20Gi"), ",",
                                       part("all", "40Gi"))));
  index.put_claim("n/a", holding(device("half-0")));

  EXPECT_EQ(holder(index, "n/b", holding(device("half-1"))), "");
  auto conflict = index.conflict("n/b", holds_of(holding(device("all"))));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->why,
            "with what claim n/a holds, 60Gi of counter memory of counter set whole would be used, "
            "which is 40Gi");
  // One claim alone cannot have more either.
  EXPECT_EQ(holder(index, "n/a", holding(cat(device("half-0"), ",", device("all")))), "n/a");
  EXPECT_EQ(holder(index, "n/a", holding(device("all"))), "");
  // Nor can a write that is on its way be overtaken.
  const auto first = index.reserve("n/c", holds_of(holding(device("half-1"))));
  index.remove_claim("n/a");
  EXPECT_EQ(holder(index, "n/b", holding(device("all"))), "n/c");
  index.release(first);
  EXPECT_EQ(holder(index, "n/b", holding(device("all"))), "");
}

TEST(DeviceIndex, believes_the_newest_slice_about_counters) {
  DeviceIndex index;
  index.put_slice("s1", counters("1", "40Gi"));
  index.put_slice("s2", slice("1", cat(part("a", "20Gi"), ",", part("b", "20Gi"))));
  index.put_claim("n/a", holding(device("a")));
  index.put_slice("s3", counters("2", "30Gi"));
  EXPECT_EQ(holder(index, "n/b", holding(device("b"))), "n/a");
  index.remove_slice("s3");
  EXPECT_EQ(holder(index, "n/b", holding(device("b"))), "");
  index.clear_slices();
  EXPECT_EQ(holder(index, "n/b", holding(device("b"))), "");
}

TEST(DeviceIndex, knows_named_resources_of_the_classic_model) {
  DeviceIndex index;
  Value classic = parsed(
      "{'status':{'allocation':{'resourceHandles':[{'driverName':'d','structuredData':{'nodeName':"
      "'n1','results':[{'namedResources':{'name':'gpu'}}]}}]}}}");
  index.put_claim("n/a", classic);
  EXPECT_EQ(holder(index, "n/b", classic), "n/a");
  // A device of the same driver with the same name is another thing.
  const Value device = parsed(
      "{'status':{'allocation':{'devices':{'results':[{'driver':'d','pool':'n1','device':'gpu'}]}}"
      "}}");
  EXPECT_EQ(holder(index, "n/b", device), "");
}

}  // namespace
}  // namespace dibs::server
