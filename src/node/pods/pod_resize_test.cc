#include "node/pods/pod_resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/pods/pod_test_node.h"

namespace dibs::node {
namespace {

using json::Value;
using json::test::from_text;
using node::test::kPodResource;
using node::test::TestNode;
using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;

const client::Gvr kNodes{"", "v1", "nodes"};

/// A node with 4 processors and 8 GiB, and pods that change what they ask for.
class Resizing : public testing::Test {
 protected:
  Resizing() {
    node.node_object = from_text(
        "{'metadata': {'name': 'node-0'}, 'status': {'allocatable': {'cpu': '4', 'memory': '8Gi', "
        "'pods': '110'}}}");
    // What the server knows of it: more than enough.
    Value node_there = from_text("{'metadata': {'name': 'node-0'}}");
    EXPECT_TRUE(node.api->create(kNodes, "", node_there));
    node.TestCluster::patch(
        kNodes, "", "node-0",
        "{'status': {'allocatable': {'cpu': '99', 'memory': '99Gi'}, 'declaredFeatures': "
        "['InPlacePodLevelResourcesVerticalScaling']}}",
        "status");
  }

  void resize(const std::string& name, const std::string& spec) {
    client::WriteOptions options;
    options.subresource = "resize";
    const auto patched =
        node.api->patch(kPodResource, "default", name, client::PatchType::strategic,
                        from_text(cat("{'spec': {", spec, "}}")), options);
    ASSERT_TRUE(patched) << patched.error().message();
    node.settle();
  }
  void resize_container(const std::string& name, const std::string& resources) {
    resize(name, cat("'containers': [{'name': 'c', 'resources': {", resources, "}}]"));
  }
  Value container(const std::string& name) {
    return node.pod(name)["status"]["containerStatuses"][0];
  }
  int restarts(const std::string& name) {
    return static_cast<int>(container(name)["restartCount"].as_int());
  }

