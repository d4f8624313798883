#include "node/agent.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "client/transport.h"
#include "json/parse.h"
#include "rpc/memory_network.h"
#include "runtime/sim_runtime.h"
#include "server/api_server.h"
#include "store/memory_store.h"

namespace dibs::node {
namespace {

using json::Value;
using testing::HasSubstr;

const client::Gvr kPods{"", "v1", "pods"};
const client::Gvr kNodes{"", "v1", "nodes"};

/// An API server and agents with simulated containers, in one thread.
class AgentTest : public testing::Test {
 protected:
  AgentTest() : store_(store::make_memory_store({})), files(runtime::make_memory_files()) {
    server::Options options;
    options.disabled_plugins = {"ServiceAccount"};
    auto opened = server::ApiServer::open(sim.runtime(), *store_, std::move(options));
    if (!opened) std::abort();
    server_ = std::move(opened).value();
    transport_ = connect("system:admin", "system:masters");
    api = std::make_unique<client::Client>(*transport_);
    sim.advance(std::chrono::seconds(1));
  }
  ~AgentTest() override {
    for (auto& node : nodes) node.agent->stop();
    if (shared) shared->stop();
    nodes.clear();
    shared.reset();
    server_->close();
    sim.run_until_idle();
  }

  std::unique_ptr<client::Transport> connect(const std::string& user, const std::string& group) {
    client::InProcessOptions in_process;
    in_process.identity = {user, {group, "system:authenticated"}};
    in_process.pump = [this] { return sim.run_until_idle() > 0; };
    return client::make_in_process_transport(server_->handler(), sim.runtime(), in_process);
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
    node.transport = connect(cat("system:node:", name), "system:nodes");
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

  runtime::SimRuntime sim;
  rpc::MemoryNetwork network;

 private:
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<server::ApiServer> server_;
  std::unique_ptr<client::Transport> transport_;

 protected:
  std::unique_ptr<runtime::Files> files;
  std::unique_ptr<client::Client> api;
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
