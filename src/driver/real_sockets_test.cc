// A plugin on real sockets, files and threads, with the small API server in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <thread>

#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "driver/plugin.h"
#include "driver/process_servers.h"
#include "driver/test_world.h"
#include "proto/plugin_registration.pb.h"
#include "runtime/real_runtime.h"

namespace dibs::driver {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;
using test::from_text;

class Plain : public Driver {
 public:
  Result<std::vector<Pool>> devices() override { return std::vector<Pool>(); }
  Result<std::vector<PreparedDevice>> prepare(const Claim& claim) override {
    const int now = ++inside;
    most = std::max(most.load(), now);
    std::this_thread::yield();
    std::vector<PreparedDevice> out;
    for (const auto& device : claim.devices) out.push_back(prepared(device, env_edits({"A=1"})));
    --inside;
    return out;
  }
  Result<> unprepare(const ClaimName&) override { return success(); }

  std::atomic<int> inside{0};
  std::atomic<int> most{0};
};

class RealSockets : public testing::Test {
 protected:
  RealSockets()
      : folder(std::filesystem::temp_directory_path() / cat("dibs-driver-", ::getpid())),
        transport(client::make_in_process_transport(api.handler(), runtime.runtime())),
        client(*transport) {
    std::filesystem::create_directories(folder / "registry");
    options.driver_name = "d.example.com";
    options.node_name = "node-0";
    options.registry_dir = folder / "registry";
    options.data_dir = folder / "data";
    options.cdi_dir = folder / "cdi";
    options.publish = false;
    for (int i = 0; i < kClaims; ++i) {
      api.put(
          cat("/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c", i),
          from_text(cat("{'metadata': {'namespace': 'n', 'name': 'c", i, "', 'uid': 'u", i,
                        "'}, 'status': {'allocation': {'devices': {'results': [{'request': 'r', "
                        "'driver': 'd.example.com', 'pool': 'p', 'device': 'd",
                        i, "'}]}}}}")));
    }
  }
  ~RealSockets() override { std::filesystem::remove_all(folder); }

  std::unique_ptr<Plugin> start() {
    auto started = Plugin::start(
        driver, {client, runtime.runtime(), runtime::system_files(), nullptr, {}}, options);
    EXPECT_TRUE(started.ok()) << started.error().message();
    return started ? std::move(started).value() : nullptr;
  }

  static std::string request(int claim) {
    dra::NodePrepareResourcesRequest out;
    auto* named = out.add_claims();
    named->set_namespace_("n");
    named->set_name(cat("c", claim));
    named->set_uid(cat("u", claim));
    return out.SerializeAsString();
  }

  static constexpr int kClaims = 8;
  const std::filesystem::path folder;
  client::FakeApi api;
  runtime::RealRuntime runtime;  // ends before what its threads call
  std::unique_ptr<client::Transport> transport;
  client::Client client;
  Plain driver;
  PluginOptions options;
};

TEST_F(RealSockets, calls_come_through_one_at_a_time) {
  auto plugin = start();
  ASSERT_NE(plugin, nullptr);
  const auto channel = rpc::connect_unix(plugin->service_socket());

  std::vector<std::future<rpc::Reply>> replies;
  for (int i = 0; i < kClaims; ++i) {
    replies.push_back(std::async(std::launch::async, [&, i] {
      return channel->call(cat(test::TestWorld::kV1, "NodePrepareResources"), request(i),
                           std::chrono::seconds(20));
    }));
  }
  for (auto& reply : replies) {
    const auto got = reply.get();
    EXPECT_TRUE(got.status.ok()) << got.status.text();
    dra::NodePrepareResourcesResponse response;
    EXPECT_TRUE(response.ParseFromString(got.bytes));
    EXPECT_EQ(response.claims_size(), 1);
  }
  EXPECT_EQ(driver.most, 1);
  EXPECT_EQ(runtime::system_files().list(options.cdi_dir)->size(), std::size_t{kClaims});
}

TEST_F(RealSockets, are_gone_after_the_end_and_back_after_a_restart) {
  for (int turn = 0; turn < 2; ++turn) {
    auto plugin = start();
    ASSERT_NE(plugin, nullptr);
    const auto channel = rpc::connect_unix(plugin->registration_socket());
    const auto reply =
        channel->call("/pluginregistration.Registration/GetInfo", "", std::chrono::seconds(20));
    ASSERT_TRUE(reply.status.ok()) << reply.status.text();
    pluginregistration::PluginInfo info;
    ASSERT_TRUE(info.ParseFromString(reply.bytes));
    EXPECT_EQ(info.endpoint(), plugin->service_socket());

    const auto health = health_methods(plugin->registration_socket(), plugin->service_socket());
    EXPECT_EQ(health.unary.at("/grpc.health.v1.Health/Check")("").bytes,
              std::string("\x08\x01", 2));

    plugin->stop();
    EXPECT_FALSE(std::filesystem::exists(plugin->registration_socket()));
    EXPECT_FALSE(std::filesystem::exists(plugin->service_socket()));
  }
}

TEST_F(RealSockets, of_a_killed_process_are_taken_over) {
  auto killed = start();
  ASSERT_NE(killed, nullptr);
  const std::string kept = cat(killed->service_socket(), ".kept");
  std::filesystem::create_hard_link(killed->service_socket(), kept);
  killed->stop();
  std::filesystem::rename(kept, killed->service_socket());

  auto next = start();

  ASSERT_NE(next, nullptr);
  EXPECT_TRUE(
      rpc::connect_unix(next->service_socket())
          ->call(cat(test::TestWorld::kV1, "NodePrepareResources"), "", std::chrono::seconds(20))
          .status.ok());
}

TEST_F(RealSockets, two_processes_never_prepare_at_once) {
  options.pod_uid = "a";
  auto first = start();
  auto held = runtime::system_files().lock(cat(options.data_dir, "/serialize.lock"));
  ASSERT_TRUE(held.ok());
  const auto channel = rpc::connect_unix(first->service_socket());

  auto reply = std::async(std::launch::async, [&] {
    return channel->call(cat(test::TestWorld::kV1, "NodePrepareResources"), request(0),
                         std::chrono::seconds(20));
  });
  EXPECT_EQ(reply.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  EXPECT_EQ(driver.most, 0);
  held->reset();

  EXPECT_TRUE(reply.get().status.ok());
  EXPECT_EQ(driver.most, 1);
}

}  // namespace
}  // namespace dibs::driver
