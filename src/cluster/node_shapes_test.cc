#include "cluster/node_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/test_cluster.h"
#include "json/parse.h"

namespace dibs::cluster {
namespace {

using json::Value;
using json::test::from_text;
using test::TestCluster;

const client::Gvr kNodes{"", "v1", "nodes"};

struct NodeShapes : testing::Test {
  NodeShapes() {
    options.groups[0].count = 2;
    options.groups[0].labels = {{"size", "big"}, {"node-role.kubernetes.io/worker", ""}};
    options.groups[0].taints =
        from_text("[{'key': 'dedicated', 'value': 'gpu', 'effect': 'NoSchedule'}]");
  }
  void shape() {
    const auto done = shape_nodes(*cluster.api, options);
    EXPECT_TRUE(done.ok()) << done.error().message();
  }
  Value node(const std::string& name) { return cluster.get(kNodes, "", name); }
  std::string taints() { return json::write(node("node-0")["spec"]["taints"]); }

  TestCluster cluster;
  NodesOptions options;
};

TEST_F(NodeShapes, are_there_before_the_agents) {
  shape();
  for (const char* name : {"node-0", "node-1"}) {
    EXPECT_EQ(node(name)["metadata"]["labels"]["size"].as_string(), "big");
    EXPECT_TRUE(node(name)["metadata"]["labels"].contains("node-role.kubernetes.io/worker"));
  }
  EXPECT_THAT(taints(), testing::HasSubstr("dedicated"));
}

TEST_F(NodeShapes, leave_to_the_agents_what_nobody_wants) {
  options.groups = {NodeGroup()};
  shape();
  EXPECT_TRUE(node("node-0").is_null());
}

TEST_F(NodeShapes, take_back_their_own_and_leave_what_others_wrote) {
  shape();
  cluster.patch(kNodes, "", "node-0", "{'metadata': {'labels': {'mine': 'x'}}}");
  Value other = node("node-0");
  other.mut("spec").mut("taints").push(from_text("{'key': 'mine', 'effect': 'NoExecute'}"));
  ASSERT_TRUE(cluster.api->update(kNodes, "", other).ok());

  options.groups[0].labels = {{"zone", "a"}};
  options.groups[0].taints = Value();
  shape();
  const Value labels = node("node-0")["metadata"]["labels"];
  EXPECT_EQ(labels["zone"].as_string(), "a");
  EXPECT_EQ(labels["mine"].as_string(), "x");
  EXPECT_FALSE(labels.contains("size"));
  EXPECT_THAT(taints(), testing::Not(testing::HasSubstr("dedicated")));
  EXPECT_THAT(taints(), testing::HasSubstr("mine"));

  options.groups[0].labels.clear();
  shape();
  EXPECT_FALSE(node("node-0")["metadata"]["labels"].contains("zone"));
  EXPECT_FALSE(node("node-0")["metadata"]["annotations"].contains(kShapeAnnotation));
  EXPECT_EQ(node("node-0")["metadata"]["labels"]["mine"].as_string(), "x");
}

TEST_F(NodeShapes, of_nodes_that_are_gone_go) {
  shape();
  options.groups[0].count = 1;
  options.gone = {"node-1", "never-was"};
  shape();
  EXPECT_FALSE(node("node-0").is_null());
  EXPECT_TRUE(node("node-1").is_null());
}

TEST_F(NodeShapes, survive_an_annotation_that_somebody_spoilt) {
  shape();
  cluster.patch(kNodes, "", "node-0",
                "{'metadata': {'annotations': {'dibs.dev/shape': '[not json'}}}");
  options.groups[0].labels = {{"size", "small"}};
  shape();
  EXPECT_EQ(node("node-0")["metadata"]["labels"]["size"].as_string(), "small");
}

}  // namespace
}  // namespace dibs::cluster
