// Workloads, nodes, drivers, and all that waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cli/why_story.h"
#include "json/test_text.h"

namespace dibs::cli {
namespace {

using json::Value;
using json::test::from_text;
using testing::HasSubstr;
using testing::Not;

struct World : WhyWorld {
  World() { now = *parse_rfc3339("2026-03-01T12:00:00Z"); }

  void add(const std::string& text) { objects.add(from_text(text)); }
  void add_node(const std::string& name, const std::string& spec = "{}",
                const std::string& ready = "True") {
    add(cat("{'kind':'Node','metadata':{'name':'", name, "'},'spec':", spec,
            ",'status':{'allocatable':{'cpu':'4','memory':'8Gi','pods':'10'},'conditions':[{"
            "'type':'Ready','status':'",
            ready, "','lastTransitionTime':'T','reason':'R','message':'M'}]}}"));
  }
  void add_slice(const std::string& node, int count = 1, const std::string& driver = "gpu.io") {
    add(cat("{'kind':'ResourceSlice','metadata':{'name':'", driver, node, "'},'spec':{'driver':'",
            driver, "','nodeName':'", node, "','pool':{'name':'", node,
            "','generation':1,'resourceSliceCount':", count,
            "},'devices':[{'name':'a'},{'name':'b'}]}}"));
  }
  void add_pod(const std::string& name, const std::string& owner, const std::string& spec = "{}",
               const std::string& status = "{}") {
    Value pod =
        from_text(cat("{'kind':'Pod','metadata':{'name':'", name, "','namespace':'default','uid':'",
                      name, "','ownerReferences':[{'controller':true,'uid':'", owner,
                      "'}]},'spec':", spec, ",'status':", status, "}"));
    pod.mut("spec").set("schedulerName", "default-scheduler");
    objects.add(pod);
  }
  void add_workload(const std::string& kind, const std::string& name,
                    const std::string& spec = "{}", const std::string& status = "{}",
                    const std::string& owner = "") {
    add(cat(
        "{'kind':'", kind, "','metadata':{'name':'", name, "','namespace':'default','uid':'", name,
        "'",
        owner.empty() ? "" : cat(",'ownerReferences':[{'controller':true,'uid':'", owner, "'}]"),
        "},'spec':", spec, ",'status':", status, "}"));
  }
  WhyStory workload(std::size_t index = 0) const {
    return tell_workload(*this, objects.workloads[index]);
  }
};

TEST(WhyWorkload, brings_pods_of_the_same_reason_together) {
  World world;
  world.add_node("n1");
  world.add_workload("Deployment", "web", "{'replicas':3}");
  world.add_workload("ReplicaSet", "web-1", "{'replicas':3}", "{}", "web");
  world.add_pod("web-1-a", "web-1", "{'nodeSelector':{'x':'y'}}");
  world.add_pod("web-1-b", "web-1", "{'nodeSelector':{'x':'y'}}");
  world.add_pod("web-1-c", "web-1", "{'nodeName':'n1'}", "{'phase':'Running'}");
  world.add_pod("other", "elsewhere", "{'nodeSelector':{'x':'y'}}");

  const WhyStory story = world.workload();

  EXPECT_EQ(story.status, 2);
  EXPECT_EQ(story.document["message"].as_string(), "has 2 of 3 pods waiting");
  EXPECT_THAT(story.page.text(), HasSubstr("\n2 pods: web-1-a, web-1-b\n"
                                           "  pod default/web-1-a is pending"));
  EXPECT_EQ(story.document["waiting"].size(), 1U);
}

TEST(WhyWorkload, takes_the_same_trouble_on_several_nodes_for_one) {
  World world;
  world.add_node("n1");
  world.add_node("n2");
  world.add_workload("ReplicaSet", "web", "{'replicas':3}");
  const auto crash = [&](const std::string& name, const std::string& node, const char* restarts,
                         const char* time, const char* code) {
    world.add_pod(
        name, "web", cat("{'nodeName':'", node, "'}"),
        cat("{'phase':'Running','containerStatuses':[{'name':'c','restartCount':", restarts,
            ",'state':{'waiting':{'reason':'CrashLoopBackOff'}},'lastState':{'terminated':{"
            "'exitCode':",
            code, ",'finishedAt':'", time, "'}}}]}"));
  };
  crash("web-a", "n1", "2", "2026-03-01T11:00:00Z", "3");
  crash("web-b", "n2", "4", "2026-03-01T11:07:00Z", "3");
  EXPECT_EQ(world.workload().document["message"].as_string(), "has 2 of 2 pods waiting");

  crash("web-c", "n2", "4", "2026-03-01T11:07:00Z", "5");
  EXPECT_EQ(world.workload().document["message"].as_string(),
            "has 3 of 3 pods waiting, for 2 reasons");
}

TEST(WhyWorkload, tells_what_keeps_it_from_making_pods) {
  World world;
  world.add_workload("Deployment", "web");
  world.add_workload("ReplicaSet", "web-1", "{'replicas':1}",
                     "{'conditions':[{'type':'ReplicaFailure','status':'True','reason':"
                     "'FailedCreate','message':'exceeded quota'}]}",
                     "web");
  world.add_workload("Job", "done", "{}",
                     "{'conditions':[{'type':'Failed','status':'True','reason':"
                     "'BackoffLimitExceeded','message':'too often'}]}");
  world.add_workload("Job", "later", "{'suspend':true}");
  world.add_workload("StatefulSet", "set", "{'replicas':1}");
  world.add(
      "{'kind':'Event','type':'Warning','reason':'FailedCreate','message':'denied',"
      "'lastTimestamp':'T','involvedObject':{'uid':'set'}}");

  EXPECT_THAT(world.workload(0).page.text(), HasSubstr("cannot make its pods: exceeded quota"));
  EXPECT_EQ(world.workload(2).document["reason"].as_string(), "BackoffLimitExceeded");
  EXPECT_EQ(world.workload(3).document["reason"].as_string(), "Suspended");
  EXPECT_THAT(world.workload(4).page.text(), HasSubstr("cannot make its pods: denied"));

  const WhyStory list = tell_waiting(world, "default");
  // The Deployment speaks for its ReplicaSet, and who is suspended was told to be.
  EXPECT_THAT(list.page.text(), Not(HasSubstr("replicaset")));
  EXPECT_THAT(list.page.text(), Not(HasSubstr("later")));
  EXPECT_EQ(list.document["items"].size(), 3U);
}

TEST(WhyWaiting, tells_pods_and_claims_in_one_line_each) {
  World world;
  world.add_node("n1");
  world.add_pod("stuck", "-", "{'nodeSelector':{'x':'y'}}");
  world.add_pod("fine", "-", "{'nodeName':'n1'}", "{'phase':'Running'}");
  world.add("{'kind':'ResourceClaim','metadata':{'name':'c','namespace':'default'},'spec':{}}");

  const WhyStory story = tell_waiting(world, "default");

  EXPECT_EQ(story.status, 2);
  EXPECT_EQ(
      story.page.text(),
      "claim default/c is pending: no pod uses it, and devices are given to claims of pods\n"
      "pod default/stuck is pending: the only node cannot take it: lacks the label x=y of the "
      "pod's node selector\n");
  EXPECT_EQ(tell_waiting(world, "other").page.text(), "nothing waits in namespace other\n");
  EXPECT_EQ(tell_waiting(world, "other").status, 0);
  EXPECT_EQ(tell_waiting(world, "").document["items"].size(), 2U);
}

TEST(WhyWaiting, tells_nodes_that_are_not_ready_and_drivers_that_fail) {
  World world;
  world.add_node("off", "{'unschedulable':true}");
  world.add_node("ill", "{}", "Unknown");
  world.add_slice("ill", 2);
  world.add_slice("off", 1, "well.io");
  world.add(
      "{'kind':'ResourceClaim','metadata':{'name':'c','namespace':'default'},'spec':{},'status':{"
      "'reservedFor':[{'resource':'pods','name':'p','uid':'p'}],'allocation':{'devices':{"
      "'results':[{'request':'r','driver':'lost.io','pool':'x','device':'a'}]}}}}");

  const WhyStory story = tell_waiting(world, "other");

  EXPECT_EQ(story.status, 2);
  EXPECT_EQ(story.page.text(),
            "driver gpu.io has pools that are not complete, whose devices are not given: ill (1 of "
            "2 slices of generation 1)\n"
            "driver lost.io has published no devices on any node, and 1 claim has devices of it\n"
            "node ill takes no pods: its agent is silent since  (R)\n");
  EXPECT_EQ(story.document["items"][0]["kind"].as_string(), "Node");
  EXPECT_EQ(story.document["items"][0]["namespace"].as_string(), "");

  world.objects.blind = true;
  EXPECT_EQ(tell_waiting(world, "other").document["items"].size(), 1U);
}

TEST(WhyWaiting, is_told_in_the_schedulers_words_to_who_may_not_see_nodes) {
  World world;
  world.objects.blind = true;
  world.add_pod("p", "-", "{}",
                "{'conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable',"
                "'message':'0/3 nodes are available'}]}");

  EXPECT_EQ(tell_waiting(world, "").page.text(),
            "pod default/p is pending: the scheduler says: 0/3 nodes are available\n");
}

TEST(WhyNode, tells_what_keeps_pods_away) {
  World world;
  world.add_node("well");
  world.add_node("off",
                 "{'unschedulable':true,'taints':[{'key':'a','value':'b','effect':"
                 "'NoSchedule'}]}");
  world.add_node("ill", "{}", "Unknown");
  world.add_slice("well");
  const auto node = [&](std::size_t i) { return tell_node(world, world.objects.nodes[i]); };

  EXPECT_EQ(node(0).status, 0);
  EXPECT_THAT(node(0).page.text(), HasSubstr("driver gpu.io: 2 devices in 1 slice of pool well\n"));
  EXPECT_EQ(node(1).status, 2);
  EXPECT_EQ(node(1).document["reason"].as_string(), "Cordoned");
  EXPECT_THAT(node(1).page.text(), HasSubstr("kubectl uncordon off"));
  EXPECT_THAT(node(1).page.text(), HasSubstr("takes only pods that tolerate a=b:NoSchedule"));
  EXPECT_EQ(node(2).document["reason"].as_string(), "Silent");
  EXPECT_THAT(node(2).page.text(), HasSubstr("no driver has published devices for it"));
}

TEST(WhyDriver, answers_for_its_own_failures_alone) {
  World world;
  world.add_node("n1");
  world.add_slice("n1");
  world.add(
      "{'kind':'ResourceClaim','metadata':{'name':'c','namespace':'default','uid':'c'},'spec':{},"
      "'status':{'allocation':{'devices':{'results':[{'request':'r','driver':'gpu.io','pool':'n1',"
      "'device':'a'}]}}}}");
  const char* uses = "'resourceClaims':[{'name':'c','resourceClaimName':'c'}]";
  const auto warn = [&](const char* reason, const char* message, const char* pod) {
    world.add(cat("{'kind':'Event','type':'Warning','reason':'", reason, "','message':'", message,
                  "','lastTimestamp':'2026-03-01T11:00:00Z','involvedObject':{'kind':'Pod',"
                  "'namespace':'default','name':'",
                  pod, "','uid':'", pod, "'}}"));
  };
  world.add_pod("waits", "-", cat("{", uses, "}"));
  warn("FailedScheduling", "a selector fails on device gpu.io/n1/a", "waits");
  EXPECT_EQ(tell_driver(world, "gpu.io").status, 0);

  world.add_pod("stuck", "-", cat("{'nodeName':'n1',", uses, "}"));
  warn("FailedPrepareDynamicResources", "prepare failed: out of memory", "stuck");
  const WhyStory failing = tell_driver(world, "gpu.io");
  EXPECT_EQ(failing.status, 2);
  EXPECT_THAT(failing.document["message"].str(),
              HasSubstr("fails: pod default/stuck: prepare failed: out of memory"));
}

TEST(WhyDriver, tells_where_it_is_and_which_pools_are_not_whole) {
  World world;
  world.add_node("n1");
  world.add_node("n2");
  world.add_slice("n1");

  const WhyStory whole = tell_driver(world, "gpu.io");
  EXPECT_EQ(whole.status, 0);
  EXPECT_THAT(whole.page.text(), HasSubstr("pool n1 on n1: 2 devices in 1 of 1 slice\n"));
  EXPECT_THAT(whole.page.text(), HasSubstr("nothing of it is on n2"));

  const WhyStory unknown = tell_driver(world, "gpu.oi");
  EXPECT_EQ(unknown.document["reason"].as_string(), "NothingPublished");
  EXPECT_THAT(unknown.page.text(), HasSubstr("perhaps gpu.io is meant"));

  world.add_slice("n2", 2);
  const WhyStory partial = tell_driver(world, "gpu.io");
  EXPECT_EQ(partial.status, 2);
  EXPECT_EQ(partial.document["reason"].as_string(), "IncompletePools");
  EXPECT_THAT(partial.document["message"].str(), HasSubstr("n2 (1 of 2 slices of generation 1)"));
}

TEST(WhyPod, extended_resources_of_a_class_are_told_as_devices) {
  World world;
  world.add_node("n1");
  world.add_slice("n1");
  world.add(
      "{'kind':'DeviceClass','metadata':{'name':'gpu'},'spec':{'extendedResourceName':"
      "'gpu.io/card'}}");
  const auto wants = [](const char* resource, int count) {
    return cat("{'containers':[{'name':'m','resources':{'requests':{'", resource, "':'", count,
               "'}}}]}");
  };
  world.add_pod("many", "-", wants("gpu.io/card", 3));
  world.add_pod("unknown", "-", wants("gpu.io/crad", 1));
  world.add_pod("implicit", "-", wants("deviceclass.resource.kubernetes.io/nothere", 1));
  const auto pod = [&](std::size_t i) { return tell_pod(world, world.objects.pods[i]); };

  EXPECT_THAT(pod(0).page.text(),
              HasSubstr("extended resource gpu.io/card wants 3 of 2 devices, and 2 are left"));
  EXPECT_THAT(pod(1).brief, HasSubstr("no node has gpu.io/crad, and no DeviceClass names it"));
  EXPECT_THAT(pod(1).brief, HasSubstr("(there is gpu.io/card)"));
  EXPECT_THAT(pod(2).brief, HasSubstr("DeviceClass nothere, which"));
}

TEST(WhyPod, one_placed_with_extended_resources_could_be_placed_there_again) {
  World world;
  world.add_node("n1");
  world.add_slice("n1");
  world.add(
      "{'kind':'DeviceClass','metadata':{'name':'gpu'},'spec':{'extendedResourceName':"
      "'gpu.io/card'}}");
  world.add(
      "{'kind':'ResourceClaim','metadata':{'name':'made','namespace':'default','uid':'made',"
      "'annotations':{'resource.kubernetes.io/extended-resource-claim':'true'},"
      "'ownerReferences':[{'kind':'Pod','controller':true,'uid':'p'}]},'spec':{'devices':{"
      "'requests':[{'name':'r','exactly':{'deviceClassName':'gpu','allocationMode':"
      "'ExactCount','count':1}}]}},'status':{'allocation':{'devices':{'results':[{'request':"
      "'r','driver':'gpu.io','pool':'n1','device':'a'}]}},'reservedFor':[{'resource':'pods',"
      "'name':'p','uid':'p'}]}}");
  world.add_pod("p", "-",
                "{'nodeName':'n1','containers':[{'name':'m','resources':{'requests':{"
                "'gpu.io/card':'2'}}}]}",
                "{'phase':'Running','extendedResourceClaimStatus':{'resourceClaimName':'made'},"
                "'conditions':[{'type':'PodScheduled','status':'True'}]}");

  EXPECT_THAT(tell_pod(world, world.objects.pods[0]).page.text(),
              HasSubstr("why there: it is the only node"));
}

}  // namespace
}  // namespace dibs::cli
