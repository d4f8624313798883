#include "drivers/net/node/local_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "drivers/net/cni/plugin_call.h"
#include "json/parse.h"
#include "rpc/channel.h"

namespace dibs::drivers::net {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using namespace std::chrono_literals;

class Stub : public LocalHandler {
 public:
  Result<NicAddresses> add(const NicRequest& request) override {
    last = request;
    if (request.pod.name == "poor") return Error::unavailable("all IP addresses used out");
    NicAddresses out;
    out.ipv4 = "172.18.30.131/16";
    out.ipv4_gateway = "172.18.0.1";
    return out;
  }
  Result<> del(const NicRequest& request) override {
    last = request;
    ++removed;
    return success();
  }
  Result<> attached(const AttachedNic& nic) override {
    told = nic;
    return success();
  }
  NicRequest last;
  AttachedNic told;
  int removed = 0;
};

class LocalServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "local.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    socket_ = root_ + "/run/spiderpool.sock";
    auto started = LocalService::start(socket_, stub_);
    ASSERT_TRUE(started.ok()) << started.error().message();
    service_ = std::move(started).value();
  }
  void TearDown() override {
    service_.reset();
    fs::remove_all(root_);
  }

  PluginCall call(const std::string& command, const std::string& pod = "web") const {
    PluginCall out;
    out.command = command;
    out.container = "abc";
    out.network_namespace = "/run/ns";
    out.interface = "eth0";
    out.pod = {"default", pod, "uid-1"};
    out.socket = socket_;
    out.config = *json::parse(
        R"({"cniVersion": "0.3.1", "name": "n",
            "ipam": {"type": "spiderpool", "default_ipv4_ippool": ["a", "b"]}})");
    return out;
  }

  Stub stub_;
  std::string root_;
  std::string socket_;
  std::unique_ptr<LocalService> service_;
};

TEST_F(LocalServiceTest, gives_the_plugin_addresses) {
  const auto result = run_ipam(call("ADD"));
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ((*result)["ips"][0]["address"].as_string(), "172.18.30.131/16");
  EXPECT_EQ(stub_.last.pod.uid, "uid-1");
  EXPECT_EQ(stub_.last.ipv4_pools.size(), 2U);
  EXPECT_TRUE(run_ipam(call("CHECK")).ok());
  EXPECT_TRUE(run_ipam(call("DEL")).ok());
  EXPECT_EQ(stub_.removed, 1);
}

TEST_F(LocalServiceTest, hands_on_why_there_is_none) {
  const auto result = run_ipam(call("ADD", "poor"));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message(), "spiderpool IP allocation error: all IP addresses used out");
}

TEST_F(LocalServiceTest, without_a_driver_only_removals_succeed) {
  service_->stop();
  PluginCall add = call("ADD");
  add.config.mut("ipam").set("ipam_unix_socket_path", socket_);
  const auto result = run_ipam(add);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("unhealthy spiderpool-agent backend: socket"));
  PluginCall del = call("DEL");
  del.config.mut("ipam").set("ipam_unix_socket_path", socket_);
  EXPECT_TRUE(run_ipam(del).ok());
}

TEST_F(LocalServiceTest, is_for_root_alone) {
  struct stat there = {};
  ASSERT_EQ(::stat(socket_.c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 0777, 0600U);
}

TEST_F(LocalServiceTest, a_later_one_takes_the_place_of_an_earlier_one) {
  auto later = LocalService::start(socket_, stub_);
  ASSERT_TRUE(later.ok()) << later.error().message();
  service_->stop();
  EXPECT_TRUE(LocalClient(socket_).health(5s).ok());
  (*later)->stop();
  EXPECT_FALSE(fs::exists(socket_));
}

TEST_F(LocalServiceTest, answers_garbage_with_an_error) {
  const auto channel = rpc::connect_unix(socket_);
  const std::string good =
      R"({"namespace": "a", "pod": "b", "interface": "eth0", "container": "c"})";
  EXPECT_TRUE(channel->call(kLocalAdd, good, 5s).status.ok());
  for (const std::string& bad :
       {std::string(), std::string("what"), std::string("[]"), std::string("{}"),
        std::string(R"({"namespace": "a/../b", "pod": "b", "interface": "e", "container": "c"})"),
        std::string(R"({"namespace": "..", "pod": "b", "interface": "e", "container": "c"})"),
        std::string(R"({"namespace": "a", "pod": 7, "interface": "e", "container": "c"})"),
        std::string(R"({"namespace": "a", "pod": "b", "interface": "e", "container": "c",)"
                    R"( "ipv4Pools": "x"})"),
        std::string(R"({"namespace": "a", "pod": "b", "interface": "e", "container": "c",)"
                    R"( "uid": "x y"})"),
        std::string(100'000, ' ') + good}) {
    for (const char* method : {kLocalAdd, kLocalDel, kLocalAttached}) {
      // It has no pools.
      if (method == kLocalAttached && bad.find("ipv4Pools") != std::string::npos) continue;
      const auto reply = channel->call(method, bad, 5s);
      EXPECT_FALSE(reply.status.ok()) << method << " " << bad.substr(0, 80);
    }
  }
  EXPECT_FALSE(channel->call("/spiderpool.v1.Local/What", "{}", 5s).status.ok());
}

TEST_F(LocalServiceTest, hears_of_interfaces) {
  AttachedNic nic;
  nic.pod = {"default", "web", "uid-1"};
  nic.interface = "eth0";
  nic.container = "abc";
  nic.mac = "0a:1b:ac:12:1e:83";
  nic.ips = {"172.18.30.131/16"};
  ASSERT_TRUE(LocalClient(socket_).attached(nic, 5s).ok());
  EXPECT_EQ(stub_.told.mac, nic.mac);
  EXPECT_EQ(stub_.told.ips, nic.ips);
  EXPECT_TRUE(LocalClient(socket_).coordinator({nic.pod, "eth0", "abc"}, 5s).ok());
}

}  // namespace
}  // namespace dibs::drivers::net
