#include "scheduler/node_allocatable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kStatuses = "nodeAllocatableResourceClaimStatuses";

/// Devices that are a processor and a GiB of their node, and cost some for each user.
class NodeDevicesCluster : public TestCluster {
 public:
  NodeDevicesCluster() : TestCluster({}, {}, false, "DRANodeAllocatableResources=true") {}

  void add_node_devices(const std::string& node, int count) {
    add_devices(node, count,
                ",'nodeAllocatableResources':{'cpu':{'mapping':{'deviceMultiplier':'1'},'overhead':"
                "{'perPod':'100m','perContainer':'50m'}},'memory':{'mapping':{'deviceMultiplier':"
                "'1Gi'}}}");
  }
  /// Two containers that use the claim.
  Value add_user(const std::string& name, const std::string& claim, const std::string& spec = "") {
    return add_pod(name, cat("{'resourceClaims':[{'name':'d','resourceClaimName':'", claim,
                             "'}],'containers':[{'name':'a','image':'x','resources':{'requests':{"
                             "'cpu':'500m'},'claims':[{'name':'d'}]}},{'name':'b','image':'x',"
                             "'resources':{'claims':[{'name':'d'}]}}]",
                             spec, "}"));
  }
  Value statuses(const std::string& pod) {
    return get(kPodsOf, "default", pod)["status"][kStatuses];
  }
};

TEST(NodeAllocatable, tells_the_node_what_claims_take_of_it) {
  NodeDevicesCluster cluster;
  cluster.add_node("n");
  cluster.add_node_devices("n", 2);
  cluster.add_class();
  cluster.add_claim("x", 2);
  cluster.add_user("p", "x");
  cluster.settle();

  EXPECT_EQ(cluster.node_of("p"), "n");
  EXPECT_EQ(cluster.statuses("p"),
            from_text("[{'resourceClaimName':'x','containers':['a','b'],'mapping':[{'name':'cpu',"
                      "'quantity':'2'},{'name':'memory','quantity':'2Gi'}],'overhead':[{'name':"
                      "'cpu','perPod':'200m','perContainer':'100m'}]}]"));
}

