#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "controllers/endpoints/slice_plan.h"
#include "controllers/endpoints/test_services.h"

namespace dibs::controllers {
namespace {

using std::chrono::seconds;
using test::from_text;
using test::ServiceCluster;
using testing::ElementsAre;
using testing::IsEmpty;

Value pod_number(int i, bool ready = true) {
  return from_text(cat("{'metadata': {'name': 'p", 1000 + i, "', 'namespace': 'default', 'uid': 'u",
                       i, "'}, 'spec': {'nodeName': 'n'}, 'status': {'podIPs': [{'ip': '10.1.",
                       i / 250, ".", 1 + i % 250,
                       "'}], 'conditions': [{'type': 'Ready', 'status': '",
                       ready ? "True" : "False", "'}]}}"));
}

const Value kService = from_text(
    "{'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 's', 'namespace': 'default', "
    "'uid': 'S'}, 'spec': {'clusterIP': '10.0.0.9', 'ipFamilies': ['IPv4'], 'ports': [{'port': 80, "
    "'targetPort': 8080, 'protocol': 'TCP'}]}}");

/// The slices after the writes, as a server would have them.
class Slices {
 public:
  SlicePlan apply(const std::vector<Value>& pods, const Value& service = kService) {
    SlicePlan plan = plan_slices(service, pods, all, [](const Value&) {
      return from_text(
          "{'metadata': {'name': 'n', 'labels': {'topology.kubernetes.io/zone': 'z'}}}");
    });
    const auto same = [](const Value& a) {
      return [name = name_of(a)](const Value& b) { return name_of(b) == name; };
    };
    for (const Value& slice : plan.writes.remove)
      all.erase(std::find_if(all.begin(), all.end(), same(slice)));
    for (const Value& slice : plan.writes.update)
      *std::find_if(all.begin(), all.end(), same(slice)) = slice;
    for (Value slice : plan.writes.create) {
      slice.mut("metadata").set("name", cat("s-", ++made_));
      all.push_back(std::move(slice));
    }
    return plan;
  }
  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> out;
    for (const Value& slice : all) out.push_back(slice["endpoints"].size());
    return out;
  }

  std::vector<Value> all;

