// Pods among pods: affinity, spread, ports, priorities.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/scores/scores.h"
#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kRoom = "{'cpu':'4','memory':'8Gi','pods':'10'}";
constexpr const char* kApart =
    "{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
    "'topologyKey':'host','labelSelector':{'matchLabels':{'app':'one'}}}]}}}";

void two_zones(TestCluster& cluster) {
  cluster.add_node("a", kRoom, "{'host':'a','zone':'a'}");
  cluster.add_node("b", kRoom, "{'host':'b','zone':'b'}");
}

TEST(Placement, keeps_pods_apart) {
  TestCluster cluster;
  two_zones(cluster);
  for (const char* name : {"p", "q", "r"}) {
    cluster.add_pod(name, kApart, "{}", "{'app':'one'}");
    cluster.settle();
  }
  EXPECT_NE(cluster.node_of("p"), cluster.node_of("q"));
  EXPECT_EQ(cluster.condition("r"),
            "Unschedulable: 0/2 nodes are available: 2 node(s) didn't match pod anti-affinity "
            "rules. preemption: 0/2 nodes are available: 2 No preemption victims found for "
            "incoming pod.");
  cluster.add_pod("s", "{}", "{}", "{'app':'one'}");
  cluster.settle();
  EXPECT_THAT(cluster.condition("s"),
              HasSubstr("2 node(s) didn't satisfy existing pods anti-affinity rules."));
  cluster.remove(kPodsOf, "default", "q");
  cluster.settle();
  EXPECT_NE(cluster.node_of("r"), "");
}

