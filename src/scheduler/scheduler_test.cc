#include "scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kNotHelpfulForTwo =
    " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";

TEST(Scheduler, binds_a_pod_and_says_so) {
  TestCluster cluster;
  cluster.add_node("a");
  cluster.add_pod("p");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a");
  EXPECT_THAT(cluster.events("p"),
              ElementsAre("Normal Scheduled Successfully assigned default/p to a"));
}

TEST(Scheduler, prefers_the_emptier_node) {
  TestCluster cluster;
  cluster.add_node("a");
  cluster.add_node("b");
  cluster.add_pod("one", "{}", "{'requests':{'cpu':'2','memory':'2Gi'}}");
  cluster.settle();
  cluster.add_pod("two", "{}", "{'requests':{'cpu':'2','memory':'2Gi'}}");
  cluster.settle();
  EXPECT_NE(cluster.node_of("one"), cluster.node_of("two"));
}

TEST(Scheduler, leaves_pods_of_others_alone) {
  TestCluster cluster;
  cluster.add_node("a");
  cluster.add_pod("p", "{'schedulerName':'nobody'}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "");
  EXPECT_EQ(cluster.condition("p"), "");
}

TEST(Scheduler, waits_for_the_first_node) {
  TestCluster cluster;
  cluster.add_pod("p");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"), "Unschedulable: no nodes available to schedule pods");
  cluster.add_node("a");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a");
}

TEST(Scheduler, gives_one_reason_per_node_and_counts_them) {
  TestCluster cluster;
  cluster.add_node("a", "{'cpu':'1','memory':'8Gi','pods':'10'}");
  cluster.add_node("b");
  cluster.patch(kNodes, "", "b", "{'spec':{'unschedulable':true}}");
  cluster.add_pod("p", "{}", "{'requests':{'cpu':'2'}}");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            cat("Unschedulable: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were "
                "unschedulable.",
                kNotHelpfulForTwo));
  cluster.patch(kNodes, "", "b", "{'spec':{'unschedulable':false}}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "b");
}

TEST(Scheduler, wakes_a_pod_when_another_goes) {
  TestCluster cluster;
  cluster.add_node("a", "{'cpu':'2','memory':'8Gi','pods':'10'}");
  cluster.add_pod("one", "{}", "{'requests':{'cpu':'1500m'}}");
  cluster.settle();
  cluster.add_pod("two", "{}", "{'requests':{'cpu':'1'}}");
  cluster.settle();
  EXPECT_EQ(cluster.condition("two"),
            "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are "
            "available: 1 No preemption victims found for incoming pod.");
  cluster.patch(kPodsOf, "default", "one", "{'status':{'phase':'Succeeded'}}", "status");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("two"), "a");
}

TEST(Scheduler, does_not_try_gated_pods) {
  TestCluster cluster;
  cluster.add_node("a");
  cluster.add_pod("p", "{'schedulingGates':[{'name':'example.com/x'}]}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "");
  EXPECT_THAT(cluster.events("p"), IsEmpty());
  cluster.patch(kPodsOf, "default", "p", "{'spec':{'schedulingGates':null}}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a");
}

class Writes : public testing::TestWithParam<bool> {};

TEST_P(Writes, allocate_reserve_and_bind) {
  const bool remote = GetParam();
  TestCluster cluster({}, {}, remote);
  cluster.add_class();
  cluster.add_node("a");
  cluster.add_node("b");
  cluster.add_devices("b", 2);
  cluster.add_claim("c", 2);
  const int before = cluster.cut->writes();
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "b");
  const Value claim = cluster.get(kClaimsOf, "default", "c");
  EXPECT_EQ(claim["status"]["reservedFor"][0]["name"].as_string(), "p");
  EXPECT_EQ(claim["metadata"]["finalizers"][0].as_string(),
            "resource.kubernetes.io/delete-protection");
  EXPECT_THAT(cluster.held_devices(), ElementsAre("b/gpu-0", "b/gpu-1"));
  // Finalizer, which a server in the process sets with the status; status; binding.
  EXPECT_EQ(cluster.cut->writes() - before, remote ? 3 : 2);
}

INSTANTIATE_TEST_SUITE_P(NearAndFar, Writes, testing::Bool());

TEST(Scheduler, users_of_a_claim_stand_in_the_order_in_which_they_came) {
  TestCluster cluster;
  cluster.add_class();
  cluster.add_node("a");
  cluster.add_devices("a", 1);
  cluster.add_claim("c");
  for (const char* pod : {"one", "two", "three"}) {
    cluster.add_claim_pod(pod, "c");
    cluster.settle();
  }
  std::vector<std::string> users;
  const Value claim = cluster.get(kClaimsOf, "default", "c");
  for (const Value& user : claim["status"]["reservedFor"].items())
    users.push_back(user["name"].str());
  EXPECT_THAT(users, ElementsAre("one", "two", "three"));
}

