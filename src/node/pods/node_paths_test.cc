#include "node/pods/node_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::node {
namespace {

NodeFacts node_at(const std::string& root) {
  NodeFacts facts;
  facts.root = root;
  facts.places = node_places(root, root + "/logs");
  return facts;
}

TEST(NodePaths, those_of_a_kubelet_lie_in_the_nodes_folder) {
  const NodeFacts facts = node_at("/data/nodes/a");
  const struct {
    const char* path;
    const char* lies;
  } cases[] = {
      {"/var/lib/kubelet", "/data/nodes/a"},
      {"/var/lib/kubelet/", "/data/nodes/a"},
      {"/var/lib/kubelet/plugins/x/dra.sock", "/data/nodes/a/plugins/x/dra.sock"},
      {"/var/lib/kubelet/plugins_registry", "/data/nodes/a/plugins_registry"},
      {"/var/run/cdi", "/data/nodes/a/cdi"},
      {"/run/cdi/x.json", "/data/nodes/a/cdi/x.json"},
      {"/etc/cdi", "/data/nodes/a/etc-cdi"},
      {"/var/log/pods/p", "/data/nodes/a/logs/p"},
      {"//var/./lib//kubelet/pods", "/data/nodes/a/pods"},
      {"/var/run/../lib/kubelet/pods", "/data/nodes/a/pods"},
  };
  for (const auto& one : cases) EXPECT_EQ(node_path(facts, one.path), one.lies) << one.path;
}

TEST(NodePaths, others_are_the_machines) {
  const NodeFacts facts = node_at("/data/nodes/a");
  for (const char* path : {"/", "/var", "/var/lib", "/var/lib/kubelet2", "/var/run", "/etc/cdis",
                           "/var/lib/kubelet/../x", "/var/lib/kubelet/plugins/../../x",
                           "/data/nodes/a/plugins", "/data/nodes/b", "relative", ""}) {
    EXPECT_EQ(node_path(facts, path), path);
    EXPECT_TRUE(check_node_path(facts, path).ok());
  }
}

TEST(NodePaths, a_node_with_the_kubelets_root_has_the_machine_to_itself) {
  const NodeFacts facts = node_at("/var/lib/kubelet");
  for (const char* path : {"/var/lib/kubelet/plugins", "/var/run/cdi", "/etc/cdi"}) {
    EXPECT_EQ(node_path(facts, path), path);
  }
  EXPECT_EQ(node_path(facts, "/var/log/pods"), "/var/lib/kubelet/logs");
  EXPECT_THAT(own_cdi_folders("/var/lib/kubelet"), testing::IsEmpty());
}

TEST(NodePaths, a_root_below_the_kubelets_is_not_entered_twice) {
  const NodeFacts facts = node_at("/var/lib/kubelet/node-1");
  EXPECT_EQ(node_path(facts, "/var/lib/kubelet/pods"), "/var/lib/kubelet/node-1/pods");
  EXPECT_EQ(node_path(facts, "/var/lib/kubelet/node-1/pods"), "/var/lib/kubelet/node-1/pods");
}

TEST(NodePaths, lead_back_to_what_pods_call_them) {
  const NodeFacts facts = node_at("/data/nodes/a");
  for (const char* path : {"/var/lib/kubelet/pods/u/volumes/v", "/var/lib/kubelet", "/run/cdi/x",
                           "/etc/cdi", "/var/log/pods/p", "/srv/x"}) {
    EXPECT_EQ(kubelet_path(facts, node_path(facts, path)), path);
  }
}

}  // namespace
}  // namespace dibs::node
