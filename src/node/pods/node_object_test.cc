#include "node/pods/node_object.h"

#include <gmock/gmock.h>

#include "client/transport.h"
#include "cluster/test_cluster.h"
#include "controllers/controllers.h"
#include "node/pods/node_status.h"
#include "node/pods/volume_test_support.h"

namespace dibs::node {
namespace {

using json::Value;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const client::Gvr kNodes{"", "v1", "nodes"};
const client::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
const client::Gvr kEvents{"", "v1", "events"};

NodeOptions some_options() {
  NodeOptions options;
  options.machine.architecture = "amd64";
  options.machine.cpus = 4;
  options.machine.memory_bytes = 8LL << 30;
  options.machine.boot_id = "boot";
  options.machine.huge_pages = {{"hugepages-2Mi", 0}};
  options.runtime_version = "sim://1";
  return options;
}

/// A node's way to the server, which can be cut off.
class NodeWire final : public client::Transport {
 public:
  NodeWire(std::unique_ptr<client::Transport> inner, runtime::Executor& executor)
      : inner_(std::move(inner)), executor_(executor) {}

  bool cut_off = false;

  Result<client::Response> send(client::Request request) override {
    if (cut_off) return kUnavailable;
    return inner_->send(std::move(request));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    if (cut_off) return executor_.post([done = std::move(done)] { done(kUnavailable); });
    inner_->send_async(std::move(request), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    return inner_->open_stream(std::move(request), std::move(handlers));
  }

 private:
  inline static const client::Response kUnavailable = net::Response{503, {}, ""};
  std::unique_ptr<client::Transport> inner_;
  runtime::Executor& executor_;
};

struct NodeObjectTest : testing::Test, cluster::test::TestCluster {
  NodeWire wire{connect(), sim.runtime().executor};
  client::Client node_api{wire};
  std::unique_ptr<client::EventRecorder> recorder;
  NodeFacts facts;

  NodeObjectTest() {
    client::EventRecorderOptions options;
    options.controller = "kubelet";
    options.instance = "node-0";
    options.core = true;
    recorder = std::make_unique<client::EventRecorder>(node_api, sim.runtime(), options);
    facts.name = "node-0";
    facts.addresses = {"192.0.2.1"};
  }
  ~NodeObjectTest() override {
    recorder.reset();
    close();
  }