TEST(Scheduler, does_not_try_pods_whose_claim_is_missing) {
  TestCluster cluster;
  cluster.add_class();
  cluster.add_node("a");
  cluster.add_devices("a", 1);
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"), "");
  EXPECT_THAT(cluster.events("p"), IsEmpty());
  cluster.add_claim("c");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a");
}

TEST(Scheduler, names_the_class_that_does_not_exist) {
  TestCluster cluster;
  cluster.add_node("a");
  cluster.add_claim("c");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            "Unschedulable: 0/1 nodes are available: request d: device class gpu does not exist. "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.");
  cluster.add_class();
  cluster.add_devices("a", 1);
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a");
}

TEST(Scheduler, shares_a_claim_without_failing_anybody) {
  TestCluster cluster;
  cluster.add_class();
  cluster.add_node("a");
  cluster.add_node("b");
  cluster.add_devices("b", 1);
  cluster.add_claim("c");
  for (const char* name : {"p", "q", "r"}) cluster.add_claim_pod(name, "c");
  cluster.settle();
  for (const char* name : {"p", "q", "r"}) {
    EXPECT_EQ(cluster.node_of(name), "b");
    EXPECT_THAT(cluster.events(name), testing::SizeIs(1));
  }
  EXPECT_EQ(cluster.get(kClaimsOf, "default", "c")["status"]["reservedFor"].size(), 3U);
}

TEST(Scheduler, gives_each_device_once_and_wakes_the_next) {
  TestCluster cluster;
  cluster.add_class();
  cluster.add_node("a");
  cluster.add_devices("a", 2);
  for (int i = 0; i < 3; ++i) {
    cluster.add_claim(cat("c", i));
    cluster.add_claim_pod(cat("p", i), cat("c", i));
  }
  cluster.settle();
  EXPECT_THAT(cluster.held_devices(), ElementsAre("a/gpu-0", "a/gpu-1"));
  EXPECT_EQ(cluster.condition("p2"),
            "Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 "
            "nodes are available: 1 Preemption is not helpful for scheduling.");
  cluster.remove(kPodsOf, "default", "p0");
  cluster.patch(kClaimsOf, "default", "c0", "{'status':{'allocation':null,'reservedFor':null}}",
                "status");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p2"), "a");
}

TEST(Scheduler, a_selector_that_fails_on_one_node_holds_the_pod_until_it_is_mended) {
  TestCluster cluster;
  cluster.add_class("gpu",
                    "'selectors':[{'cel':{'expression':'device.attributes[\\'x.io\\'].speed > "
                    "1'}}]");
  cluster.add_node("a");
  cluster.add_node("b");
  cluster.add_devices("a", 1);
  cluster.add_devices("b", 1, ",'attributes':{'x.io/speed':{'int':5}}");
  cluster.add_claim("c");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "");
  EXPECT_THAT(
      cluster.condition("p"),
      testing::StartsWith("SchedulerError: running \"DynamicResources\" filter plugin: class "
                          "gpu: selector #0 on device gpu.example.com/a/gpu-0: CEL runtime error: "
                          "no such key: speed"));
  cluster.add_class("fast",
                    "'selectors':[{'cel':{'expression':'device.attributes[\\'x.io\\'].?speed."
                    "orValue(0) > 1'}}]");
  cluster.add_claim("d", 1, "fast");
  cluster.add_claim_pod("q", "d");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("q"), "b");
}

TEST(Scheduler, waits_for_binding_conditions) {
  TestCluster cluster;
  cluster.add_class();
  cluster.add_node("a");
  cluster.add_devices("a", 1,
                      ",'bindsToNode':true,'bindingConditions':['x.io/ok'],"
                      "'bindingFailureConditions':['x.io/bad']");
  cluster.add_claim("c");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "");
  EXPECT_EQ(cluster.condition("p"), "");
  cluster.patch(kClaimsOf, "default", "c",
                "{'status':{'devices':[{'driver':'gpu.example.com','pool':'a','device':'gpu-0',"
                "'conditions':[{'type':'x.io/ok','status':'True','reason':'R','message':'',"
                "'lastTransitionTime':'2026-01-01T00:00:00Z'}]}]}}",
                "status");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a");
  EXPECT_THAT(cluster.events("p"),
              Contains("Normal BindingConditionsPending waiting for binding conditions for device "
                       "on node a"));
}