TEST(Placement, brings_pods_together) {
  TestCluster cluster;
  two_zones(cluster);
  cluster.add_pod("friend",
                  "{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
                  "'topologyKey':'zone','labelSelector':{'matchLabels':{'app':'host'}}}]}}}");
  cluster.settle();
  EXPECT_EQ(cluster.condition("friend"),
            "Unschedulable: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules. "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.");
  cluster.add_pod("host", "{'nodeSelector':{'zone':'b'}}", "{}", "{'app':'host'}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("friend"), "b");
}

TEST(Placement, lets_the_first_of_a_kind_go_anywhere) {
  TestCluster cluster;
  two_zones(cluster);
  cluster.add_pod("self",
                  "{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
                  "'topologyKey':'zone','labelSelector':{'matchLabels':{'app':'self'}}}]}}}",
                  "{}", "{'app':'self'}");
  cluster.settle();
  EXPECT_NE(cluster.node_of("self"), "");
}

TEST(Placement, spreads_over_zones) {
  TestCluster cluster;
  two_zones(cluster);
  const std::string spread =
      "{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':"
      "'DoNotSchedule','labelSelector':{'matchLabels':{'app':'s'}}}]}";
  for (const char* name : {"p", "q", "r"}) {
    cluster.add_pod(name, spread, "{}", "{'app':'s'}");
    cluster.settle();
  }
  EXPECT_NE(cluster.node_of("p"), cluster.node_of("q"));
  const std::string fuller = cluster.node_of("r");
  const std::string other = fuller == "a" ? "b" : "a";
  cluster.patch(kNodes, "", other, "{'spec':{'unschedulable':true}}");
  cluster.settle();
  cluster.add_pod("s", spread, "{}", "{'app':'s'}");
  cluster.settle();
  EXPECT_EQ(cluster.condition("s"),
            "Unschedulable: 0/2 nodes are available: 1 node(s) didn't match pod topology spread "
            "constraints, 1 node(s) were unschedulable. preemption: 0/2 nodes are available: 1 No "
            "preemption victims found for incoming pod, 1 Preemption is not helpful for "
            "scheduling.");
}

TEST(Placement, follows_taints_and_preferences) {
  TestCluster cluster;
  two_zones(cluster);
  cluster.patch(kNodes, "", "a",
                "{'spec':{'taints':[{'key':'k','value':'v','effect':'NoSchedule'}]}}");
  cluster.add_pod("plain");
  cluster.add_pod("prefers",
                  "{'tolerations':[{'key':'k','operator':'Exists'}],'affinity':{'nodeAffinity':{"
                  "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':100,'preference':{"
                  "'matchExpressions':[{'key':'zone','operator':'In','values':['a']}]}}]}}}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("plain"), "b");
  EXPECT_EQ(cluster.node_of("prefers"), "a");
}

TEST(Placement, waits_for_a_node_that_declares_what_it_needs) {
  TestCluster cluster;
  two_zones(cluster);
  cluster.add_pod(
      "restarts",
      "{'restartPolicy':'Never','containers':[{'name':'main','image':'i','restartPolicy':'Never',"
      "'restartPolicyRules':[{'action':'RestartAllContainers','exitCodes':{'operator':'In',"
      "'values':[42]}}]}]}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("restarts"), "");
  EXPECT_EQ(
      cluster.condition("restarts"),
      "Unschedulable: 0/2 nodes are available: 2 node(s) didn't match Pod's required features. "
      "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.");

  cluster.patch(kNodes, "", "b",
                "{'status':{'declaredFeatures':['RestartAllContainersOnContainerExits']}}",
                "status");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("restarts"), "b");
}

TEST(Placement, goes_where_its_image_is) {
  for (const std::string has : {"a", "b"}) {
    TestCluster cluster;
    two_zones(cluster);
    cluster.patch(kNodes, "", has,
                  "{'status':{'images':[{'names':['r.io/app:v1'],'sizeBytes':2000000000}]}}",
                  "status");
    cluster.add_pod("p", "{'containers':[{'name':'main','image':'r.io/app:v1'}]}");
    cluster.settle();
    EXPECT_EQ(cluster.node_of("p"), has);
  }
}

TEST(Placement, goes_where_the_profile_packs_it) {
  Options options;
  options.configuration.profiles[0].fit.strategy = FitArgs::Strategy::most_allocated;
  options.configuration.profiles[0].scores = {{find_score("NodeResourcesFit"), 1}};
  TestCluster cluster(options);
  two_zones(cluster);
  cluster.add_pod("first", "{'nodeSelector':{'zone':'b'}}", "{'requests':{'cpu':'1'}}");
  cluster.settle();
  for (const char* name : {"p", "q"}) {
    cluster.add_pod(name, "{}", "{'requests':{'cpu':'1'}}");
    cluster.settle();
    EXPECT_EQ(cluster.node_of(name), "b");
  }
}

TEST(Placement, tries_gated_pods_of_a_profile_that_does_not_mind) {
  Options options;
  for (PluginSet& on : options.configuration.profiles[0].plugins) {
    on &= ~bit(Plugin::scheduling_gates);
  }
  TestCluster cluster(options);
  two_zones(cluster);
  cluster.add_pod("p", "{'schedulingGates':[{'name':'g.io/a'}],'nodeSelector':{'zone':'c'}}");
  cluster.settle();
  EXPECT_THAT(cluster.condition("p"), HasSubstr("0/2 nodes are available"));
}

TEST(Placement, tells_pods_that_name_their_node) {
  TestCluster cluster;
  two_zones(cluster);
  cluster.add_pod("daemon",
                  "{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
                  "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In',"
                  "'values':['a']}]}]}}}}",
                  "{'requests':{'cpu':'9'}}");
  cluster.settle();
  EXPECT_THAT(cluster.condition("daemon"),
              HasSubstr("1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."));
}

TEST(Placement, gives_a_port_once) {
  TestCluster cluster;
  cluster.add_node("a");
  const std::string spec =
      "{'containers':[{'name':'main','image':'x','ports':[{'containerPort':80,'hostPort':8080}]}]}";
  cluster.add_pod("p", spec);
  cluster.settle();
  cluster.add_pod("q", spec);
  cluster.settle();
  EXPECT_THAT(cluster.condition("q"),
              HasSubstr("1 node(s) didn't have free ports for the requested pod ports."));
}

TEST(Placement, counts_init_containers) {
  TestCluster cluster;
  cluster.add_node("a");
  cluster.add_pod("p",
                  "{'initContainers':[{'name':'i','image':'x','resources':{'requests':{'cpu':'5'}}"
                  "}]}",
                  "{'requests':{'cpu':'1'}}");
  cluster.settle();
  EXPECT_THAT(cluster.condition("p"), HasSubstr("1 Insufficient cpu."));
}

class Priorities : public testing::Test {
 protected:
  Priorities() {
    const Gvr classes = {"scheduling.k8s.io", "v1", "priorityclasses"};
    cluster.create(classes, "", "{'metadata':{'name':'high'},'value':1000}");
    cluster.create(classes, "",
                   "{'metadata':{'name':'polite'},'value':500,'preemptionPolicy':'Never'}");
    cluster.create(classes, "", "{'metadata':{'name':'low'},'value':10}");
    cluster.add_node("a", "{'cpu':'4','memory':'8Gi','pods':'3'}", "{'host':'a'}");
    cluster.add_node("b", "{'cpu':'2','memory':'8Gi','pods':'3'}", "{'host':'b'}");
    for (const char* name : {"low-1", "low-2"}) {
      cluster.add_pod(name, "{'priorityClassName':'low','nodeSelector':{'host':'a'}}",
                      "{'requests':{'cpu':'1900m'}}");
    }
    cluster.settle();
  }
  TestCluster cluster;
};

TEST_F(Priorities, drives_out_lower_pods) {
  cluster.add_pod("p", "{'priorityClassName':'high'}", "{'requests':{'cpu':'3'}}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a");
  EXPECT_THAT(cluster.events("p"),
              Contains("Warning FailedScheduling 0/2 nodes are available: 2 Insufficient cpu. "
                       "preemption: found a potential placement for pod on node a, preempting 2 "
                       "victims"));
  EXPECT_TRUE(cluster.get(kPodsOf, "default", "low-1").is_null());
  EXPECT_THAT(cluster.events("low-2"), Contains(HasSubstr("Normal Preempted Preempted by pod ")));
}

TEST_F(Priorities, takes_as_few_as_needed) {
  cluster.add_pod("p", "{'priorityClassName':'high','nodeSelector':{'host':'a'}}",
                  "{'requests':{'cpu':'2'}}");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a");
  const bool first = cluster.get(kPodsOf, "default", "low-1").is_null();
  const bool second = cluster.get(kPodsOf, "default", "low-2").is_null();
  EXPECT_NE(first, second);
}

TEST_F(Priorities, respects_who_may_not_preempt) {
  cluster.add_pod("p", "{'priorityClassName':'polite'}", "{'requests':{'cpu':'3'}}");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible "
            "due to preemptionPolicy=Never.");
}

TEST_F(Priorities, does_not_preempt_equals_or_in_vain) {
  cluster.add_pod("equal", "{'priorityClassName':'low'}", "{'requests':{'cpu':'3'}}");
  cluster.add_pod("huge", "{'priorityClassName':'high'}", "{'requests':{'cpu':'30'}}");
  cluster.settle();
  EXPECT_THAT(cluster.condition("equal"),
              HasSubstr("preemption: 0/2 nodes are available: 1 No preemption victims found for "
                        "incoming pod, 1 Preemption is not helpful for scheduling."));
  EXPECT_THAT(cluster.condition("huge"),
              HasSubstr("preemption: 0/2 nodes are available: 2 Preemption is not helpful for "
                        "scheduling."));
}

TEST_F(Priorities, waits_on_the_nominated_node_for_victims_with_grace) {
  for (const char* name : {"low-1", "low-2"}) cluster.remove(kPodsOf, "default", name);
  cluster.add_pod("slow",
                  "{'priorityClassName':'low','nodeSelector':{'host':'a'},"
                  "'terminationGracePeriodSeconds':30}",
                  "{'requests':{'cpu':'3'}}");
  cluster.settle();
  cluster.add_pod("next", "{'priorityClassName':'high'}", "{'requests':{'cpu':'3'}}");
  cluster.settle();
  EXPECT_EQ(cluster.get(kPodsOf, "default", "next")["status"]["nominatedNodeName"].as_string(),
            "a");
  const Value slow = cluster.get(kPodsOf, "default", "slow");
  EXPECT_TRUE(slow["metadata"]["deletionTimestamp"].is_string());
  bool told = false;
  for (const Value& condition : slow["status"]["conditions"].items()) {
    if (condition["type"].as_string() != "DisruptionTarget") continue;
    told = true;
    EXPECT_EQ(condition["message"].as_string(),
              "default-scheduler: preempting to accommodate a higher priority pod");
  }
  EXPECT_TRUE(told);
  cluster.remove(kPodsOf, "default", "slow");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("next"), "a");
}

}  // namespace
}  // namespace dibs::scheduler::test
