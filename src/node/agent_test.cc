#include "node/agent.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "cluster/test_cluster.h"
#include "json/parse.h"
#include "rpc/memory_network.h"

namespace dibs::node {
namespace {

using json::Value;
using testing::HasSubstr;

const client::Gvr kPods{"", "v1", "pods"};
const client::Gvr kNodes{"", "v1", "nodes"};

/// An API server and agents with simulated containers, in one thread.
class AgentTest : public testing::Test, protected cluster::test::TestCluster {
 protected:
  AgentTest() : TestCluster(without_accounts()) { sim.advance(std::chrono::seconds(1)); }
  ~AgentTest() override {
    for (auto& node : nodes) node.agent->stop();
    if (shared) shared->stop();
    nodes.clear();
    shared.reset();
    close();
  }

  static server::Options without_accounts() {
    server::Options options;
    options.disabled_plugins = {"ServiceAccount"};
    return options;
  }

  AgentOptions options_of(const std::string& name) {
    AgentOptions options;
    options.name = name;
    options.root = cat("/nodes/", name);
    options.runtime = "sim";
    options.cdi_directories = {"/nonexistent"};
    options.port = -1;
    options.drivers = &network;
    return options;
  }

  void add_node(const std::string& name) {
    Node node;
    node.transport = connect({cat("system:node:", name), {"system:nodes", "system:authenticated"}});
    node.client = std::make_unique<client::Client>(*node.transport);
    Shared common;
    if (shared) common.pods = shared.get();
    auto agent = Agent::open(options_of(name), *node.client, sim.runtime(), *files, common);
    ASSERT_TRUE(agent.ok()) << agent.error().message();
    node.agent = std::move(agent).value();
    const auto started = node.agent->start();
    ASSERT_TRUE(started.ok()) << started.error().message();
    nodes.push_back(std::move(node));
  }

  void add_pod(const std::string& name, const std::string& node) {
    auto pod = json::parse(cat(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ")",
                               name, R"("}, "spec": {"nodeName": ")", node,
                               R"(", "containers": [{"name": "c", "image": "busybox:1.36",)",
                               R"( "command": ["sleep", "9999"]}]}})"));
    const auto created = api->create(kPods, "default", *pod);
    ASSERT_TRUE(created.ok()) << created.error().message();
  }
  std::string phase(const std::string& name) {
    const auto pod = api->get(kPods, "default", name);
    return pod ? (*pod)["status"]["phase"].str() : "gone";
  }
  bool node_ready(const std::string& name) {
    const auto node = api->get(kNodes, "", name);
    if (!node) return false;
    for (const Value& condition : (*node)["status"]["conditions"].items()) {
      if (condition["type"].as_string() == "Ready") {
        return condition["status"].as_string() == "True";
      }
    }
    return false;
  }

  struct Node {
    std::unique_ptr<client::Transport> transport;
    std::unique_ptr<client::Client> client;
    std::unique_ptr<Agent> agent;
  };

  rpc::MemoryNetwork network;
  std::unique_ptr<SharedPods> shared;
  std::vector<Node> nodes;
};

TEST_F(AgentTest, registers_its_node_and_runs_its_pods) {
  add_node("one");
  sim.advance(std::chrono::seconds(2));
  EXPECT_TRUE(node_ready("one"));
  EXPECT_TRUE(nodes[0].agent->is_ready());
  EXPECT_THAT(nodes[0].agent->runtime_explanation(), HasSubstr("sim"));

  add_pod("a", "one");
  sim.advance(std::chrono::seconds(2));
  EXPECT_EQ(phase("a"), "Running");
}

TEST_F(AgentTest, shares_one_watch_with_many_others) {
  shared = std::make_unique<SharedPods>(*api, sim.runtime());
  add_pod("early", "node-3");
  for (int i = 0; i < 20; ++i) add_node(cat("node-", i));
  sim.advance(std::chrono::seconds(2));
  for (int i = 0; i < 20; ++i) add_pod(cat("p", i), cat("node-", i));
  sim.advance(std::chrono::seconds(2));

  EXPECT_EQ(phase("early"), "Running");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(phase(cat("p", i)), "Running");
    const auto sandboxes = nodes[static_cast<std::size_t>(i)].agent->containers().list_sandboxes();
    ASSERT_TRUE(sandboxes.ok());
    EXPECT_EQ(sandboxes->size(), i == 3 ? 2U : 1U);
  }

  client::DeleteOptions now;
  now.grace_period_seconds = 1;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(api->remove(kPods, "default", cat("p", i), now).ok());
  sim.advance(std::chrono::seconds(5));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(phase(cat("p", i)), "gone");
}

TEST_F(AgentTest, names_the_flag_of_a_folder_that_is_too_deep) {
  AgentOptions options = options_of("one");
  options.root = cat("/", std::string(70, 'x'));
  const auto agent = Agent::open(options, *api, sim.runtime(), *files);

  ASSERT_FALSE(agent.ok());
  EXPECT_THAT(agent.error().message(), HasSubstr("--root-dir"));
  EXPECT_THAT(agent.error().message(), HasSubstr("at most 64"));
}

}  // namespace
}  // namespace dibs::node