TEST(NodeAllocatable, counts_them_where_others_want_to_go) {
  NodeDevicesCluster cluster;
  cluster.add_node("n");  // 4 processors
  cluster.add_node_devices("n", 4);
  cluster.add_class();
  cluster.add_claim("x", 2);
  cluster.add_claim("y", 2);
  cluster.add_user("p", "x");  // 500m + 2 + 200m + 2 * 100m
  cluster.settle();
  cluster.add_pod("plain", "{}", "{'requests':{'cpu':'1200m'}}");
  cluster.add_user("q", "y");
  cluster.settle();

  EXPECT_EQ(cluster.node_of("p"), "n");
  EXPECT_EQ(cluster.node_of("plain"), "");
  EXPECT_EQ(cluster.condition("plain"),
            "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are "
            "available: 1 No preemption victims found for incoming pod.");
  EXPECT_EQ(cluster.node_of("q"), "");
  EXPECT_THAT(cluster.condition("q"), HasSubstr("1 Insufficient cpu"));
  EXPECT_TRUE(cluster.statuses("q").empty());

  // And again after a restart, from what the status says.
  cluster.stop();
  cluster.start();
  cluster.add_pod("plain2", "{}", "{'requests':{'cpu':'1200m'}}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("plain2"), "");

  for (const char* pod : {"plain", "plain2", "p"}) cluster.remove(kPodsOf, "default", pod);
  cluster.settle(std::chrono::seconds(20));
  EXPECT_EQ(cluster.node_of("q"), "n");
}

TEST(NodeAllocatable, lets_no_two_pods_share_what_a_device_maps_to) {
  NodeDevicesCluster cluster;
  cluster.add_node("n");
  cluster.add_node_devices("n", 1);
  cluster.add_class();
  cluster.add_claim("x");
  cluster.add_user("p", "x");
  cluster.settle();
  cluster.add_user("q", "x");
  cluster.settle();

  EXPECT_EQ(cluster.node_of("p"), "n");
  EXPECT_EQ(cluster.node_of("q"), "");
  EXPECT_THAT(cluster.condition("q"), HasSubstr("node allocatable resource claim x has a mapped "
                                                "device and cannot be shared across pods"));
}

TEST(NodeAllocatable, wants_the_pod_as_a_whole_to_cover_them) {
  NodeDevicesCluster cluster;
  cluster.add_node("n");
  cluster.add_node_devices("n", 1);
  cluster.add_class();
  cluster.add_claim("x");
  cluster.add_user("p", "x", ",'resources':{'requests':{'cpu':'1'}}");
  cluster.settle();

  EXPECT_THAT(cluster.condition("p"),
              HasSubstr("pod level request for cpu is insufficient to cover the aggregated "
                        "container and node-allocatable DRA requests"));
}

TEST(NodeAllocatable, multiplies_what_is_consumed) {
  NodeAllocatable devices;
  devices.put_slice(from_text(
      "{'metadata':{'name':'s'},'spec':{'driver':'d','pool':{'name':'p'},'devices':[{'name':'x',"
      "'nodeAllocatableResources':{'memory':{'mapping':{'capacityKey':'d/mem',"
      "'capacityMultiplier':'1500m'}}}}]}}"));
  const auto allocation = [](const std::string& consumed) {
    return from_text(
        cat("{'devices':{'results':[{'driver':'d','pool':'p','device':'x'", consumed, "}]}}"));
  };

  const auto counted =
      devices.status_of("ns", "c", allocation(",'consumedCapacity':{'d/mem':'2Gi'}"));
  ASSERT_TRUE(counted.ok());
  EXPECT_EQ((*counted)["mapping"][0]["quantity"].as_string(), "3Gi");
  EXPECT_TRUE(devices.status_of("ns", "c", allocation(",'consumedCapacity':{}"))->is_null());
  EXPECT_EQ(devices.status_of("ns", "c", allocation("")).error().message(),
            "claim ns/c, device x: ConsumedCapacity is nil, but Capacity key 'd/mem' is set in "
            "NodeAllocatableResources for resource memory");
  devices.remove_slice("s");
  EXPECT_TRUE(devices.empty());
}

TEST(Resize, leaves_room_for_others_once_it_is_done) {
  TestCluster cluster;
  cluster.add_node("n");
  cluster.add_pod("big", "{}", "{'requests':{'cpu':'3'}}");
  cluster.settle();
  cluster.add_pod("waits", "{}", "{'requests':{'cpu':'2'}}");
  cluster.settle();
  ASSERT_EQ(cluster.node_of("big"), "n");
  ASSERT_EQ(cluster.node_of("waits"), "");
  cluster.patch(kPodsOf, "default", "big",
                "{'status':{'containerStatuses':[{'name':'main','image':'x','imageID':'','ready':"
                "true,'restartCount':0,'allocatedResources':{'cpu':'3'}}]}}",
                "status");
  cluster.patch(kPodsOf, "default", "big",
                "{'spec':{'containers':[{'name':'main','resources':{'requests':{'cpu':'1'}}}]}}",
                "resize");
  cluster.settle(std::chrono::seconds(5));
  // What the node has granted still counts.
  EXPECT_EQ(cluster.node_of("waits"), "");
  cluster.patch(kPodsOf, "default", "big",
                "{'status':{'containerStatuses':[{'name':'main','image':'x','imageID':'','ready':"
                "true,'restartCount':0,'allocatedResources':{'cpu':'1'}}]}}",
                "status");
  cluster.settle(std::chrono::seconds(20));
  EXPECT_EQ(cluster.node_of("waits"), "n");
}

}  // namespace
}  // namespace dibs::scheduler::test