 private:
  int made_ = 0;
};

std::vector<Value> pods(int count) {
  std::vector<Value> out;
  for (int i = 0; i < count; ++i) out.push_back(pod_number(i));
  return out;
}

TEST(SlicePlan, fills_slices_of_a_hundred) {
  Slices slices;
  slices.apply(pods(250));
  EXPECT_THAT(slices.sizes(), ElementsAre(100, 100, 50));
  EXPECT_TRUE(slices.apply(pods(250)).writes.empty());
}

TEST(SlicePlan, touches_only_the_slice_of_a_pod_that_changed) {
  Slices slices;
  auto many = pods(250);
  slices.apply(many);
  many[7] = pod_number(7, false);
  auto plan = slices.apply(many);
  EXPECT_EQ(plan.writes.update.size(), 1U);
  EXPECT_TRUE(plan.writes.create.empty() && plan.writes.remove.empty());
  // The place of one that goes is taken by one that comes.
  many[7] = pod_number(300);
  plan = slices.apply(many);
  EXPECT_EQ(plan.writes.update.size(), 1U);
  EXPECT_THAT(slices.sizes(), ElementsAre(100, 100, 50));
  // New ones alone go into the slice with room.
  for (int i = 301; i < 341; ++i) many.push_back(pod_number(i));
  plan = slices.apply(many);
  EXPECT_EQ(plan.writes.update.size(), 1U);
  EXPECT_THAT(slices.sizes(), ElementsAre(100, 100, 90));
}

TEST(SlicePlan, removes_what_is_empty_and_keeps_one_for_a_service_without_endpoints) {
  Slices slices;
  slices.apply(pods(150));
  slices.apply(pods(0));
  EXPECT_THAT(slices.sizes(), ElementsAre(0));
  EXPECT_TRUE(slices.all[0]["ports"].empty());
  EXPECT_TRUE(slices.apply({}).writes.empty());
  // It is used again.
  const auto plan = slices.apply(pods(1));
  EXPECT_EQ(plan.writes.update.size(), 1U);
  EXPECT_TRUE(plan.writes.create.empty());
}

TEST(SlicePlan, groups_by_the_numbers_of_named_ports) {
  Value service = kService;
  service.mut("spec").set(
      "ports", from_text("[{'name': 'http', 'port': 80, 'targetPort': 'web', 'protocol': 'TCP'}]"));
  const auto with_port = [](int i, int port) {
    Value pod = pod_number(i);
    pod.mut("spec").set("containers",
                        from_text(cat("[{'ports': [{'name': 'web', 'protocol': 'TCP', "
                                      "'containerPort': ",
                                      port, "}]}]")));
    return pod;
  };
  Slices slices;
  slices.apply({with_port(1, 8080), with_port(2, 9090), with_port(3, 8080)}, service);
  std::multiset<std::int64_t> numbers;
  for (const Value& slice : slices.all) numbers.insert(slice["ports"][0]["port"].as_int());
  EXPECT_THAT(numbers, ElementsAre(8080, 9090));
  EXPECT_THAT(slices.sizes(), testing::UnorderedElementsAre(2, 1));
}

TEST(SlicePlan, hints_at_the_closest_for_ready_endpoints) {
  Value service = kService;
  service.mut("spec").set("trafficDistribution", "PreferSameNode");
  Slices slices;
  slices.apply({pod_number(1), pod_number(2, false)}, service);
  const Value& endpoints = slices.all[0]["endpoints"];
  EXPECT_EQ(endpoints[0]["hints"],
            from_text("{'forZones': [{'name': 'z'}], 'forNodes': [{'name': 'n'}]}"));
  EXPECT_TRUE(endpoints[1]["hints"].is_null());
  service.mut("spec").set("trafficDistribution", "PreferClose");
  slices.apply({pod_number(1), pod_number(2, false)}, service);
  EXPECT_EQ(slices.all[0]["endpoints"][0]["hints"], from_text("{'forZones': [{'name': 'z'}]}"));
  slices.apply({pod_number(1), pod_number(2, false)});
  EXPECT_TRUE(slices.all[0]["endpoints"][0]["hints"].is_null());
}

TEST(SlicePlan, has_slices_for_each_family_of_addresses) {
  Value service = kService;
  service.mut("spec").set("ipFamilies", from_text("['IPv4', 'IPv6']"));
  Value pod = pod_number(1);
  pod.mut("status").mut("podIPs").push(from_text("{'ip': 'fd00:0::1'}"));
  Slices slices;
  slices.apply({pod}, service);
  ASSERT_EQ(slices.all.size(), 2U);
  EXPECT_EQ(slices.all[1]["addressType"].str(), "IPv6");
  EXPECT_EQ(slices.all[1]["endpoints"][0]["addresses"][0].str(), "fd00::1");
  slices.apply({pod});
  EXPECT_EQ(slices.all.size(), 1U);
}

class EndpointSliceController : public testing::Test {
 protected:
  EndpointSliceController() { cluster.add_node("n", "z1"); }
  ServiceCluster cluster;
};

TEST_F(EndpointSliceController, follows_pods_through_their_life) {
  cluster.add_service("s");
  cluster.settle();
  ASSERT_EQ(cluster.slices("s").size(), 1U);  // the empty one
  cluster.add_pod("p", "s", "10.1.0.1");
  cluster.add_pod("stranger", "t", "10.1.0.2");
  cluster.settle();
  EXPECT_THAT(cluster.endpoints_of("s"), ElementsAre("10.1.0.1"));
  cluster.set_ready("p");
  cluster.settle();
  EXPECT_THAT(cluster.endpoints_of("s"), ElementsAre("10.1.0.1 ready serving"));
  cluster.patch(kPods, "default", "p", "{'metadata': {'finalizers': ['a.b/c']}}");
  cluster.remove(kPods, "default", "p");
  cluster.settle();
  EXPECT_THAT(cluster.endpoints_of("s"), ElementsAre("10.1.0.1 serving terminating"));
  cluster.patch(kPods, "default", "p", "{'status': {'phase': 'Failed'}}", "status");
  cluster.settle();
  EXPECT_THAT(cluster.endpoints_of("s"), IsEmpty());
  EXPECT_EQ(cluster.slices("s").size(), 1U);
}

TEST_F(EndpointSliceController, says_whose_a_slice_is_and_all_of_an_endpoint) {
  cluster.add_service("s", "'clusterIP': 'None', ");
  cluster.add_pod("p", "s", "10.1.0.1", "'hostname': 'h', 'subdomain': 's', ");
  cluster.set_ready("p");
  cluster.settle(seconds(3));
  const auto slices = cluster.slices("s");
  ASSERT_EQ(slices.size(), 1U);
  const Value& metadata = slices[0]["metadata"];
  EXPECT_EQ(metadata["labels"], from_text("{'team': 'a', 'kubernetes.io/service-name': 's', "
                                          "'service.kubernetes.io/headless': '', "
                                          "'endpointslice.kubernetes.io/managed-by': "
                                          "'endpointslice-controller.k8s.io'}"));
  EXPECT_TRUE(name_of(slices[0]).starts_with("s-"));
  EXPECT_EQ(metadata["ownerReferences"][0]["kind"].str(), "Service");
  EXPECT_TRUE(metadata["ownerReferences"][0]["controller"].as_bool());
  EXPECT_FALSE(metadata["annotations"][kTriggerTime].as_string().empty());
  EXPECT_EQ(slices[0]["ports"], from_text("[{'name': 'http', 'port': 8080, 'protocol': 'TCP'}]"));
  const Value& endpoint = slices[0]["endpoints"][0];
  EXPECT_EQ(endpoint["nodeName"].str(), "n");
  EXPECT_EQ(endpoint["zone"].str(), "z1");
  EXPECT_EQ(endpoint["hostname"].str(), "h");
  EXPECT_EQ(endpoint["targetRef"]["name"].str(), "p");
  // A write that nobody needs would show as another version.
  cluster.patch(kPods, "default", "p", "{'metadata': {'annotations': {'x': 'y'}}}");
  cluster.settle(seconds(10));
  EXPECT_EQ(cluster.slices("s")[0]["metadata"]["resourceVersion"], metadata["resourceVersion"]);
}

TEST_F(EndpointSliceController, publishes_what_is_not_ready_where_told) {
  cluster.add_service("s", "'publishNotReadyAddresses': true, ");
  cluster.add_pod("p", "s", "10.1.0.1");
  cluster.settle();
  EXPECT_THAT(cluster.endpoints_of("s"), ElementsAre("10.1.0.1 ready"));
}

TEST_F(EndpointSliceController, waits_for_the_node_of_a_pod) {
  cluster.add_service("s");
  cluster.add_pod("p", "s", "10.1.0.1", "", "later");
  cluster.settle();
  EXPECT_THAT(cluster.endpoints_of("s"), IsEmpty());
  cluster.add_node("later");
  cluster.settle();
  EXPECT_THAT(cluster.endpoints_of("s"), ElementsAre("10.1.0.1"));
}

TEST_F(EndpointSliceController, repairs_what_others_change_and_ends_with_the_service) {
  cluster.add_service("s");
  cluster.add_pod("p", "s", "10.1.0.1");
  cluster.settle();
  const std::string name(name_of(cluster.slices("s")[0]));
  cluster.patch(kSliceResource, "default", name, "{'endpoints': []}");
  cluster.settle(seconds(3));
  EXPECT_THAT(cluster.endpoints_of("s"), ElementsAre("10.1.0.1"));
  cluster.remove(kSliceResource, "default", std::string(name_of(cluster.slices("s")[0])));
  cluster.settle(seconds(3));
  EXPECT_THAT(cluster.endpoints_of("s"), ElementsAre("10.1.0.1"));
  cluster.patch(kServiceResource, "default", "s", "{'metadata': {'labels': {'team': 'b'}}}");
  cluster.settle();
  EXPECT_EQ(cluster.slices("s")[0]["metadata"]["labels"]["team"].str(), "b");
  cluster.remove(kServiceResource, "default", "s");
  cluster.settle(seconds(3));
  EXPECT_THAT(cluster.slices("s"), IsEmpty());
}

TEST_F(EndpointSliceController, makes_each_slice_once_while_many_pods_come) {
  cluster.add_service("s");
  for (int i = 0; i < 130; ++i) cluster.add_pod(cat("p", i), "s", cat("10.1.1.", i));
  cluster.settle(seconds(5));
  EXPECT_EQ(cluster.endpoints_of("s").size(), 130U);
  EXPECT_EQ(cluster.slices("s").size(), 2U);
}

TEST_F(EndpointSliceController, moves_a_pod_whose_labels_change) {
  cluster.add_service("s");
  cluster.add_service("t");
  cluster.add_pod("p", "s", "10.1.0.1");
  cluster.settle();
  cluster.patch(kPods, "default", "p", "{'metadata': {'labels': {'app': 't'}}}");
  cluster.settle();
  EXPECT_THAT(cluster.endpoints_of("s"), IsEmpty());
  EXPECT_THAT(cluster.endpoints_of("t"), ElementsAre("10.1.0.1"));
}

}  // namespace
}  // namespace dibs::controllers