TEST(Scheduler, tells_that_binding_conditions_failed) {
  TestCluster cluster;
  cluster.add_class();
  cluster.add_node("a");
  cluster.add_devices("a", 1,
                      ",'bindsToNode':true,'bindingConditions':['x.io/ok'],"
                      "'bindingFailureConditions':['x.io/bad']");
  cluster.add_claim("c");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  cluster.patch(kClaimsOf, "default", "c",
                "{'status':{'devices':[{'driver':'gpu.example.com','pool':'a','device':'gpu-0',"
                "'conditions':[{'type':'x.io/bad','status':'True','reason':'Broken','message':'no "
                "cable','lastTransitionTime':'2026-01-01T00:00:00Z'}]}]}}",
                "status");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            "SchedulerError: running PreBind plugin \"DynamicResources\": device binding failed: "
            "claim=c, reason=Broken, message=\"no cable\"");
  // Freed, allocated again, and waited for again.
  cluster.settle(std::chrono::seconds(15));
  EXPECT_EQ(cluster.get(kClaimsOf, "default", "c")["status"]["reservedFor"].size(), 1U);
  EXPECT_TRUE(cluster.get(kClaimsOf, "default", "c")["status"]["devices"].empty());
}

TEST(Scheduler, gives_up_on_binding_conditions_after_the_timeout) {
  TestCluster cluster;
  cluster.add_class();
  cluster.add_node("a");
  cluster.add_devices("a", 1,
                      ",'bindingConditions':['x.io/ok'],'bindingFailureConditions':['x.io/bad']");
  cluster.add_claim("c");
  cluster.add_claim_pod("p", "c");
  cluster.settle(std::chrono::seconds(601));
  EXPECT_THAT(cluster.events("p"), Contains(HasSubstr("device binding timeout: claim=c")));
}

TEST(Scheduler, makes_a_claim_of_extended_resources) {
  TestCluster cluster;
  cluster.add_class("gpu", "'extendedResourceName':'example.com/gpu'");
  cluster.add_node("a");
  cluster.add_node("b");
  cluster.add_devices("b", 3);
  cluster.add_pod("p", "{}", "{'limits':{'example.com/gpu':'2'}}");
  cluster.add_pod("q", "{}", "{'limits':{'deviceclass.resource.kubernetes.io/gpu':'1'}}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "b");
  EXPECT_EQ(cluster.node_of("q"), "b");
  EXPECT_THAT(cluster.held_devices(), ElementsAre("b/gpu-0", "b/gpu-1", "b/gpu-2"));
  const Value status =
      cluster.get(kPodsOf, "default", "p")["status"]["extendedResourceClaimStatus"];
  EXPECT_THAT(status["resourceClaimName"].str(), HasSubstr("p-extended-resources-"));
  EXPECT_EQ(json::write(status["requestMappings"]),
            "[{\"containerName\":\"main\",\"resourceName\":\"example.com/gpu\",\"requestName\":"
            "\"container-0-request-0\"}]");
  cluster.add_pod("r", "{}", "{'limits':{'example.com/gpu':'2'}}");
  cluster.settle();
  EXPECT_EQ(cluster.condition("r"),
            cat("Unschedulable: 0/2 nodes are available: 2 cannot allocate all claims.",
                kNotHelpfulForTwo));
}

TEST(Scheduler, lets_a_device_plugin_serve_extended_resources) {
  TestCluster cluster;
  cluster.add_class("gpu", "'extendedResourceName':'example.com/gpu'");
  cluster.add_node("a", "{'cpu':'4','memory':'8Gi','pods':'10','example.com/gpu':'1'}");
  cluster.add_pod("p", "{}", "{'limits':{'example.com/gpu':'1'}}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a");
  EXPECT_THAT(cluster.held_devices(), IsEmpty());
}

TEST(Scheduler, a_profile_without_devices_refuses_pods_with_claims) {
  Options options;
  for (PluginSet& on : options.configuration.profiles[0].plugins) {
    on &= ~bit(Plugin::dynamic_resources);
  }
  TestCluster cluster(options);
  cluster.add_node("a");
  cluster.add_claim("c");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_THAT(cluster.condition("p"), HasSubstr("DynamicResources"));
}

TEST(Scheduler, does_not_lose_a_pod_whose_predecessor_of_that_name_is_being_bound) {
  TestCluster cluster;
  cluster.add_node("n");
  cluster.cut->hold_next("/pods/p/binding");
  cluster.add_pod("p");
  cluster.settle();
  cluster.remove(kPodsOf, "default", "p");
  cluster.patch(kNodes, "", "n", "{'spec':{'unschedulable':true}}");
  cluster.add_pod("p");
  cluster.settle();
  EXPECT_THAT(cluster.condition("p"), HasSubstr("1 node(s) were unschedulable"));
  cluster.cut->let_go();
  cluster.settle();
  cluster.patch(kNodes, "", "n", "{'spec':{'unschedulable':null,'taints':null}}");
  cluster.settle(std::chrono::seconds(20));

  EXPECT_EQ(cluster.node_of("p"), "n") << cluster.condition("p");
}

}  // namespace
}  // namespace dibs::scheduler::test