  TestNode node;
};

TEST_F(Resizing, gives_a_running_container_more_without_a_restart) {
  node.create("a",
              "'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '1'}, 'limits': "
              "{'cpu': '2', 'memory': '1Gi'}}}]");
  node.settle();

  resize_container("a", "'requests': {'cpu': '2'}, 'limits': {'cpu': '3', 'memory': '2Gi'}");

  const Value status = container("a");
  EXPECT_EQ(status["resources"]["limits"]["memory"].str(), "2Gi");
  EXPECT_EQ(status["allocatedResources"]["cpu"].str(), "2");
  EXPECT_EQ(restarts("a"), 0);
  EXPECT_EQ(node.condition("a", "PodResizePending"), "");
  EXPECT_EQ(node.condition("a", "PodResizeInProgress"), "");
  EXPECT_EQ(node.pod("a")["status"]["resources"]["limits"]["cpu"].str(), "3");
  EXPECT_EQ(node.pod("a")["status"]["observedGeneration"], node.pod("a")["metadata"]["generation"]);
  // What grows does so from the outside in.
  EXPECT_THAT(node.machine.log, Contains("update pod a 2048 2147483648"));
  EXPECT_EQ(node.machine.log.back(), "update c 2048 2147483648");
  EXPECT_THAT(node.events("a"), Contains(HasSubstr("Normal ResizeStarted: Pod resize started: {")));
  EXPECT_THAT(node.events("a"),
              Contains(HasSubstr("Normal ResizeCompleted: Pod resize completed")));
}

TEST_F(Resizing, shrinks_containers_before_their_pod) {
  node.create(
      "a",
      "'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '2', 'memory': '2Gi'}, "
      "'limits': {'cpu': '3', 'memory': '2Gi'}}}]");
  node.settle();

  resize_container("a",
                   "'requests': {'cpu': '1', 'memory': '1Gi'}, 'limits': {'cpu': '2', 'memory': "
                   "'1Gi'}");

  const auto& log = node.machine.log;
  const auto inner = std::find(log.begin(), log.end(), "update c 1024 1073741824");
  const auto outer = std::find(log.begin(), log.end(), "update pod a 1024 1073741824");
  ASSERT_NE(inner, log.end());
  ASSERT_NE(outer, log.end());
  EXPECT_LT(inner, outer);
}

TEST_F(Resizing, starts_a_container_anew_where_its_policy_says_so) {
  node.create("a",
              "'containers': [{'name': 'c', 'resizePolicy': [{'resourceName': 'memory', "
              "'restartPolicy': 'RestartContainer'}], 'resources': {'limits': {'cpu': '1', "
              "'memory': '1Gi'}}}]");
  node.settle();

  resize_container("a",
                   "'requests': {'cpu': '2', 'memory': '1Gi'}, 'limits': {'cpu': '2', 'memory': "
                   "'1Gi'}");
  EXPECT_EQ(restarts("a"), 0);
  resize_container("a",
                   "'requests': {'cpu': '2', 'memory': '2Gi'}, 'limits': {'cpu': '2', 'memory': "
                   "'2Gi'}");
  node.settle(seconds(30));

  EXPECT_EQ(restarts("a"), 1);
  EXPECT_EQ(container("a")["resources"]["limits"]["memory"].str(), "2Gi");
  EXPECT_EQ(node.condition("a", "PodResizeInProgress"), "");
  EXPECT_THAT(node.events("a"), Contains("Normal Killing: Container c resize requires restart"));
}

TEST_F(Resizing, waits_for_room_and_takes_it_when_others_have_gone) {
  node.create("a", "'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '1'}}}]");
  node.create("b", "'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '2'}}}]");
  node.settle();

  resize_container("a", "'requests': {'cpu': '3'}");
  EXPECT_EQ(node.condition("a", "PodResizePending"),
            "True Deferred: Node didn't have enough resource: cpu, requested: 3000, used: 2000, "
            "capacity: 4000");
  EXPECT_EQ(container("a")["allocatedResources"]["cpu"].str(), "1");
  EXPECT_EQ(node.pod("a")["status"]["allocatedResources"]["cpu"].str(), "1");

  ASSERT_TRUE(node.api->remove(kPodResource, "default", "b"));
  node.settle(seconds(40));
  EXPECT_EQ(node.condition("a", "PodResizePending"), "");
  EXPECT_EQ(container("a")["allocatedResources"]["cpu"].str(), "3");
}

TEST_F(Resizing, counts_others_by_what_they_were_granted) {
  node.create("a", "'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '1'}}}]");
  node.create("b", "'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '2'}}}]");
  node.settle();

  resize_container("a", "'requests': {'cpu': '3'}");
  resize_container("b", "'requests': {'cpu': '3'}");

  EXPECT_EQ(container("a")["allocatedResources"]["cpu"].str(), "1");
  EXPECT_EQ(container("b")["allocatedResources"]["cpu"].str(), "3");
}

TEST_F(Resizing, tells_what_the_node_will_never_have) {
  node.create("a", "'containers': [{'name': 'c', 'resources': {'requests': {'memory': '1Gi'}}}]");
  node.settle();
  node.node_object.mut("status").mut("allocatable").set("memory", "2Gi");

  resize_container("a", "'requests': {'memory': '3Gi'}");

  EXPECT_EQ(node.condition("a", "PodResizePending"),
            "True Infeasible: Node didn't have enough capacity: memory, requested: 3221225472, "
            "capacity: 2147483648");
  EXPECT_THAT(node.events("a"), Contains(HasSubstr("Warning ResizeInfeasible")));
}

TEST_F(Resizing, tells_an_error_and_goes_on_trying) {
  node.create("a", "'containers': [{'name': 'c', 'resources': {'limits': {'memory': '1Gi'}}}]");
  node.settle();
  node.machine.update_errors.emplace("c", Error::conflict("below current usage"));

  resize_container("a", "'requests': {'memory': '1Mi'}, 'limits': {'memory': '1Mi'}");
  EXPECT_EQ(node.condition("a", "PodResizeInProgress"),
            "True Error: container c: below current usage");
  EXPECT_EQ(container("a")["resources"]["limits"]["memory"].str(), "1Gi");

  node.machine.update_errors.clear();
  node.settle(seconds(20));
  EXPECT_EQ(node.condition("a", "PodResizeInProgress"), "");
  EXPECT_EQ(container("a")["resources"]["limits"]["memory"].str(), "1Mi");
}

TEST_F(Resizing, changes_the_pod_as_a_whole_and_containers_without_limits_with_it) {
  node.create("a",
              "'resources': {'requests': {'cpu': '1'}, 'limits': {'cpu': '2', 'memory': '1Gi'}}, "
              "'containers': [{'name': 'c'}]");
  node.settle();

  resize("a", "'resources': {'requests': {'cpu': '2'}, 'limits': {'cpu': '3', 'memory': '2Gi'}}");

  const Value status = node.pod("a")["status"];
  EXPECT_EQ(status["allocatedResources"]["cpu"].str(), "2");
  EXPECT_EQ(status["resources"]["limits"]["memory"].str(), "2Gi");
  EXPECT_THAT(node.machine.log, Contains("update pod a 2048 2147483648"));
  EXPECT_THAT(node.machine.log, Contains("update c 3072 2147483648"));
  EXPECT_EQ(restarts("a"), 0);
}

TEST_F(Resizing, survives_the_agent_at_any_moment) {
  for (int actions = 0; actions < 12; ++actions) {
    const std::string name = cat("p", actions);
    node.create(name,
                "'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '100m'}, 'limits': "
                "{'cpu': '1', 'memory': '1Gi'}}}]");
    node.settle();
    node.end_agent();
    node.start_agent(actions);
    resize_container(name, "'requests': {'cpu': '200m'}, 'limits': {'cpu': '2', 'memory': '2Gi'}");
    node.end_agent();
    node.start_agent();
    node.settle(seconds(20));

    EXPECT_EQ(container(name)["resources"]["limits"]["memory"].str(), "2Gi") << actions;
    EXPECT_EQ(node.condition(name, "PodResizeInProgress"), "") << actions;
    EXPECT_EQ(restarts(name), 0) << actions;
    ASSERT_TRUE(node.api->remove(kPodResource, "default", name));
    node.settle(seconds(40));
  }
}

TEST(Limits, are_widened_by_what_has_none) {
  ContainerLimits narrow;
  narrow.cpu_quota = 100;
  narrow.cpu_period = 100'000;
  narrow.memory_bytes = 5;
  narrow.cpu_shares = 2;
  ContainerLimits wide;
  wide.memory_bytes = 7;
  wide.cpu_shares = 1024;

  EXPECT_EQ(limits_text(wider(narrow, wide)), R"({"shares":1024,"period":0,"quota":0,"memory":7})");
  EXPECT_EQ(limits_text(*read_limits(limits_text(narrow))), limits_text(narrow));
}

}  // namespace
}  // namespace dibs::node
