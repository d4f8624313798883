#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/eviction.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using std::chrono::seconds;
using test::from_text;
using test::TestCluster;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const Gvr kLeases = {"coordination.k8s.io", "v1", "leases"};

TEST(Tolerations, match_by_key_value_and_effect) {
  const Value taint = from_text("{'key': 'k', 'value': 'v', 'effect': 'NoExecute'}");
  struct Case {
    const char* toleration;
    bool tolerated;
  };
  for (const Case& one :
       {Case{"{'operator': 'Exists'}", true}, Case{"{'key': 'k', 'value': 'v'}", true},
        Case{"{'key': 'k', 'operator': 'Equal', 'value': 'w'}", false},
        Case{"{'key': 'k', 'operator': 'Exists', 'effect': 'NoSchedule'}", false},
        Case{"{'key': 'x', 'operator': 'Exists'}", false},
        Case{"{'key': 'k', 'operator': 'Lt', 'value': 'v'}", false}}) {
    EXPECT_EQ(tolerates_taint(from_text(one.toleration), taint), one.tolerated) << one.toleration;
  }
}

class Nodes : public testing::Test {
 protected:
  void make_node(const std::string& name) {
    cluster.create(kNodes, "", cat("{'metadata': {'name': '", name, "'}}"));
    set_ready("True");
    cluster.settle();
  }
  void set_ready(const std::string& status) {
    cluster.patch(kNodes, "", "n",
                  cat("{'status': {'conditions': [{'type': 'Ready', 'status': '", status,
                      "', 'reason': 'r', 'message': 'm', 'lastHeartbeatTime': "
                      "'2026-01-01T00:00:00Z', 'lastTransitionTime': '2026-01-01T00:00:00Z'}]}}"),
                  "status");
  }
  void make_pod(const std::string& name, const std::string& more = "") {
    cluster.create(kPods, "default",
                   cat("{'metadata': {'name': '", name, "'}, 'spec': {'nodeName': 'n', ", more,
                       "'terminationGracePeriodSeconds': 0, 'containers': [{'name': 'm', 'image': "
                       "'x'}]}}"));
    cluster.settle();
  }
  std::vector<std::string> taints() {
    std::vector<std::string> out;
    const Value node = cluster.get(kNodes, "", "n");
    for (const auto& taint : node["spec"]["taints"].items()) {
      out.push_back(cat(taint["key"].as_string(), ':', taint["effect"].as_string()));
    }
    return out;
  }

  TestCluster cluster;
};

TEST_F(Nodes, a_new_one_is_greeted_once_and_marked) {
  make_node("n");
  set_ready("False");
  cluster.settle();
  EXPECT_THAT(cluster.events("default", "n"),
              ElementsAre("Normal RegisteredNode Node n event: Registered Node n in Controller"));
  EXPECT_EQ(cluster.get(kNodes, "", "n")["metadata"]["annotations"],
            from_text("{'node.alpha.kubernetes.io/ttl': '0'}"));
}

TEST_F(Nodes, a_ready_one_has_no_taints_and_conditions_become_them) {
  make_node("n");
  EXPECT_THAT(taints(), IsEmpty());
  set_ready("False");
  cluster.settle();
  EXPECT_THAT(taints(), UnorderedElementsAre("node.kubernetes.io/not-ready:NoSchedule",
                                             "node.kubernetes.io/not-ready:NoExecute"));
  set_ready("True");
  cluster.patch(kNodes, "", "n", "{'spec': {'unschedulable': true}}");
  cluster.settle();
  EXPECT_THAT(taints(), ElementsAre("node.kubernetes.io/unschedulable:NoSchedule"));
}

TEST_F(Nodes, a_silent_one_becomes_unknown_and_is_emptied) {
  make_node("n");
  make_pod("p");
  cluster.settle(seconds(40));
  EXPECT_EQ(find_condition(cluster.get(kNodes, "", "n"), "Ready")["status"].str(), "True");
  cluster.settle(seconds(20));
  const Value node = cluster.get(kNodes, "", "n");
  EXPECT_EQ(find_condition(node, "Ready")["reason"].str(), "NodeStatusUnknown");
  EXPECT_EQ(find_condition(node, "Ready")["message"].str(), "Kubelet stopped posting node status.");
  EXPECT_THAT(taints(), UnorderedElementsAre("node.kubernetes.io/unreachable:NoSchedule",
                                             "node.kubernetes.io/unreachable:NoExecute"));
  // Every pod tolerates that for five minutes.
  cluster.settle(seconds(200));
  EXPECT_FALSE(cluster.get(kPods, "default", "p").is_null());
  cluster.settle(seconds(120));
  EXPECT_TRUE(cluster.get(kPods, "default", "p").is_null());
  EXPECT_THAT(cluster.events("default", "p"),
              Contains("Normal TaintManagerEviction Marking for deletion Pod default/p"));
}

TEST_F(Nodes, a_lease_that_is_renewed_is_life) {
  make_node("n");
  cluster.create(kLeases, "kube-node-lease",
                 "{'metadata': {'name': 'n'}, 'spec': {'holderIdentity': 'n', "
                 "'leaseDurationSeconds': 40, 'renewTime': '2026-01-01T00:00:00.000000Z'}}");
  for (int i = 1; i < 9; ++i) {
    cluster.settle(seconds(30));
    cluster.patch(kLeases, "kube-node-lease", "n",
                  cat("{'spec': {'renewTime': '2026-01-01T00:00:0", i, ".000000Z'}}"));
  }
  EXPECT_EQ(find_condition(cluster.get(kNodes, "", "n"), "Ready")["status"].str(), "True");
}

TEST_F(Nodes, a_taint_ends_pods_that_do_not_tolerate_it) {
  make_node("n");
  make_pod("plain");
  make_pod("tough", "'tolerations': [{'operator': 'Exists'}], ");
  make_pod("brief",
           "'tolerations': [{'key': 'k', 'operator': 'Exists', 'effect': 'NoExecute', "
           "'tolerationSeconds': 30}], ");
  cluster.patch(kNodes, "", "n", "{'spec': {'taints': [{'key': 'k', 'effect': 'NoExecute'}]}}");
  cluster.settle();
  EXPECT_THAT(cluster.names(kPods, "default"), ElementsAre("brief", "tough"));
  cluster.patch(kNodes, "", "n", "{'spec': {'taints': null}}");
  cluster.settle(seconds(35));
  EXPECT_THAT(cluster.names(kPods, "default"), ElementsAre("brief", "tough"));
  EXPECT_THAT(cluster.events("default", "brief"),
              Contains("Normal TaintManagerEviction Cancelling deletion of Pod default/brief"));
}

TEST_F(Nodes, pods_of_a_node_that_is_gone_are_collected) {
  make_node("n");
  make_pod("p");
  cluster.remove(kNodes, "", "n");
  cluster.settle(seconds(30));
  EXPECT_FALSE(cluster.get(kPods, "default", "p").is_null());
  cluster.settle(seconds(60));
  EXPECT_TRUE(cluster.get(kPods, "default", "p").is_null());
}

}  // namespace
}  // namespace dibs::controllers
