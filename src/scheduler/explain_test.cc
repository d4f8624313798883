#include "scheduler/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "scheduler/test_cluster.h"

namespace dibs::scheduler {
namespace {

using test::from_text;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A cluster of objects, without a server.
struct World {
  ClusterState state;
  Devices devices{alloc::Features::all(), [] { return std::string("share"); }};
  Profile profile = Profile::standard();

  void node(const std::string& name, const std::string& spec = "{}",
            const std::string& labels = "{}") {
    state.put_node(
        from_text(cat("{'metadata':{'name':'", name, "','labels':", labels, "},'spec':", spec,
                      ",'status':{'allocatable':{'cpu':'4','memory':'8Gi','pods':'10'}}}")));
  }
  /// Devices d0, d1, …; `taint` of the last one.
  void slice(const std::string& node, int count, const std::string& taint = "") {
    std::string list;
    for (int i = 0; i < count; ++i) {
      append(list, i > 0 ? "," : "", "{'name':'d", i, "','attributes':{'i':{'int':", i, "}}");
      if (!taint.empty() && i + 1 == count) {
        append(list, ",'taints':[{'key':'", taint, "','effect':'NoSchedule'}]");
      }
      append(list, "}");
    }
    devices.put_slice(
        from_text(cat("{'metadata':{'name':'", node, "'},'spec':{'driver':'x','nodeName':'", node,
                      "','pool':{'name':'", node,
                      "','generation':1,'resourceSliceCount':1},'devices':[", list, "]}}")));
  }
  void device_class(const std::string& name, const std::string& expression) {
    devices.put_class(
        from_text(cat("{'metadata':{'name':'", name,
                      "'},'spec':{'selectors':[{'cel':{'expression':'", expression, "'}}]}}")));
  }
  void claim(const std::string& name, int count, const std::string& status = "{}",
             const std::string& more = "", const std::string& of = "any") {
    devices.put_claim(from_text(
        cat("{'metadata':{'name':'", name, "','namespace':'ns','uid':'", name,
            "','resourceVersion':'1'},'spec':{'devices':{'requests':[{'name':'r','exactly':"
            "{'deviceClassName':'",
            of, "','allocationMode':'ExactCount','count':", count, more, "}}]}},'status':", status,
            "}")));
  }
  static PodPtr pod(const std::string& spec = "{}", const std::string& resources = "{}") {
    json::Value made = from_text("{'metadata':{'name':'p','namespace':'ns','uid':'p'}}");
    made.set("spec", from_text(spec));
    made.mut("spec").set("containers",
                         from_text(cat("[{'name':'c','resources':{'requests':", resources, "}}]")));
    return Pod::read(made);
  }
  static PodPtr with_claim(const std::string& claim) {
    return pod(cat("{'resourceClaims':[{'name':'c','resourceClaimName':'", claim, "'}]}"));
  }
  Explanation explain(const PodPtr& pod) {
    return explain_placement(state, devices, pod, profile, Time{});
  }
};

std::vector<std::string> changes(const Explanation& explanation) {
  std::vector<std::string> made;
  for (const Fix& fix : explanation.fixes) made.push_back(fix.text());
  return made;
}

TEST(Explain, puts_equal_nodes_into_one_group) {
  World world;
  world.node("a");
  world.node("b");
  world.node("c", "{'unschedulable':true}");

  const Explanation found = world.explain(World::pod("{}", "{'cpu':'6'}"));

  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_THAT(found.groups[0].nodes, ElementsAre("a", "b"));
  EXPECT_THAT(describe(found.groups[0], found), ElementsAre("cpu: 6 wanted, at most 4 of 4 left"));
  // Every filter is asked, not just the first that says no.
  EXPECT_THAT(describe(found.groups[1], found),
              ElementsAre("cordoned (spec.unschedulable)", "cpu: 6 wanted, at most 4 of 4 left"));
  EXPECT_THAT(changes(found), ElementsAre("ask for no more than 4 cpu"));
}

TEST(Explain, tells_what_took_devices_away_and_what_would_help) {
  World world;
  world.device_class("any", "device.driver == \\\"x\\\"");
  world.node("a");
  world.node("b");
  world.slice("a", 3, "ill");
  world.slice("b", 3, "ill");
  world.claim("taken", 1,
              "{'allocation':{'devices':{'results':[{'request':'r','driver':'x','pool':'a',"
              "'device':'d0'}]}},'reservedFor':[{'resource':'pods','name':'q','uid':'q'}]}");
  world.claim("c", 3);

  const Explanation found = world.explain(World::with_claim("c"));

  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_THAT(describe(found.groups[0], found),
              ElementsAre("request r of claim ns/c wants 3 of 3 devices, and 1 is left",
                          "  1 is in use", "  1 has the taint ill, which is not tolerated"));
  EXPECT_THAT(changes(found), ElementsAre("tolerate the taint ill in request r of claim ns/c",
                                          "ask for 2 devices in request r of claim ns/c"));
  EXPECT_THAT(found.fixes[0].nodes, ElementsAre("b"));
}

TEST(Explain, names_who_has_the_devices) {
  World world;
  world.device_class("any", "true");
  world.node("a");
  world.slice("a", 1);
  world.claim("taken", 1,
              "{'allocation':{'devices':{'results':[{'request':'r','driver':'x','pool':'a',"
              "'device':'d0'}]}},'reservedFor':[{'resource':'pods','name':'q','uid':'q'}]}");
  world.claim("c", 1);

  EXPECT_THAT(changes(world.explain(World::with_claim("c"))),
              ElementsAre("wait until 1 device in use is given back by claim ns/taken (pod q)"));
}

TEST(Explain, says_so_when_no_device_is_of_the_class) {
  World world;
  world.device_class("none", "device.driver == \\\"y\\\"");
  world.node("a");
  world.slice("a", 2);
  world.claim("c", 1, "{}", "", "none");

  const Explanation found = world.explain(World::with_claim("c"));

  EXPECT_THAT(found.empty_classes, ElementsAre("none"));
  EXPECT_THAT(found.fixes, IsEmpty());
  EXPECT_THAT(summary(found), HasSubstr("No device is of class none"));
}

TEST(Explain, faults_are_grouped_by_what_is_wrong) {
  World world;
  world.device_class("any", "true");
  world.node("a");
  world.node("b");
  world.slice("a", 2);
  world.slice("b", 2);
  world.claim("c", 1, "{}",
              ",'selectors':[{'cel':{'expression':'device.attributes[\\\"x\\\"].z == 1'}}]");

  const Explanation found = world.explain(World::with_claim("c"));

  ASSERT_EQ(found.groups.size(), 1U);
  EXPECT_THAT(found.groups[0].nodes, ElementsAre("a", "b"));
  EXPECT_THAT(describe(found.groups[0], found)[0], HasSubstr("no such key: z"));
}

TEST(Explain, a_selector_that_fails_on_one_node_keeps_the_pod_from_all) {
  World world;
  world.device_class("any", "true");
  world.node("a");
  world.node("b");
  world.slice("a", 2);
  world.devices.put_slice(
      from_text("{'metadata':{'name':'b'},'spec':{'driver':'x','nodeName':'b','pool':{'name':'b',"
                "'generation':1,'resourceSliceCount':1},'devices':[{'name':'d0'}]}}"));
  world.claim("c", 1, "{}",
              ",'selectors':[{'cel':{'expression':'device.attributes[\\\"x\\\"].i >= 0'}}]");

  const Explanation found = world.explain(World::with_claim("c"));

  EXPECT_THAT(found.able, IsEmpty());
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_THAT(found.groups[0].nodes, ElementsAre("a"));
  EXPECT_THAT(describe(found.groups[0], found)[0],
              HasSubstr("the pod waits because of node b: claim ns/c: selector #0"));
  EXPECT_THAT(found.groups[1].nodes, ElementsAre("b"));
  ASSERT_FALSE(found.fixes.empty());
  EXPECT_THAT(found.fixes[0].text(), HasSubstr("device that its selector fails on"));
}

TEST(Explain, a_claim_with_devices_elsewhere_stands_in_the_way) {
  World world;
  world.device_class("any", "true");
  world.node("a");
  world.claim("c", 1,
              "{'allocation':{'devices':{'results':[{'request':'r','driver':'x','pool':'b',"
              "'device':'d0'}]},'nodeSelector':{'nodeSelectorTerms':[{'matchFields':[{'key':"
              "'metadata.name','operator':'In','values':['b']}]}]}}}");

  const Explanation found = world.explain(World::with_claim("c"));

  ASSERT_EQ(found.groups.size(), 1U);
  EXPECT_THAT(describe(found.groups[0], found),
              ElementsAre("claim ns/c has its devices on other nodes"));
}

TEST(Explain, ranks_the_nodes_that_can_take_the_pod) {
  World world;
  world.node("full");
  world.node("empty");
  world.state.add_pod(
      Pod::read(from_text("{'metadata':{'name':'q','namespace':'ns','uid':'q'},'spec':{"
                          "'containers':[{'name':'c','resources':{'requests':{'cpu':'3'}}}]}}")),
      "full");

  const Explanation found = world.explain(World::pod("{}", "{'cpu':'1'}"));

  ASSERT_EQ(found.able.size(), 2U);
  EXPECT_EQ(found.able[0].name, "empty");
  EXPECT_GT(found.able[0].score, found.able[1].score);
  EXPECT_EQ(to_json(found)["feasible"][0]["node"].as_string(), "empty");
}

TEST(Explain, says_what_is_missing_whatever_the_node) {
  World world;
  world.node("a");
  world.claim("c", 1, "{}", "", "nowhere");

  EXPECT_EQ(world.explain(World::with_claim("c")).obstacle(),
            "request r: device class nowhere does not exist");
  EXPECT_EQ(summary(world.explain(World::with_claim("d"))),
            "could not find ResourceClaim \"ns/d\"");

  for (PluginSet& on : world.profile.plugins) on &= ~bit(Plugin::dynamic_resources);
  EXPECT_FALSE(world.explain(World::with_claim("c")).devices_enabled);
}

TEST(Explain, an_event_is_written_when_asked_for) {
  Options options;
  options.explain_events = true;
  test::TestCluster cluster(options);
  cluster.add_node("n1");
  cluster.add_class();
  cluster.add_devices("n1", 1);
  cluster.add_claim("c", 2);
  cluster.add_claim_pod("p", "c");
  cluster.settle();

  EXPECT_THAT(cluster.events("p"),
              testing::Contains("Normal Explained 1 node: n1: request d of claim default/c wants 2 "
                                "of 1 device, and 1 is left. Would help: ask for 1 device in "
                                "request d of claim default/c (1 node: n1)"));

  test::TestCluster quiet;
  quiet.add_node("n1", "{'cpu':'1','memory':'1Gi','pods':'10'}");
  quiet.add_pod("p", "{}", "{'requests':{'cpu':'2'}}");
  quiet.settle();
  EXPECT_THAT(quiet.events("p"), testing::Each(testing::Not(HasSubstr("Explained"))));
}

TEST(Explain, an_event_names_no_claim_of_another_namespace) {
  Options options;
  options.explain_events = true;
  test::TestCluster cluster(options);
  cluster.add_node("n1");
  cluster.add_class();
  cluster.add_devices("n1", 1);
  const client::Gvr claims = {"resource.k8s.io", "v1", "resourceclaims"};
  cluster.create(claims, "kube-system",
                 "{'metadata':{'name':'secret'},'spec':{'devices':{'requests':[{'name':'d',"
                 "'exactly':{'deviceClassName':'gpu'}}]}}}");
  cluster.patch(claims, "kube-system", "secret",
                "{'status':{'allocation':{'devices':{'results':[{'request':'d','driver':"
                "'gpu.example.com','pool':'n1','device':'gpu-0'}]}}}}",
                "status");
  cluster.add_claim("c");
  cluster.add_claim_pod("p", "c");
  cluster.settle();

  EXPECT_THAT(cluster.events("p"),
              testing::AllOf(testing::Contains(HasSubstr("by claims of other namespaces")),
                             testing::Not(testing::Contains(HasSubstr("secret")))));
}

TEST(Explain, events_of_many_do_not_keep_the_scheduler) {
  Options options;
  options.explain_events = true;
  test::TestCluster cluster(options);
  cluster.add_node("n1", "{'cpu':'1','memory':'1Gi','pods':'1000'}");
  constexpr int kMany = 80;
  for (int i = 0; i < kMany; ++i) {
    cluster.add_pod(cat("p", i), "{}", "{'requests':{'cpu':'2'}}");
  }
  cluster.settle();

  int told = 0;
  for (int i = 0; i < kMany; ++i) {
    for (const std::string& event : cluster.events(cat("p", i))) {
      told += event.find("Explained") != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_EQ(told, 50);
}

}  // namespace
}  // namespace dibs::scheduler
