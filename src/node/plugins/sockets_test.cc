// The whole way over real sockets and threads: register, prepare, health, PodResources, unprepare.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/mutex.h"
#include "node/plugins/test_support.h"
#include "proto/dra_health.pb.h"
#include "proto/pod_resources_v1.pb.h"
#include "rpc/server.h"
#include "runtime/real_runtime.h"

namespace dibs::node::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class Sockets : public testing::Test {
 protected:
  Sockets() {
    char name[] = "/tmp/nodeXXXXXX";
    root = mkdtemp(name);
    std::filesystem::create_directories(root + "/plugins/gpu.example.com");
    transport = client::make_in_process_transport(api.handler(), runtime.runtime(), {});
    client = std::make_unique<client::Client>(*transport);
    NodeDevicesOptions options;
    options.node_name = "node-0";
    options.root = root;
    options.active_pods = [this]() -> std::optional<std::vector<json::Value>> {
      const MutexLock lock(mutex);
      return pods;
    };
    auto opened =
        NodeDevices::open(std::move(options), *client, runtime.runtime(), runtime::system_files());
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    node = std::move(opened).value();
    node->on_driver_change([this](const std::string&) { tell(); });
    node->claims().on_health_change([this](const std::string&) { tell(); });
    EXPECT_TRUE(node->start().ok());
  }
  ~Sockets() override {
    node->stop();
    node.reset();
    std::filesystem::remove_all(root);
  }
  void tell() {
    const MutexLock lock(mutex);
    changed.notify_all();
  }
  /// Looks whenever the node tells of a change, and now and then.
  bool eventually(const std::function<bool()>& done) {
    for (int i = 0; i < 1000; ++i) {
      if (done()) return true;
      MutexLock lock(mutex);
      changed.wait_for(lock, 10ms);
    }
    return false;
  }
  FakeDriver make_driver(DriverOptions options = {}) {
    return FakeDriver(
        [](const std::string& path, rpc::Methods methods) {
          auto server = rpc::serve_unix(path, std::move(methods));
          EXPECT_TRUE(server.ok());
          return std::move(server).value();
        },
        root, std::move(options));
  }
  void put_claim(const std::string& name, const std::vector<std::string>& reserved_for) {
    auto claim = from_text(
        "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {}, 'status': "
        "{'allocation': {'devices': {'results': [{'driver': 'gpu.example.com'}]}}}}");
    claim.mut("metadata").set("name", name);
    claim.mut("metadata").set("namespace", "default");
    claim.mut("metadata").set("uid", cat("uid-", name));
    json::Value reserved = json::Value::array();
    for (const auto& uid : reserved_for) {
      reserved.push(json::Value::object({{"resource", "pods"}, {"uid", uid}}));
    }
    claim.mut("status").set("reservedFor", reserved);
    api.put(TestNode::claim_path(name), claim);
  }

  std::string root;
  client::FakeApi api;
  runtime::RealRuntime runtime;  // ends before what its threads call
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<client::Client> client;
  Mutex mutex;
  CondVar changed;
  std::vector<json::Value> pods;
  std::unique_ptr<NodeDevices> node;
};

TEST_F(Sockets, the_whole_way) {
  DriverOptions options;
  options.versions = {"v1.DRAPlugin", "v1.DRAResourceHealth"};
  FakeDriver driver = make_driver(options);
  driver.more.streams["/v1.DRAResourceHealth/NodeWatchResources"] = [](std::string_view,
                                                                       rpc::StreamWriter& writer) {
    dra_health::NodeWatchResourcesResponse response;
    auto* device = response.add_devices();
    device->mutable_device()->set_pool_name("pool");
    device->mutable_device()->set_device_name("dev-a");
    device->set_health(dra_health::UNHEALTHY);
    device->set_message("hot");
    writer.write(response.SerializeAsString());
    writer.wait_gone(60s);
    return rpc::Status{};
  };
  driver.start();
  ASSERT_TRUE(eventually([&] { return !node->drivers().empty(); }));
  put_claim("a", {"p"});
  const auto pod = TestNode::pod("p", {"a"});
  {
    const MutexLock lock(mutex);
    pods = {pod};
  }

  EXPECT_EQ(TestNode::text(node->claims().prepare(pod)), "");
  EXPECT_THAT(node->claims().devices_of(pod, "c")->cdi_ids, ElementsAre("example.com/gpu=a"));
  EXPECT_TRUE(eventually([&] {
    return json::write(node->claims().health_of(pod, "c")) ==
           R"([{"name":"claim:a","resources":[{"resourceID":"example.com/gpu=a","health":"Unhealthy","message":"hot"}]}])";
  }));

  const auto channel = rpc::connect_unix(root + "/pod-resources/kubelet.sock");
  const auto list = decode<v1::ListPodResourcesResponse>(
      channel->call("/v1.PodResourcesLister/List", "", 5s).bytes);
  EXPECT_EQ(list.pod_resources(0).containers(0).dynamic_resources(0).claim_name(), "a");

  EXPECT_EQ(TestNode::text(node->claims().unprepare(pod)), "");
  driver.stop();
  EXPECT_TRUE(eventually([&] { return node->drivers().empty(); }));
}

TEST_F(Sockets, pods_that_share_a_claim_at_the_same_time_prepare_it_once) {
  FakeDriver driver = make_driver();
  driver.start();
  ASSERT_TRUE(eventually([&] { return !node->drivers().empty(); }));
  driver.during = [] { std::this_thread::yield(); };
  const std::vector<std::string> names = {"p", "q", "r", "s", "t", "u", "v", "w"};
  put_claim("a", names);
  std::vector<json::Value> sharing;
  for (const auto& name : names) sharing.push_back(TestNode::pod(name, {"a"}));
  {
    const MutexLock lock(mutex);
    pods = sharing;
  }
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (const auto& pod : sharing) {
    threads.emplace_back([&] {
      if (!node->claims().prepare(pod)) ++failed;
    });
  }
  for (auto& thread : threads) thread.join();

  EXPECT_EQ(failed, 0);
  EXPECT_EQ(std::count(driver.log.begin(), driver.log.end(), "prepare a"), 1);
}

TEST_F(Sockets, a_driver_that_died_and_came_back_is_called_at_once) {
  FakeDriver driver = make_driver();
  driver.start();
  ASSERT_TRUE(eventually([&] { return !node->drivers().empty(); }));
  put_claim("a", {"p"});
  const auto pod = TestNode::pod("p", {"a"});
  {
    const MutexLock lock(mutex);
    pods = {pod};
  }

  driver.kill_service();
  EXPECT_THAT(TestNode::text(node->claims().prepare(pod)),
              testing::HasSubstr("code = Unavailable desc = connection error: desc = \"transport: "
                                 "Error while dialing: dial unix "));
  driver.start_service();
  EXPECT_EQ(TestNode::text(node->claims().prepare(pod)), "");
}

}  // namespace
}  // namespace dibs::node::test
