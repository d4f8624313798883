#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/why_story.h"
#include "json/parse.h"

namespace dibs::cli {
namespace {

using json::Value;
using testing::HasSubstr;

/// JSON with ' in place of ".
Value from_text(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *parsed : Value();
}

struct World : WhyWorld {
  World() { now = Time{}; }

  void add(const std::string& text) { objects.add(from_text(text)); }
  void add_node(const std::string& name) {
    add(cat("{'kind':'Node','metadata':{'name':'", name,
            "'},'status':{'allocatable':{'cpu':'4','memory':'8Gi','pods':'10'}}}"));
  }
  void add_gpus(const std::string& node, int count) {
    std::string list;
    for (int i = 0; i < count; ++i) append(list, i > 0 ? "," : "", "{'name':'gpu-", i, "'}");
    add(cat("{'kind':'ResourceSlice','metadata':{'name':'", node,
            "'},'spec':{'driver':'gpu.example.com','nodeName':'", node, "','pool':{'name':'", node,
            "','generation':1,'resourceSliceCount':1},'devices':[", list, "]}}"));
  }
  void add_class() {
    add("{'kind':'DeviceClass','metadata':{'name':'gpu'},'spec':{'selectors':[{'cel':"
        "{'expression':'device.driver.startsWith(\\'gpu\\')'}}]}}");
  }
  void add_claim(const std::string& name, int count, const std::string& status = "{}",
                 const std::string& metadata = "") {
    add(cat("{'kind':'ResourceClaim','metadata':{'name':'", name, "','namespace':'default','uid':'",
            name, "'", metadata,
            "},'spec':{'devices':{'requests':[{'name':'r','exactly':{'deviceClassName':'gpu',"
            "'allocationMode':'ExactCount','count':",
            count, "}}]}},'status':", status, "}"));
  }
  void add_pod(const std::string& name, const std::string& spec, const std::string& status = "{}",
               const std::string& metadata = "") {
    Value made =
        from_text(cat("{'kind':'Pod','metadata':{'name':'", name, "','namespace':'default','uid':'",
                      name, "'", metadata, "},'spec':", spec, ",'status':", status, "}"));
    if (!made["spec"].contains("schedulerName")) {
      made.mut("spec").set("schedulerName", "default-scheduler");
    }
    objects.add(made);
  }
  WhyStory pod(const std::string& name) const {
    return tell_pod(*this, *find_object(objects.pods, "default", name));
  }
  WhyStory claim(const std::string& name) const {
    return tell_claim(*this, *find_object(objects.claims, "default", name));
  }
};

constexpr const char* kUses = "{'resourceClaims':[{'name':'c','resourceClaimName':'c'}]}";
constexpr const char* kMade = "{'resourceClaims':[{'name':'c','resourceClaimTemplateName':'t'}]}";

std::string allocation(const std::string& node, const std::string& users = "[]",
                       const std::string& more = "") {
  return cat(
      "{'allocation':{'devices':{'results':[{'request':'r','driver':'gpu.example.com',"
      "'pool':'",
      node, "','device':'gpu-0'", more,
      "}]},'nodeSelector':{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name',"
      "'operator':'In','values':['",
      node, "']}]}]}},'reservedFor':", users, "}");
}

std::string first_line(const WhyStory& story) {
  return story.page.text().substr(0, story.page.text().find('\n'));
}

struct Hindered {
  std::string spec;
  std::string status;
  std::string metadata;
  std::string reason;
  std::string line;
};

TEST(WhyPod, says_plainly_what_keeps_it_from_being_tried) {
  const std::vector<Hindered> cases = {
      {"{'schedulingGates':[{'name':'example.com/g'}]}", "{}", "", "SchedulingGated",
       "is pending: it has scheduling gates: example.com/g"},
      {"{'schedulerName':'mine'}", "{}", "", "OtherScheduler",
       "is pending: it is for the scheduler \"mine\", which is not default-scheduler"},
      {"{}", "{}", ",'deletionTimestamp':'2026-01-01T00:00:00Z'", "Terminating",
       "is pending: it is being deleted"},
      {kUses, "{}", "", "ClaimMissing", "is pending: ResourceClaim c does not exist"},
      {kMade, "{}", "", "TemplateMissing", "is pending: ResourceClaimTemplate t does not exist"},
      {"{}", "{}", "", "NoNodes", "is pending: the cluster has no nodes"},
      {"{}", "{'phase':'Failed'}", "", "Failed", "has ended (Failed) without a node"},
  };
  for (const Hindered& example : cases) {
    SCOPED_TRACE(example.reason);
    World world;
    world.add_pod("p", example.spec, example.status, example.metadata);

    const WhyStory story = world.pod("p");

    EXPECT_EQ(first_line(story), cat("pod default/p ", example.line));
    EXPECT_EQ(story.document["reason"].as_string(), example.reason);
    EXPECT_EQ(story.document["message"].as_string(), example.line);
    EXPECT_EQ(story.status, example.reason == "Failed" ? 0 : 2);
  }
}

TEST(WhyPod, waits_for_the_claim_of_its_template) {
  World world;
  world.add("{'kind':'ResourceClaimTemplate','metadata':{'name':'t','namespace':'default'}}");
  world.add_pod("p", kMade);
  EXPECT_THAT(first_line(world.pod("p")), HasSubstr("the claim of template t is not created yet"));

  World taken;
  taken.add_claim("c", 1);
  taken.add_pod("p", kMade, "{'resourceClaimStatuses':[{'name':'c','resourceClaimName':'c'}]}");
  EXPECT_THAT(first_line(taken.pod("p")), HasSubstr("ResourceClaim c belongs to another pod"));
}

TEST(WhyPod, tells_what_is_missing_on_each_kind_of_node) {
  World world;
  world.add_node("n1");
  world.add_node("n2");
  world.add_gpus("n1", 1);
  world.add_class();
  world.add_claim("c", 2);
  world.add_pod("p", kUses);

  const WhyStory story = world.pod("p");

  EXPECT_EQ(story.status, 2);
  EXPECT_EQ(story.page.text(),
            "pod default/p is pending: none of 2 nodes can take it\n"
            "\n"
            "1 node: n1\n"
            "  request r of claim default/c wants 2 of 1 device, and 1 is left\n"
            "\n"
            "1 node: n2\n"
            "  request r of claim default/c wants 2 devices, and the node has none\n"
            "\n"
            "what would help, cheapest first\n"
            "  - ask for 1 device in request r of claim default/c (1 node: n1)\n");
  const Value& placement = story.document["placement"];
  EXPECT_EQ(placement["nodes"].as_int(), 2);
  EXPECT_EQ(placement["groups"][0]["devices"]["requests"][0]["left"].as_int(), 1);
  EXPECT_EQ(placement["fixes"][0]["nodes"][0].as_string(), "n1");
}

TEST(WhyPod, that_could_be_placed_waits_for_the_scheduler) {
  World world;
  world.add_node("n1");
  world.add_pod("p", "{}",
                "{'conditions':[{'type':'PodScheduled','status':'False','message':'0/0 nodes'}]}");

  const WhyStory story = world.pod("p");

  EXPECT_EQ(story.document["reason"].as_string(), "NotTriedYet");
  EXPECT_THAT(story.page.text(), HasSubstr("best first: n1"));
  EXPECT_THAT(story.page.text(), HasSubstr("its last attempt said: 0/0 nodes"));
}

TEST(WhyPod, waits_for_devices_to_be_ready) {
  World world;
  world.add_node("n1");
  world.add_gpus("n1", 1);
  world.add_class();
  world.add_claim("c", 1,
                  allocation("n1", "[{'resource':'pods','name':'p','uid':'p'}]",
                             ",'bindingConditions':['attached']"));
  world.add_pod("p", kUses);

  const WhyStory story = world.pod("p");

  EXPECT_EQ(story.status, 2);
  EXPECT_EQ(story.document["reason"].as_string(), "BindingConditions");
  EXPECT_THAT(missing_conditions(world.objects.claims[0]),
              testing::ElementsAre("device gpu-0 waits for the condition attached"));
}

TEST(WhyPod, tells_why_it_is_where_it_is) {
  World world;
  world.add_node("n1");
  world.add_node("n2");
  world.add_gpus("n1", 1);
  world.add_class();
  world.add_claim("c", 1, allocation("n1", "[{'resource':'pods','name':'p','uid':'p'}]"));
  world.add_pod("p", "{'nodeName':'n1','resourceClaims':[{'name':'c','resourceClaimName':'c'}]}",
                "{'conditions':[{'type':'PodScheduled','status':'True',"
                "'lastTransitionTime':'2026-01-01T00:00:00Z'}]}");

  const WhyStory story = world.pod("p");

  EXPECT_EQ(story.status, 0);
  EXPECT_EQ(story.document["state"].as_string(), "Placed");
  EXPECT_EQ(first_line(story), "pod default/p is on n1 since 2026-01-01T00:00:00Z");
  EXPECT_THAT(story.page.text(), HasSubstr("request r: gpu-0 of pool n1 (gpu.example.com)"));
  EXPECT_THAT(story.page.text(), HasSubstr("class gpu: device.driver.startsWith"));
  EXPECT_THAT(story.page.text(),
              HasSubstr("why there: of 2 nodes no other can take it as things are now"));
}

TEST(WhyClaim, tells_who_has_it) {
  World world;
  world.add_node("n1");
  world.add_class();
  world.add_claim("c", 1, allocation("n1", "[{'resource':'pods','name':'p','uid':'p'}]"));
  world.add_claim("free", 1, allocation("n1"));
  world.add_claim("gone", 1, allocation("n1"), ",'deletionTimestamp':'2026-01-01T00:00:00Z'");
  world.add_pod("p", "{'nodeName':'n1'}");

  EXPECT_EQ(world.claim("c").status, 0);
  EXPECT_EQ(first_line(world.claim("c")), "claim default/c has 1 device on n1");
  EXPECT_THAT(world.claim("c").page.text(), HasSubstr("reserved for pod p (on n1)"));
  EXPECT_EQ(first_line(world.claim("free")),
            "claim default/free has 1 device on n1, and nobody uses it");
  EXPECT_EQ(world.claim("gone").document["reason"].as_string(), "Deleting");
}

TEST(WhyClaim, of_the_classic_model_is_its_drivers_affair) {
  World world;
  world.add_node("n1");
  world.add(
      "{'kind':'ResourceClaim','metadata':{'name':'c','namespace':'default'},'spec':{"
      "'resourceClassName':'old'}}");
  world.add(
      "{'kind':'ResourceClaim','metadata':{'name':'d','namespace':'default'},'spec':{"
      "'resourceClassName':'old'},'status':{'driverName':'d.example.com','allocation':{},"
      "'deallocationRequested':true}}");
  world.add_pod("p", kUses);

  EXPECT_EQ(first_line(world.pod("p")),
            "pod default/p is pending: claim c is of ResourceClass old, which does not exist");
  EXPECT_EQ(
      first_line(world.claim("d")),
      "claim default/d is served by driver d.example.com on any node, and is to be given back");
  EXPECT_EQ(world.claim("d").document["reason"].as_string(), "Deallocating");
}

/// Three nodes, and a class whose driver allocates.
struct ClassicWorld : World {
  ClassicWorld() {
    for (const char* name : {"n1", "n2", "n3"}) add_node(name);
    add("{'kind':'ResourceClass','apiVersion':'resource.k8s.io/"
        "v1alpha2','metadata':{'name':'cats'},"
        "'driverName':'cats.example.com'}");
  }
  void add_classic(const std::string& name, const std::string& status = "{}",
                   const std::string& mode = "WaitForFirstConsumer") {
    add(cat("{'kind':'ResourceClaim','apiVersion':'resource.k8s.io/v1alpha2','metadata':{'name':'",
            name, "','namespace':'default'},'spec':{'resourceClassName':'cats','allocationMode':'",
            mode, "'},'status':", status, "}"));
  }
  void add_context(const std::string& spec, const std::string& answers,
                   const std::string& owner = "p") {
    add(
        cat("{'kind':'PodSchedulingContext','apiVersion':'resource.k8s.io/v1alpha2','metadata':{"
            "'name':'p','namespace':'default','uid':'x','ownerReferences':[{'uid':'",
            owner, "'}]},'spec':", spec, ",'status':{'resourceClaims':[", answers, "]}}"));
  }
};

constexpr const char* kUsesTwo =
    "{'resourceClaims':[{'name':'c','source':{'resourceClaimName':'c'}},{'name':'d',"
    "'resourceClaimName':'d'}]}";

TEST(WhyClassic, names_the_driver_that_has_not_answered) {
  ClassicWorld world;
  for (const char* name : {"c", "d"}) world.add_classic(name);
  world.add_context("{'potentialNodes':['n1','n2','n3']}", "{'name':'c','unsuitableNodes':['n2']}");
  world.add_pod("p", kUsesTwo);

  const WhyStory told = world.pod("p");

  EXPECT_EQ(told.status, 2);
  EXPECT_EQ(told.document["reason"].as_string(), "DriverNotAnswered");
  EXPECT_EQ(first_line(told),
            "pod default/p is pending: it is not said yet which nodes would do: claim d (driver "
            "cats.example.com)");
  EXPECT_THAT(told.page.text(),
              HasSubstr("proposed to its drivers: 3 nodes: n1, n2, n3; none is selected yet\n"
                        "  claim c (driver cats.example.com): refuses 1 node: n2\n"
                        "  claim d (driver cats.example.com): no answer\n"
                        "  does the controller of driver cats.example.com run?"));
  EXPECT_THAT(told.page.text(),
              HasSubstr("1 node: n2\n  claim default/c cannot be allocated there, says driver "
                        "cats.example.com"));
  EXPECT_EQ(json::write(told.document["drivers"]["claims"][0]["refusedNodes"]), "[\"n2\"]");
}

TEST(WhyClassic, tells_which_named_resources_a_claim_lacks) {
  World world;
  for (const char* name : {"n1", "n2"}) world.add_node(name);
  world.add(
      "{'kind':'ResourceClass','apiVersion':'resource.k8s.io/v1alpha2','metadata':{'name':'cats'},"
      "'driverName':'cats.example.com','structuredParameters':true}");
  world.add(
      "{'kind':'ResourceSlice','apiVersion':'resource.k8s.io/v1alpha2','metadata':{'name':'s'},"
      "'nodeName':'n1','driverName':'cats.example.com','namedResources':{'instances':[{'name':'a',"
      "'attributes':[{'name':'size','int':1}]},{'name':'b','attributes':[{'name':'size','int':3}]}"
      "]}}");
  world.add(
      "{'kind':'ResourceClaim','apiVersion':'resource.k8s.io/v1alpha2','metadata':{'name':'other',"
      "'namespace':'default'},'spec':{'resourceClassName':'cats'},'status':{'allocation':{"
      "'resourceHandles':[{'driverName':'cats.example.com','structuredData':{'nodeName':'n1',"
      "'results':[{'namedResources':{'name':'b'}}]}}]}}}");
  world.add(
      "{'kind':'ResourceClaim','apiVersion':'resource.k8s.io/v1alpha2','metadata':{'name':'c',"
      "'namespace':'default'},'spec':{'resourceClassName':'cats','parametersRef':{'apiGroup':"
      "'resource.k8s.io','kind':'ResourceClaimParameters','name':'big'}}}");
  world.add_pod("p", kUses);
  EXPECT_THAT(world.pod("p").page.text(), HasSubstr("claim parameters default/big not found"));

  world.add(
      "{'kind':'ResourceClaimParameters','metadata':{'name':'big','namespace':'default'},"
      "'driverRequests':[{'driverName':'cats.example.com','requests':[{'namedResources':{"
      "'selector':'attributes.int.size > 2'}}]}]}");
  const WhyStory told = world.pod("p");

  EXPECT_EQ(told.document["reason"].as_string(), "Unschedulable");
  EXPECT_THAT(told.page.text(),
              HasSubstr("request cats.example.com of claim default/c wants 1 of 2 devices, and "
                        "none is left"));
  EXPECT_THAT(told.page.text(),
              HasSubstr("1 does not match the request (attributes.int.size > 2)"));
  EXPECT_THAT(told.page.text(),
              HasSubstr("wait until 1 device in use is given back by claim default/other"));
}

TEST(WhyClassic, tells_that_an_allocation_is_asked_for) {
  ClassicWorld world;
  world.add_classic("c");
  world.add_context("{'potentialNodes':['n1','n2'],'selectedNode':'n2'}", "{'name':'c'}");
  world.add_pod("p", kUses);

  const WhyStory told = world.pod("p");

  EXPECT_EQ(told.document["reason"].as_string(), "DriverNotAllocated");
  EXPECT_THAT(told.document["message"].str(),
              HasSubstr("allocation on node n2 is asked for and not done yet: claim c (driver "
                        "cats.example.com)"));
  EXPECT_THAT(told.page.text(), HasSubstr("2 nodes: n1, n2; selected: n2"));
  EXPECT_EQ(told.document["drivers"]["selectedNode"].as_string(), "n2");
}

TEST(WhyClassic, tells_what_the_driver_refuses_and_what_would_help) {
  ClassicWorld world;
  world.add_classic("c");
  world.add_context("{'potentialNodes':['n1','n2','n3'],'selectedNode':'n1'}",
                    "{'name':'c','unsuitableNodes':['n1','n2','n3']}");
  world.add_pod("p", kUses);

  const WhyStory told = world.pod("p");

  EXPECT_EQ(told.document["reason"].as_string(), "Unschedulable");
  EXPECT_THAT(told.page.text(), HasSubstr("refuses 3 nodes: n1, n2, n3"));
  EXPECT_THAT(
      told.page.text(),
      HasSubstr("- wait until claim default/c can be allocated there: its driver says when"));
}

TEST(WhyClassic, tells_what_is_wrong_with_the_claim) {
  struct Case {
    const char* status;
    const char* mode;
    const char* reason;
    const char* text;
  };
  const Case cases[] = {
      {"{}", "Immediate", "DriverNotAllocated",
       "is pending: claim c is to be allocated at once, and driver cats.example.com has not done "
       "so: does its controller run? Its events are on the claim"},
      {"{'driverName':'cats.example.com','allocation':{},'deallocationRequested':true}",
       "WaitForFirstConsumer", "Deallocating",
       "is pending: claim c has to be allocated anew, and driver cats.example.com has not given it "
       "back yet"},
      {"{'driverName':'cats.example.com','allocation':{},'reservedFor':[{'resource':'pods','name':"
       "'q','uid':'q'}]}",
       "WaitForFirstConsumer", "ClaimInUse",
       "is pending: claim c cannot be shared, and is in use by pod q (which is gone)"},
  };
  for (const Case& one : cases) {
    ClassicWorld world;
    world.add_classic("c", one.status, one.mode);
    world.add_pod("p", kUses);
    const WhyStory told = world.pod("p");
    EXPECT_EQ(told.document["reason"].as_string(), one.reason);
    EXPECT_EQ(told.document["message"].as_string(), one.text);
  }
  ClassicWorld world;
  world.add_classic("c");
  world.add_context("{}", "", "another");
  world.add_pod("p", kUses);
  EXPECT_EQ(world.pod("p").document["reason"].as_string(), "ContextNotOwned");
}

TEST(WhyClassic, tells_of_claims_without_pods) {
  ClassicWorld world;
  world.add_classic("c");
  world.add_classic("now", "{}", "Immediate");
  EXPECT_EQ(world.claim("c").document["message"].as_string(),
            "is pending: no pod uses it, and driver cats.example.com allocates it for the first");
  EXPECT_EQ(world.claim("now").document["reason"].as_string(), "DriverNotAllocated");
}

TEST(WhyClaim, is_pending_without_a_pod_or_with_it) {
  World world;
  world.add_node("n1");
  world.add_gpus("n1", 1);
  world.add_class();
  world.add_claim("alone", 1);
  world.add_claim("c", 2);
  world.add_pod("p", kUses);

  const WhyStory alone = world.claim("alone");
  EXPECT_EQ(alone.status, 2);
  EXPECT_EQ(alone.document["reason"].as_string(), "NoPod");
  EXPECT_THAT(alone.page.text(), HasSubstr("were a pod to use it now, 1 of 1 node could serve it"));

  const WhyStory used = world.claim("c");
  EXPECT_EQ(used.document["reason"].as_string(), "PodPending");
  EXPECT_THAT(used.page.text(), HasSubstr("pod default/p is pending: the only node cannot"));
  EXPECT_EQ(used.document["pods"][0]["name"].as_string(), "p");
}

TEST(WhyPod, repeats_what_its_drivers_said_last) {
  World world;
  world.add_node("node-1");
  world.add_pod("p", kUses);
  world.add_claim("c", 1);
  const auto event = [&](const char* about, const char* reason, const char* message,
                         const char* speaker, const char* time, const char* type = "Warning") {
    world.add(cat("{'kind':'Event','type':'", type, "','reason':'", reason, "','message':'",
                  message, "','involvedObject':{'uid':'", about, "'},'source':{'component':'",
                  speaker, "'},'lastTimestamp':'", time, "'}"));
  };
  const char* net = "resource driver net.example.com";
  event("p", "UnsuitableNodes", "node-1: no interface eth1", net, "2026-01-01T00:00:01Z");
  event("p", "UnsuitableNodes", "node-1: no interface eth2", net, "2026-01-01T00:00:02Z");
  event("c", "NetworkNotFound", "there is no network a/b", net, "2026-01-01T00:00:03Z");
  event("p", "FailedScheduling", "of the scheduler", "default-scheduler", "2026-01-01T00:00:04Z");
  event("other", "UnsuitableNodes", "of another pod", net, "2026-01-01T00:00:05Z");
  event("p", "Fine", "no warning", net, "2026-01-01T00:00:06Z", "Normal");

  const WhyStory story = world.pod("p");
  EXPECT_THAT(story.page.text(),
              HasSubstr("what its drivers have said last\n"
                        "  net.example.com (NetworkNotFound, 2026-01-01T00:00:03Z): there is no "
                        "network a/b\n"
                        "  net.example.com (UnsuitableNodes, 2026-01-01T00:00:02Z): node-1: no "
                        "interface eth2\n"));
  EXPECT_THAT(story.page.text(), testing::Not(HasSubstr("of the scheduler")));
  EXPECT_THAT(story.page.text(), testing::Not(HasSubstr("of another pod")));
  ASSERT_EQ(story.document["driverEvents"].size(), 2u);
  EXPECT_EQ(story.document["driverEvents"][1]["message"], "node-1: no interface eth2");
}

struct Tree : World {
  Tree() { add_node("n"); }
  void add_composite(const std::string& name, int count, const std::string& parent = "") {
    add(cat("{'kind':'CompositePodGroup','metadata':{'name':'", name,
            "','namespace':'default'},'spec':{'schedulingPolicy':{'gang':{'minGroupCount':", count,
            "}}", above(parent), "}}"));
  }
  void add_group(const std::string& name, int count, const std::string& parent) {
    add(cat("{'kind':'PodGroup','metadata':{'name':'", name,
            "','namespace':'default'},'spec':{'schedulingPolicy':{'gang':{'minCount':", count, "}}",
            above(parent), "}}"));
  }
  void add_member(const std::string& name, const std::string& group, int cpu = 1) {
    add_pod(name,
            cat("{'schedulingGroup':{'podGroupName':'", group,
                "'},'containers':[{'name':'c','resources':{'requests':{'cpu':'", cpu, "'}}}]}"));
  }
  static std::string above(const std::string& parent) {
    return parent.empty() ? "" : cat(",'parentCompositePodGroupName':'", parent, "'");
  }
};

TEST(WhyPod, of_a_tree_of_groups_says_what_the_tree_lacks) {
  Tree world;
  world.add_composite("top", 2);
  world.add_group("left", 2, "top");
  world.add_group("right", 1, "top");
  world.add_member("l", "left");
  world.add_member("r", "right");
  EXPECT_THAT(world.pod("r").document["message"].str(),
              HasSubstr("its PodGroup right is part of the tree top, which is not complete: top "
                        "needs 2 groups, and 1 is complete; left needs 2 pods, and 1 is there"));

  Tree alone;
  alone.add_composite("middle", 1, "top");
  alone.add_group("left", 1, "middle");
  alone.add_member("l", "left");
  EXPECT_THAT(alone.pod("l").document["message"].str(),
              HasSubstr("the CompositePodGroup top above its CompositePodGroup middle does not "
                        "exist"));

  Tree circle;
  circle.add_composite("a", 1, "b");
  circle.add_composite("b", 1, "a");
  circle.add_group("left", 1, "a");
  circle.add_member("l", "left");
  EXPECT_THAT(circle.pod("l").document["message"].str(), HasSubstr("cycle detected"));
}

TEST(WhyPod, of_a_tree_of_groups_says_which_group_does_not_fit) {
  Tree world;
  world.add_composite("top", 2);
  world.add_group("left", 1, "top");
  world.add_group("right", 2, "top");
  world.add_member("l", "left", 2);
  world.add_member("r1", "right", 2);
  world.add_member("r2", "right", 2);

  const WhyStory story = world.pod("l");

  EXPECT_EQ(story.document["reason"].as_string(), "GangUnschedulable");
  EXPECT_THAT(story.page.text(),
              HasSubstr("of its tree top 2 groups have to be placed together; 1 can be"));
  EXPECT_THAT(story.page.text(), HasSubstr("group right: minCount (2) cannot be satisfied: 1 "
                                           "scheduled, 0 remaining"));
  EXPECT_EQ(story.document["group"]["minGroupCount"].as_int(), 2);
}

TEST(WhyPage, keeps_to_its_columns) {
  WhyPage page;
  page.line(2, std::string(60, 'a') + " " + std::string(60, 'b') + " " + std::string(120, 'c'));
  EXPECT_EQ(page.text(), cat("  ", std::string(60, 'a'), "\n      ", std::string(60, 'b'),
                             "\n      ", std::string(120, 'c'), "\n"));
}

}  // namespace
}  // namespace dibs::cli
