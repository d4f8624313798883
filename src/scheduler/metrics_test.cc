#include "scheduler/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "scheduler/test_cluster.h"

namespace dibs::scheduler {
namespace {

using json::Value;
using testing::HasSubstr;

struct SchedulerMetrics : testing::Test {
  static Options with(metrics::Registry& registry) {
    Options options;
    options.metrics = &registry;
    return options;
  }
  void expect(std::initializer_list<const char*> lines) {
    const std::string text = registry.expose();
    for (const char* line : lines) EXPECT_THAT(text, HasSubstr(cat("\n", line, "\n")));
  }

  metrics::Registry registry;
  test::TestCluster cluster{with(registry)};
};

TEST_F(SchedulerMetrics, tell_of_a_pod_with_a_claim) {
  cluster.add_node("n");
  cluster.add_devices("n", 1);
  cluster.add_class();
  cluster.add_claim("c");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  ASSERT_EQ(cluster.node_of("p"), "n");
  expect(
      {R"(scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"} 1)",
       "scheduler_scheduling_algorithm_duration_seconds_count 1",
       "scheduler_pod_scheduling_attempts_count 1", "scheduler_pod_scheduling_attempts_sum 1",
       R"(scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1)",
       R"(scheduler_plugin_execution_duration_seconds_count{plugin="DynamicResources",extension_point="PreFilter",status="Success"} 1)",
       R"(scheduler_plugin_execution_duration_seconds_count{plugin="DynamicResources",extension_point="Filter",status="Success"} 1)",
       R"(scheduler_plugin_execution_duration_seconds_count{plugin="DynamicResources",extension_point="PreBind",status="Success"} 1)",
       R"(scheduler_cache_size{type="nodes"} 1)", R"(scheduler_cache_size{type="pods"} 1)",
       R"(scheduler_cache_size{type="assumed_pods"} 0)",
       R"(scheduler_pending_pods{queue="active"} 0)"});
}

TEST_F(SchedulerMetrics, tell_what_pods_wait_for) {
  cluster.add_node("n");
  cluster.add_devices("n", 1);
  cluster.add_class();
  cluster.add_claim("c", 2);
  cluster.add_claim_pod("greedy", "c");
  cluster.add_pod("large", "{}", "{'requests':{'cpu':'100'}}");
  cluster.add_pod("gated", "{'schedulingGates':[{'name':'example.com/wait'}]}");
  cluster.settle();
  expect(
      {R"(scheduler_pending_pods{queue="unschedulable"} 2)",
       R"(scheduler_pending_pods{queue="gated"} 1)",
       R"(scheduler_unschedulable_pods{plugin="DynamicResources",profile="default-scheduler"} 1)",
       R"(scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1)",
       R"(scheduler_plugin_execution_duration_seconds_count{plugin="DynamicResources",extension_point="Filter",status="Unschedulable"} 1)"});
  cluster.remove(test::kPodsOf, "default", "large");
  cluster.settle();
  expect(
      {R"(scheduler_pending_pods{queue="unschedulable"} 1)",
       R"(scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 0)"});
  cluster.stop();
  expect(
      {R"(scheduler_pending_pods{queue="unschedulable"} 0)",
       R"(scheduler_unschedulable_pods{plugin="DynamicResources",profile="default-scheduler"} 0)",
       R"(scheduler_cache_size{type="nodes"} 0)"});
}

TEST_F(SchedulerMetrics, tell_of_claims_for_extended_resources) {
  cluster.add_node("n");
  cluster.add_devices("n", 1);
  cluster.add_class("gpu", "'extendedResourceName':'example.com/gpu'");
  cluster.add_pod("p", "{}", "{'limits':{'example.com/gpu':'1'}}");
  cluster.settle();
  ASSERT_EQ(cluster.node_of("p"), "n");
  expect(
      {R"(dynamic_resource_allocation_resourceclaim_creates_total{status="success",admin_access="false",owner_api_group="",owner_api_kind="Pod"} 1)"});
}

TEST_F(SchedulerMetrics, tell_what_became_of_binding_conditions) {
  cluster.add_node("n");
  cluster.add_devices("n", 2,
                      ",'bindsToNode':true,'bindingConditions':['example.com/ready'],"
                      "'bindingFailureConditions':['example.com/broken']");
  cluster.add_class();
  const auto says = [&](const std::string& claim, const std::string& type) {
    Value object = cluster.get(test::kClaimsOf, "default", claim);
    const Value& result = object["status"]["allocation"]["devices"]["results"][0];
    const Value told =
        test::from_text(cat("[{'driver':'gpu.example.com','pool':'n','device':'",
                            result["device"].as_string(), "','conditions':[{'type':'", type,
                            "','status':'True','reason':'R','message':'m',"
                            "'lastTransitionTime':'2023-11-14T22:13:20Z'}]}]"));
    object.mut("status").set("devices", told);
    ASSERT_TRUE(cluster.api->update_status(test::kClaimsOf, "default", object).ok());
    cluster.settle();
  };
  for (const char* name : {"a", "b"}) {
    cluster.add_claim(name);
    cluster.add_claim_pod(name, name);
  }
  cluster.settle(std::chrono::seconds(2));
  says("a", "example.com/ready");
  EXPECT_EQ(cluster.node_of("a"), "n");
  expect(
      {R"(scheduler_dra_bindingconditions_allocations_total{profile="default-scheduler",driver="gpu.example.com",status="success"} 1)",
       R"(scheduler_dra_bindingconditions_wait_duration_seconds_bucket{profile="default-scheduler",driver="gpu.example.com",status="success",le="1.6"} 0)",
       R"(scheduler_dra_bindingconditions_wait_duration_seconds_count{profile="default-scheduler",driver="gpu.example.com",status="success"} 1)"});
  says("b", "example.com/broken");
  expect(
      {R"(scheduler_dra_bindingconditions_allocations_total{profile="default-scheduler",driver="gpu.example.com",status="failure"} 1)"});
}

}  // namespace
}  // namespace dibs::scheduler
