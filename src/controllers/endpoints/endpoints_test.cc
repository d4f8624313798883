#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/endpoints/subsets.h"
#include "controllers/endpoints/test_services.h"

namespace dibs::controllers {
namespace {

using std::chrono::seconds;
using test::from_text;
using test::ServiceCluster;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Subsets, have_one_form) {
  const Value packed = packed_subsets(from_text(
      "[{'addresses': [{'ip': '10.0.0.2'}, {'ip': '10.0.0.1'}], 'ports': [{'name': 'a', 'port': "
      "1, 'protocol': 'TCP'}]}, {'addresses': [{'ip': '10.0.0.1'}], 'notReadyAddresses': [{'ip': "
      "'10.0.0.2'}], 'ports': [{'name': 'b', 'port': 2, 'protocol': 'TCP'}]}, {'addresses': "
      "[{'ip': '10.0.0.1'}, {'ip': '10.0.0.2'}], 'ports': [{'name': 'c', 'port': 3, 'protocol': "
      "'TCP'}]}]"));
  EXPECT_EQ(packed,
            from_text("[{'addresses': [{'ip': '10.0.0.1'}, {'ip': '10.0.0.2'}], 'ports': [{'name': "
                      "'a', 'port': 1, 'protocol': 'TCP'}, {'name': 'c', 'port': 3, 'protocol': "
                      "'TCP'}]}, {'addresses': [{'ip': '10.0.0.1'}], 'notReadyAddresses': [{'ip': "
                      "'10.0.0.2'}], 'ports': [{'name': 'b', 'port': 2, 'protocol': 'TCP'}]}]"));
  EXPECT_EQ(packed_subsets(packed), packed);
}

TEST(Subsets, keep_addresses_without_ports) {
  const Value plain = from_text("[{'addresses': [{'ip': '10.0.0.1'}]}]");
  EXPECT_EQ(packed_subsets(plain), plain);
}

TEST(Subsets, are_cut_at_a_thousand_the_ready_last) {
  const auto addresses = [](int count, const char* net) {
    Value out = Value::array();
    for (int i = 0; i < count; ++i)
      out.push(Value::object({{"ip", cat(net, i / 250, ".", i % 250)}}));
    return out;
  };
  Value subsets = Value::array({Value::object({{"addresses", addresses(900, "10.1.")},
                                               {"notReadyAddresses", addresses(300, "10.2.")}}),
                                Value::object({{"notReadyAddresses", addresses(100, "10.3.")}})});
  EXPECT_TRUE(truncate_subsets(subsets));
  EXPECT_EQ(subsets[0]["addresses"].size(), 900U);
  EXPECT_EQ(subsets[0]["notReadyAddresses"].size(), 75U);
  EXPECT_EQ(subsets[1]["notReadyAddresses"].size(), 25U);
  Value ready = Value::array({Value::object(
      {{"addresses", addresses(1200, "10.1.")}, {"notReadyAddresses", addresses(5, "10.2.")}})});
  EXPECT_TRUE(truncate_subsets(ready));
  EXPECT_EQ(ready[0]["addresses"].size(), 1000U);
  EXPECT_TRUE(ready[0]["notReadyAddresses"].is_null());
  EXPECT_FALSE(truncate_subsets(ready));
}

class EndpointsOfServices : public testing::Test {
 protected:
  EndpointsOfServices() { cluster.add_node("n"); }
  Value endpoints(const std::string& name) {
    return cluster.get(kEndpointsResource, "default", name);
  }
  ServiceCluster cluster;
};

TEST_F(EndpointsOfServices, follow_pods) {
  cluster.add_service("s");
  cluster.add_pod("a", "s", "10.1.0.1");
  cluster.add_pod("b", "s", "10.1.0.2");
  cluster.set_ready("a");
  cluster.settle();
  const Value found = endpoints("s");
  EXPECT_EQ(found["metadata"]["labels"],
            from_text("{'team': 'a', 'endpoints.kubernetes.io/managed-by': "
                      "'endpoint-controller'}"));
  EXPECT_FALSE(found["metadata"]["annotations"][kTriggerTime].is_null());
  ASSERT_EQ(found["subsets"].size(), 1U);
  const Value& subset = found["subsets"][0];
  EXPECT_EQ(subset["addresses"][0]["ip"].str(), "10.1.0.1");
  EXPECT_EQ(subset["addresses"][0]["nodeName"].str(), "n");
  EXPECT_EQ(subset["addresses"][0]["targetRef"]["name"].str(), "a");
  EXPECT_EQ(subset["notReadyAddresses"][0]["ip"].str(), "10.1.0.2");
  EXPECT_EQ(subset["ports"], from_text("[{'name': 'http', 'port': 8080, 'protocol': 'TCP'}]"));
  cluster.settle(seconds(10));
  EXPECT_EQ(endpoints("s")["metadata"]["resourceVersion"], found["metadata"]["resourceVersion"]);
  cluster.remove(kPods, "default", "a");
  cluster.settle();
  EXPECT_TRUE(endpoints("s")["subsets"][0]["addresses"].is_null());
}

TEST_F(EndpointsOfServices, go_with_the_service_and_come_back_when_deleted) {
  cluster.add_service("s");
  cluster.settle();
  ASSERT_FALSE(endpoints("s").is_null());
  cluster.remove(kEndpointsResource, "default", "s");
  cluster.settle();
  EXPECT_FALSE(endpoints("s").is_null());
  cluster.remove(kServiceResource, "default", "s");
  cluster.settle();
  EXPECT_TRUE(endpoints("s").is_null());
}

TEST_F(EndpointsOfServices, are_nobodys_where_there_is_no_selector) {
  cluster.create(kServiceResource, "default",
                 "{'metadata': {'name': 'm'}, 'spec': {'ports': [{'port': 80}]}}");
  cluster.create(kServiceResource, "default",
                 "{'metadata': {'name': 'x'}, 'spec': {'type': 'ExternalName', 'externalName': "
                 "'a.example', 'selector': {'app': 'x'}}}");
  cluster.settle();
  EXPECT_TRUE(endpoints("m").is_null());
  EXPECT_TRUE(endpoints("x").is_null());
  EXPECT_THAT(cluster.slices("x"), IsEmpty());
}

class MirroredEndpoints : public EndpointsOfServices {
 protected:
  void add(const std::string& name, const std::string& metadata = "") {
    cluster.create(kServiceResource, "default",
                   cat("{'metadata': {'name': '", name, "'}, 'spec': {'ports': [{'port': 80}]}}"));
    cluster.create(kEndpointsResource, "default",
                   cat("{'metadata': {'name': '", name, "'", metadata,
                       "}, 'subsets': [{'addresses': [{'ip': '10.9.0.1'}, {'ip': 'fd00::1'}], "
                       "'notReadyAddresses': [{'ip': '10.9.0.2'}], 'ports': [{'port': 8080}]}]}"));
    cluster.settle();
  }
};

TEST_F(MirroredEndpoints, become_a_slice_for_each_family) {
  add("m", ", 'labels': {'k': 'v'}, 'annotations': {'note': 'x'}");
  const auto slices = cluster.slices("m");
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_THAT(cluster.endpoints_of("m"),
              ElementsAre("10.9.0.1 ready", "10.9.0.2", "fd00::1 ready"));
  for (const Value& slice : slices) {
    EXPECT_EQ(slice["metadata"]["labels"],
              from_text("{'k': 'v', 'kubernetes.io/service-name': 'm', "
                        "'endpointslice.kubernetes.io/managed-by': "
                        "'endpointslicemirroring-controller.k8s.io'}"));
    EXPECT_EQ(slice["metadata"]["annotations"], from_text("{'note': 'x'}"));
    EXPECT_EQ(slice["metadata"]["ownerReferences"][0]["kind"].str(), "Endpoints");
  }
  cluster.settle(seconds(10));
  EXPECT_EQ(cluster.slices("m")[0]["metadata"]["resourceVersion"],
            slices[0]["metadata"]["resourceVersion"]);
}

TEST_F(MirroredEndpoints, follow_changes_and_go) {
  add("m");
  cluster.patch(kEndpointsResource, "default", "m",
                "{'subsets': [{'addresses': [{'ip': '10.9.0.7'}], 'ports': [{'port': 9090}]}]}");
  cluster.settle();
  EXPECT_THAT(cluster.endpoints_of("m"), ElementsAre("10.9.0.7 ready"));
  EXPECT_EQ(cluster.slices("m")[0]["ports"][0]["port"].as_int(), 9090);
  cluster.remove(kEndpointsResource, "default", "m");
  cluster.settle(seconds(3));
  EXPECT_THAT(cluster.slices("m"), IsEmpty());
}

TEST_F(MirroredEndpoints, are_left_alone_where_told_or_selected) {
  add("m", ", 'labels': {'endpointslice.kubernetes.io/skip-mirror': 'true'}");
  EXPECT_THAT(cluster.slices("m"), IsEmpty());
  add("o");
  EXPECT_EQ(cluster.slices("o").size(), 2U);
  cluster.patch(kEndpointsResource, "default", "o",
                "{'metadata': {'labels': {'endpointslice.kubernetes.io/skip-mirror': 'true'}}}");
  cluster.settle();
  EXPECT_THAT(cluster.slices("o"), IsEmpty());
  add("p");
  cluster.patch(kServiceResource, "default", "p", "{'spec': {'selector': {'app': 'p'}}}");
  cluster.settle(seconds(3));
  ASSERT_EQ(cluster.slices("p").size(), 1U);
  EXPECT_THAT(cluster.endpoints_of("p"), IsEmpty());
}

}  // namespace
}  // namespace dibs::controllers