  Value get(const client::Gvr& gvr, const std::string& name_space = "") {
    auto found = api->get(gvr, name_space, "node-0");
    return found ? *found : Value();
  }
  static std::string condition(const Value& node, std::string_view type) {
    for (const auto& one : node["status"]["conditions"].items()) {
      if (one["type"].as_string() == type) {
        return cat(one["status"].as_string(), ' ', one["reason"].as_string(), ": ",
                   one["message"].as_string());
      }
    }
    return "(none)";
  }
  std::vector<std::string> event_texts() {
    std::vector<std::string> out;
    auto listed = api->list(kEvents, "default");
    if (!listed) return out;
    for (const auto& event : listed->items) {
      if (event["source"]["component"].as_string() != "kubelet") continue;
      out.push_back(cat(event["reason"].as_string(), ": ", event["message"].as_string()));
    }
    return out;
  }
};

TEST_F(NodeObjectTest, registers_with_everything_at_once) {
  NodeObject node(node_api, sim.runtime(), *recorder, facts, some_options());
  node.set_ready(success());
  int registered = 0;
  node.start([&](const Value&) { ++registered; });
  sim.run_until_idle();

  EXPECT_EQ(registered, 1);
  const Value object = get(kNodes);
  EXPECT_EQ(object["metadata"]["labels"],
            test::from_text("{'beta.kubernetes.io/arch': 'amd64', 'beta.kubernetes.io/os': 'linux',"
                            "'kubernetes.io/arch': 'amd64', 'kubernetes.io/os': 'linux', "
                            "'kubernetes.io/hostname': 'node-0'}"));
  EXPECT_EQ(condition(object, "Ready"), "True KubeletReady: kubelet is posting ready status");
  EXPECT_EQ(condition(object, "MemoryPressure"),
            "False KubeletHasSufficientMemory: kubelet has sufficient memory available");
  EXPECT_EQ(condition(object, "DiskPressure"),
            "False KubeletHasNoDiskPressure: kubelet has no disk pressure");
  EXPECT_EQ(condition(object, "PIDPressure"),
            "False KubeletHasSufficientPID: kubelet has sufficient PID available");
  EXPECT_EQ(json::write(object["status"]["capacity"]),
            R"({"cpu":"4","hugepages-2Mi":"0","memory":"8Gi","pods":"110"})");
  EXPECT_EQ(object["status"]["addresses"],
            test::from_text("[{'type': 'InternalIP', 'address': '192.0.2.1'}, "
                            "{'type': 'Hostname', 'address': 'node-0'}]"));
  EXPECT_EQ(object["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_int(), 10250);

  const Value lease = get(kLeases, "kube-node-lease");
  EXPECT_EQ(lease["spec"]["holderIdentity"].as_string(), "node-0");
  EXPECT_EQ(lease["spec"]["leaseDurationSeconds"].as_int(), 40);
  EXPECT_EQ(lease["metadata"]["ownerReferences"][0]["kind"].as_string(), "Node");
  EXPECT_EQ(lease["metadata"]["ownerReferences"][0]["uid"], object["metadata"]["uid"]);

  sim.advance(seconds(1));
  EXPECT_THAT(event_texts(),
              UnorderedElementsAre(
                  "Starting: Starting kubelet.",
                  "NodeHasSufficientMemory: Node node-0 status is now: NodeHasSufficientMemory",
                  "NodeHasNoDiskPressure: Node node-0 status is now: NodeHasNoDiskPressure",
                  "NodeHasSufficientPID: Node node-0 status is now: NodeHasSufficientPID",
                  "NodeReady: Node node-0 status is now: NodeReady"));
}

TEST_F(NodeObjectTest, is_ready_as_soon_as_the_runtime_is) {
  NodeObject node(node_api, sim.runtime(), *recorder, facts, some_options());
  node.start();
  sim.run_until_idle();
  EXPECT_EQ(condition(get(kNodes), "Ready"), "False KubeletNotReady: container runtime is down");

  node.set_ready(success());
  sim.run_until_idle();
  EXPECT_EQ(condition(get(kNodes), "Ready"), "True KubeletReady: kubelet is posting ready status");

  node.set_ready(Error::unavailable("runc is gone"));
  sim.run_until_idle();
  EXPECT_EQ(condition(get(kNodes), "Ready"), "False KubeletNotReady: runc is gone");
  sim.advance(seconds(1));
  EXPECT_THAT(event_texts(), Contains("NodeNotReady: Node node-0 status is now: NodeNotReady"));
}

TEST_F(NodeObjectTest, renews_the_lease_and_writes_the_status_rarely) {
  NodeObject node(node_api, sim.runtime(), *recorder, facts, some_options());
  node.set_ready(success());
  node.start();
  sim.advance(seconds(1));
  const Value first = get(kLeases, "kube-node-lease");
  const Value object = get(kNodes);

  sim.advance(minutes(4));
  const Value later = get(kLeases, "kube-node-lease");
  EXPECT_NE(later["spec"]["renewTime"].str(), first["spec"]["renewTime"].str());
  EXPECT_EQ(get(kNodes)["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);

  sim.advance(minutes(2));
  const Value after = get(kNodes);
  EXPECT_NE(after["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);
  EXPECT_EQ(after["status"]["conditions"][3]["lastTransitionTime"],
            object["status"]["conditions"][3]["lastTransitionTime"]);
  EXPECT_NE(after["status"]["conditions"][3]["lastHeartbeatTime"],
            object["status"]["conditions"][3]["lastHeartbeatTime"]);
}

TEST_F(NodeObjectTest, sees_at_once_what_others_write) {
  NodeObject node(node_api, sim.runtime(), *recorder, facts, some_options());
  node.start();
  sim.advance(seconds(1));
  const auto label = [&](const char* value) {
    EXPECT_TRUE(
        api->patch(kNodes, "", "node-0", client::PatchType::merge,
                   test::from_text(cat("{'metadata': {'labels': {'disk': '", value, "'}}}")))
            .ok());
  };
  label("fast");
  sim.advance(milliseconds(10));
  EXPECT_EQ(node.object()["metadata"]["labels"]["disk"].as_string(), "fast");
  label("slow");
  EXPECT_EQ(node.read()["metadata"]["labels"]["disk"].as_string(), "slow");
}

TEST_F(NodeObjectTest, takes_over_a_node_that_is_there) {
  const auto found =
      api->create(kNodes, "",
                  test::from_text("{'metadata': {'name': 'node-0', 'labels': {'mine': 'x'}}, "
                                  "'status': {'capacity': {'example.com/x': '3'}}}"));
  ASSERT_TRUE(found.ok());

  NodeObject node(node_api, sim.runtime(), *recorder, facts, some_options());
  node.set_ready(success());
  node.start();
  sim.run_until_idle();

  const Value object = get(kNodes);
  EXPECT_EQ(object["metadata"]["uid"], (*found)["metadata"]["uid"]);
  EXPECT_EQ(object["metadata"]["labels"]["mine"].as_string(), "x");
  EXPECT_EQ(object["metadata"]["labels"]["kubernetes.io/os"].as_string(), "linux");
  EXPECT_EQ(object["status"]["capacity"]["example.com/x"].as_string(), "3");
  EXPECT_EQ(object["status"]["capacity"]["pods"].as_string(), "110");
  EXPECT_EQ(condition(object, "Ready"), "True KubeletReady: kubelet is posting ready status");
}

TEST_F(NodeObjectTest, comes_back_after_a_silence) {
  controllers::ControllersOptions options;
  options.ca_pem = "CA";
  controllers::Controllers controllers(*api, sim.runtime(), options);
  controllers.start();
  NodeObject node(node_api, sim.runtime(), *recorder, facts, some_options());
  node.set_ready(success());
  node.start();
  sim.run_until_idle();
  // No delay at all between a node's first word and its being fit for pods.
  EXPECT_TRUE(api->get(kNodes, "", "node-0")->operator[]("spec")["taints"].is_null());

  wire.cut_off = true;
  sim.advance(seconds(70));
  EXPECT_EQ(condition(*api->get(kNodes, "", "node-0"), "Ready"),
            "Unknown NodeStatusUnknown: Kubelet stopped posting node status.");
  wire.cut_off = false;
  sim.advance(seconds(10));
  EXPECT_EQ(condition(*api->get(kNodes, "", "node-0"), "Ready"),
            "True KubeletReady: kubelet is posting ready status");
  const Value object = *api->get(kNodes, "", "node-0");
  EXPECT_TRUE(object["spec"]["taints"].is_null());
  EXPECT_EQ(object["metadata"]["annotations"]["node.alpha.kubernetes.io/ttl"].as_string(), "0");
  node.stop();
  controllers.stop();
}

TEST_F(NodeObjectTest, leaves_the_node_as_it_is_at_the_end) {
  {
    NodeObject node(node_api, sim.runtime(), *recorder, facts, some_options());
    node.set_ready(success());
    node.start();
    sim.run_until_idle();
  }
  sim.advance(minutes(10));
  EXPECT_EQ(condition(get(kNodes), "Ready"), "True KubeletReady: kubelet is posting ready status");
  EXPECT_EQ(get(kLeases, "kube-node-lease")["spec"]["holderIdentity"].as_string(), "node-0");
}

TEST(NodeStatus, lists_images_by_size_with_few_names) {
  NodeState state;
  ImageInfo small{"sha256:1", {"a:1"}, {}, 5, {}, {}};
  ImageInfo large{"sha256:2", {"b:1", "b:2", "b:3", "b:4", "b:5"}, {"b@sha256:2"}, 9, {}, {}};
  state.images = {small, large};
  const Value status = node_status({}, some_options(), state, {}, {});
  EXPECT_EQ(status["images"],
            test::from_text("[{'names': ['b@sha256:2', 'b:1', 'b:2', 'b:3', 'b:4'], "
                            "'sizeBytes': 9}, {'names': ['a:1'], 'sizeBytes': 5}]"));
}

TEST(NodeStatus, capacity_may_be_chosen) {
  NodeOptions options = some_options();
  options.capacity = {{"cpu", "2"}, {"memory", "1Gi"}, {"example.com/x", "7"}};
  EXPECT_EQ(node_capacity(options),
            test::from_text("{'cpu': '2', 'hugepages-2Mi': '0', 'memory': '1Gi', 'pods': '110', "
                            "'example.com/x': '7'}"));
  NodeFacts facts;
  fill_amounts(facts, options);
  EXPECT_EQ(facts.allocatable_milli_cpu, 2000);
  EXPECT_EQ(facts.memory_bytes, 1LL << 30);
}

TEST(Machine, can_be_read) {
  const Machine machine = read_machine();
  EXPECT_GT(machine.cpus, 0);
  EXPECT_GT(machine.memory_bytes, 0);
  EXPECT_FALSE(machine.kernel_version.empty());
  EXPECT_FALSE(machine.address.empty());
}

}  // namespace
}  // namespace dibs::node
