#include "controllers/pool_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using json::Value;
using json::test::from_text;

constexpr Time kNow = {1'700'000'000'000'000'000};

Value slice(const std::string& pool, const std::string& more, int generation = 1, int slices = 1) {
  return from_text(
      cat("{'metadata':{'name':'s'},'spec':{'driver':'d','nodeName':'n','pool':{"
          "'name':'",
          pool, "','generation':", generation, ",'resourceSliceCount':", slices, "},", more, "}}"));
}
Value claim(const std::string& device, const std::string& more = "") {
  return from_text(
      cat("{'status':{'allocation':{'devices':{'results':[{'driver':'d','pool':'p',"
          "'device':'",
          device, "'", more, "}]}}}}"));
}
Value request(const std::string& more = "") {
  return from_text(cat("{'metadata':{'name':'r'},'spec':{'driver':'d'", more, "}}"));
}

TEST(PoolStatus, counts_devices_once_and_leaves_out_who_only_looks) {
  PoolObjects objects;
  objects.slices = {
      slice("p",
            "'devices':[{'name':'a'},{'name':'b'},{'name':'c','taints':[{'key':'k','effect':"
            "'NoSchedule'}]},{'name':'e'},{'name':'f','taints':[{'key':'k','effect':'None'}]}]"),
      slice("p", "'devices':[{'name':'old'}]", 0), slice("q", "'devices':[]")};
  objects.claims = {claim("a"), claim("a"), claim("b", ",'adminAccess':true"), Value::object()};
  objects.taint_rules = {
      from_text("{'spec':{'deviceSelector':{'device':'e'},'taint':{'effect':'NoExecute'}}}"),
      from_text("{'spec':{'taint':{'effect':'NoExecute'}}}")};

  const Value status = pool_status(request(), objects, kNow);

  EXPECT_EQ(status["poolCount"].as_int(), 2);
  EXPECT_EQ(status["pools"][0],
            from_text("{'driver':'d','poolName':'p','generation':1,'nodeName':'n',"
                      "'resourceSliceCount':1,'totalDevices':5,'allocatedDevices':1,"
                      "'availableDevices':2,'unavailableDevices':2}"));
  EXPECT_EQ(status["conditions"][0]["message"].as_string(), "Calculated status for 2 pools");
  EXPECT_EQ(pool_status(request(",'limit':1"), objects, kNow)["pools"].size(), 1u);
  EXPECT_EQ(pool_status(request(",'limit':1"), objects, kNow)["poolCount"].as_int(), 2);
  EXPECT_EQ(pool_status(request(",'poolName':'q'"), objects, kNow)["pools"][0]["poolName"].str(),
            "q");
  EXPECT_EQ(pool_status(from_text("{'spec':{'driver':'x'}}"), objects, kNow)["poolCount"].as_int(),
            0);
}

TEST(PoolStatus, waits_for_a_pool_to_be_complete) {
  PoolObjects objects;
  objects.slices = {slice("p", "'devices':[]", 1, 2)};
  EXPECT_TRUE(pool_status(request(), objects, kNow).is_null());
}

TEST(PoolStatus, tells_how_many_parts_still_fit) {
  const auto part = [](const std::string& name, const std::string& type, int memory) {
    return cat("{'name':'", name, "','attributes':{'profile':{'string':'", type,
               "'}},'consumesCounters':[{'counterSet':'gpu','counters':{'memory':{'value':'",
               memory, "Gi'}}}]}");
  };
  PoolObjects objects;
  objects.slices = {
      slice("p", "'sharedCounters':[{'name':'gpu','counters':{'memory':{'value':'40Gi'}}}]", 1, 2),
      slice("p",
            cat("'partitionTypeAttribute':'d/profile','devices':[", part("s0", "small", 10), ",",
                part("s1", "small", 10), ",", part("s2", "small", 10), ",", part("s3", "small", 10),
                ",", part("l0", "large", 20), ",", part("l1", "large", 20), "]"),
            1, 2)};
  objects.claims = {claim("s0")};

  const Value pool = pool_status(request(), objects, kNow)["pools"][0];

  EXPECT_EQ(pool["partitionSummary"],
            from_text("[{'attribute':'d/profile','type':'large','total':2,'allocatable':1},"
                      "{'attribute':'d/profile','type':'small','total':4,'allocatable':3}]"));

  objects.slices[1] = slice(
      "p", cat("'devices':[", part("s0", "small", 10), ",", part("s1", "small", 11), "]"), 1, 2);
  const Value mixed =
      pool_status(request(",'defaultPartitionTypeAttribute':'d/profile'"), objects, kNow);
  EXPECT_EQ(mixed["pools"][0]["validationError"].as_string(),
            "PartitionCostMismatch: devices of partition type \"small\" in pool d/p consume "
            "different counters");
  EXPECT_EQ(mixed["conditions"][0]["message"].as_string(),
            "Calculated status for 1 pools (1 incomplete)");
  EXPECT_EQ(mixed["pools"][0]["totalDevices"].as_int(), 2);
}

TEST(PoolStatus, sums_up_what_is_shared) {
  PoolObjects objects;
  objects.slices = {slice("p",
                          "'devices':[{'name':'a','allowMultipleAllocations':true,'capacity':"
                          "{'mem':{'value':'8Gi'}}},{'name':'b','allowMultipleAllocations':"
                          "true,'capacity':{'mem':{'value':'8Gi'}}}]")};
  objects.claims = {claim("a", ",'consumedCapacity':{'mem':'3Gi'}"),
                    claim("a", ",'consumedCapacity':{'mem':'2Gi'}")};

  const Value pool = pool_status(request(), objects, kNow)["pools"][0];

  EXPECT_EQ(pool["allocatedDevices"].as_int(), 1);
  EXPECT_EQ(
      pool["shareableSummary"],
      from_text("{'fullyAvailableDevices':1,'partiallyAvailableDevices':1,'capacity':[{'name':"
                "'mem','total':'16Gi','consumed':'5Gi','available':'11Gi'}]}"));
}

TEST(PoolStatusRequests, are_answered_once_and_removed_an_hour_later) {
  server::Options options;
  options.feature_gates = "DRAResourcePoolStatus=true";
  options.runtime_config = "resource.k8s.io/v1alpha3=true";
  test::TestCluster cluster(options);
  const Gvr requests = {"resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests"};
  const Gvr slices = {"resource.k8s.io", "v1", "resourceslices"};
  const auto add_slice = [&](const std::string& name) {
    cluster.create(slices, "",
                   cat("{'metadata':{'name':'", name,
                       "'},'spec':{'driver':'d.example.com',"
                       "'nodeName':'n','pool':{'name':'p','generation':1,'resourceSliceCount':2},"
                       "'devices':[{'name':'",
                       name, "'}]}}"));
    cluster.settle();
  };
  add_slice("a");
  cluster.create(requests, "", "{'metadata':{'name':'r'},'spec':{'driver':'d.example.com'}}");
  cluster.settle();
  EXPECT_TRUE(cluster.get(requests, "", "r")["status"].is_null());

  add_slice("b");
  const Value answered = cluster.get(requests, "", "r");
  EXPECT_EQ(answered["status"]["pools"][0]["availableDevices"].as_int(), 2);
  cluster.settle(std::chrono::minutes(30));
  EXPECT_EQ(cluster.get(requests, "", "r")["metadata"]["resourceVersion"],
            answered["metadata"]["resourceVersion"]);
  cluster.settle(std::chrono::minutes(31));
  EXPECT_TRUE(cluster.list(requests, "").empty());
}

}  // namespace
}  // namespace dibs::controllers
