#include "node/runtime/oci_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/strings.h"
#include "json/parse.h"
#include "runtime/files.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

NetworkOptions options_in(const std::string& root) {
  NetworkOptions options;
  options.name = "test";
  options.state = root + "/state";
  options.config_folder = root + "/net.d";
  options.plugin_folders = {root + "/plugins"};
  return options;
}

/// A machine whose only plugin is a shell script. It keeps its "address" in a file, and notes what
/// it did.
class PodNetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "network.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    fs::create_directories(root_ + "/net.d");
    fs::create_directories(root_ + "/plugins");
    write("/net.d/10-fake.conflist",
          R"({"cniVersion": "1.0.0", "name": "fake", "plugins": [{"type": "fake"}]})");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    std::ofstream(root_ + path, std::ios::binary) << text;
  }
  std::string read(const std::string& path) const {
    auto text = runtime::system_files().read(root_ + path);
    return text.ok() ? *text : "";
  }
  bool exists(const std::string& path) const { return fs::exists(root_ + path); }
  /// `on_add` comes before the address is given out.
  void make_plugin(const std::string& on_add, const std::string& on_delete = "") const {
    write("/plugins/fake",
          cat("#!/bin/sh\nd=", root_, "\nif [ $CNI_COMMAND = ADD ]; then\n", on_add,
              "\necho $CNI_CONTAINERID > $d/address; echo added >> $d/log\n",
              "echo '{\"ips\": [{\"address\": \"10.0.0.7/16\"}]}'\nelse\n", on_delete,
              "\nrm -f $d/address; echo deleted >> $d/log\nfi\n"));
    ::chmod((root_ + "/plugins/fake").c_str(), 0755);
  }

  std::string root_;
};

TEST_F(PodNetworkTest, adds_as_planned_and_removes_what_was_added) {
  make_plugin("");
  PodNetwork network(options_in(root_));

  const auto plan = network.plan({});
  ASSERT_TRUE(plan.ok());
  const auto added = network.add("one", "/ns", {}, *plan);
  ASSERT_TRUE(added.ok()) << added.error().message();
  EXPECT_THAT(added->ips, testing::ElementsAre("10.0.0.7"));
  EXPECT_EQ(read("/address"), "one\n");

  // Nobody knows it any more, except what was noted.
  fs::remove(root_ + "/net.d/10-fake.conflist");
  ASSERT_TRUE(network.remove("one", "", {}, *plan).ok());
  EXPECT_FALSE(exists("/address"));
  EXPECT_TRUE(fs::is_empty(root_ + "/state/adding"));
}

TEST_F(PodNetworkTest, a_new_network_takes_away_those_whose_owner_is_gone) {
  fs::remove_all(root_ + "/net.d");
  for (const char* type : {"bridge", "host-local", "portmap"}) write(cat("/plugins/", type), "");
  for (const char* type : {"bridge", "host-local", "portmap"}) {
    ::chmod(cat(root_, "/plugins/", type).c_str(), 0755);
  }
  const auto make = [&](const std::string& owner) {
    NetworkOptions options = options_in(root_);
    options.name = root_ + "/" + owner;
    options.state = root_ + "/net-" + owner;
    fs::create_directories(options.name);
    EXPECT_TRUE(PodNetwork(options).ready().ok());
  };
  make("one");
  make("two");
  const std::string range = read("/net-one/range");
  EXPECT_NE(range, "");
  EXPECT_NE(range, read("/net-two/range"));
  fs::remove_all(root_ + "/one");
  make("two");
  EXPECT_TRUE(exists("/net-one"));

  make("three");

  EXPECT_FALSE(exists("/net-one"));
  EXPECT_TRUE(exists("/net-two"));
  EXPECT_TRUE(exists("/net-three"));
}

TEST_F(PodNetworkTest, a_failed_addition_is_taken_back_at_once) {
  make_plugin("echo kept > $d/address; echo '{\"msg\": \"no more\"}'; exit 1");
  PodNetwork network(options_in(root_));

  const auto added = network.add("one", "/ns", {}, *network.plan({}));

  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().message(),
            "failed to setup network for sandbox \"one\": plugin type=\"fake\" failed (add): "
            "no more");
  EXPECT_FALSE(exists("/address"));
  EXPECT_TRUE(fs::is_empty(root_ + "/state/adding"));
}

TEST_F(PodNetworkTest, a_removal_that_failed_can_be_repeated) {
  make_plugin("", "[ -e $d/broken ] && exit 1");
  PodNetwork network(options_in(root_));
  const auto plan = network.plan({});
  ASSERT_TRUE(network.add("one", "/ns", {}, *plan).ok());

  write("/broken", "");
  EXPECT_FALSE(network.remove("one", "", {}, *plan).ok());
  EXPECT_TRUE(exists("/address"));
  fs::remove(root_ + "/broken");
  EXPECT_TRUE(network.remove("one", "", {}, *plan).ok());

  EXPECT_FALSE(exists("/address"));
}

/// What notes every call as "COMMAND INTERFACE NETWORK".
constexpr const char* kRecorder = R"(#!/bin/sh
d=$(dirname $0)/..
cat > $d/input
name=$(grep -o '"name":"[a-z0-9]*' $d/input | head -1 | cut -d '"' -f 4)
echo $CNI_COMMAND $CNI_IFNAME $name >> $d/log
[ $CNI_COMMAND = ADD ] || exit 0
[ -e $d/fail-$CNI_IFNAME ] && { echo '{"msg": "no"}'; exit 1; }
cat <<END
{"interfaces": [{"name": "$CNI_IFNAME", "mac": "0a:00:00:00:00:01", "sandbox": "/ns"}],
 "ips": [{"address": "10.0.0.7/16", "gateway": "10.0.0.1"}]}
END
)";

SandboxConfig with_networks(std::vector<SandboxNetwork> networks) {
  SandboxConfig sandbox;
  sandbox.networks = std::move(networks);
  return sandbox;
}

class NamedNetworksTest : public PodNetworkTest {
 protected:
  void SetUp() override {
    PodNetworkTest::SetUp();
    write("/plugins/fake", kRecorder);
    ::chmod((root_ + "/plugins/fake").c_str(), 0755);
  }
};

TEST_F(NamedNetworksTest, stand_in_for_the_nodes_own_or_beside_it) {
  PodNetwork network(options_in(root_));
  const std::string config = R"({"cniVersion": "1.0.0", "plugins": [{"type": "fake"}]})";

  const SandboxConfig beside = with_networks({{"team/a", "net1", config, "", {}, ""}});
  auto added = network.add("one", "/ns", beside, *network.plan(beside));
  ASSERT_TRUE(added.ok()) << added.error().message();
  EXPECT_TRUE(network.remove("one", "", beside, added->cni).ok());
  EXPECT_EQ(read("/log"), "ADD eth0 fake\nADD net1 a\nDEL net1 a\nDEL eth0 fake\n");
  const auto status = json::parse(added->status);
  ASSERT_TRUE(status.ok()) << added->status;
  EXPECT_EQ(json::write(*status),
            R"([{"name":"fake","interface":"eth0","ips":["10.0.0.7"],"mac":"0a:00:00:00:00:01",)"
            R"("default":true,"dns":{},"gateway":["10.0.0.1"]},)"
            R"({"name":"team/a","interface":"net1","ips":["10.0.0.7"],"mac":"0a:00:00:00:00:01",)"
            R"("dns":{},"gateway":["10.0.0.1"]}])");

  fs::remove(root_ + "/log");
  const SandboxConfig instead = with_networks({{"kube-system/b", "eth0", config, "", {}, ""}});
  added = network.add("two", "/ns", instead, *network.plan(instead));
  ASSERT_TRUE(added.ok()) << added.error().message();
  EXPECT_THAT(added->ips, testing::ElementsAre("10.0.0.7"));
  EXPECT_EQ(read("/log"), "ADD eth0 b\n");
}

TEST_F(NamedNetworksTest, are_all_taken_back_when_one_fails) {
  PodNetwork network(options_in(root_));
  const std::string config = R"({"plugins": [{"type": "fake"}]})";
  const SandboxConfig sandbox = with_networks(
      {{"team/a", "net1", config, "", {}, ""}, {"team/b", "net2", config, "", {}, ""}});
  write("/fail-net2", "");

  const auto added = network.add("one", "/ns", sandbox, *network.plan(sandbox));

  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().message(),
            "failed to setup network for sandbox \"one\": network team/b: plugin type=\"fake\" "
            "failed (add): no");
  EXPECT_EQ(read("/log"),
            "ADD eth0 fake\nADD net1 a\nADD net2 b\nDEL net2 b\nDEL net1 a\nDEL eth0 fake\n");
}

TEST_F(NamedNetworksTest, are_removed_by_the_plan_alone) {
  PodNetwork network(options_in(root_));
  const SandboxConfig sandbox =
      with_networks({{"team/a", "net1", R"({"plugins": [{"type": "fake"}]})", "", {}, ""}});
  const auto plan = network.plan(sandbox);
  ASSERT_TRUE(plan.ok());
  // As an agent that was killed: it knows what it had noted, and of the sandbox only its name.
  EXPECT_TRUE(network.remove("one", "", {}, *plan).ok());
  EXPECT_EQ(read("/log"), "DEL net1 a\nDEL eth0 fake\n");
  // And records of an agent that had one network only.
  fs::remove(root_ + "/log");
  EXPECT_TRUE(
      network
          .remove("one", "", {}, json::Value::object({{"list", (*plan)["attachments"][1]["list"]}}))
          .ok());
  EXPECT_EQ(read("/log"), "DEL eth0 a\n");
}

TEST_F(NamedNetworksTest, without_a_configuration_are_those_of_the_node) {
  PodNetwork network(options_in(root_));
  write("/net.d/90-other.conf", R"({"name": "other", "type": "fake"})");
  const auto plan = network.plan(with_networks({{"team/other", "net1", "", "", {}, ""}}));
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  EXPECT_EQ((*plan)["attachments"][1]["list"]["name"].as_string(), "other");
  const auto none = network.plan(with_networks({{"team/none", "net1", "", "", {}, ""}}));
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message(),
              testing::HasSubstr("network team/none: it has no spec.config"));
}

TEST_F(NamedNetworksTest, run_no_program_but_plugins) {
  PodNetwork network(options_in(root_));
  for (const char* bad :
       {R"({"plugins": [{"type": "../../bin/sh"}]})", R"({"plugins": [{"type": "/bin/sh"}]})",
        R"({"plugins": [{"type": ".."}]})", R"({"plugins": [{"type": "fake\u0000x"}]})",
        R"({"plugins": [{"type": "fake", "ipam": {"type": "../x"}}]})", R"({"type": "a/b"})",
        R"({"plugins": []})", "[]", "what"}) {
    EXPECT_FALSE(network.plan(with_networks({{"team/a", "net1", bad, "", {}, ""}})).ok()) << bad;
  }
  // One that is in no plugin folder is named.
  const SandboxConfig unknown =
      with_networks({{"team/a", "net1", R"({"plugins": [{"type": "sh"}]})", "", {}, ""}});
  const auto added = network.add("one", "/ns", unknown, *network.plan(unknown));
  ASSERT_FALSE(added.ok());
  EXPECT_THAT(added.error().message(), testing::HasSubstr("failed to find plugin \"sh\" in path"));
}

TEST_F(NamedNetworksTest, are_given_what_the_pod_asks_for_or_refused) {
  PodNetwork network(options_in(root_));
  const SandboxNetwork asked = {"team/a",
                                "net1",
                                R"({"plugins": [{"type": "fake", "capabilities": {"mac": true,
                                   "ips": true}}]})",
                                "0a:00:00:00:00:07",
                                {"10.0.0.9/16"},
                                "0000:81:00.2"};
  const SandboxConfig sandbox = with_networks({asked});
  ASSERT_TRUE(network.add("one", "/ns", sandbox, *network.plan(sandbox)).ok());
  EXPECT_THAT(
      read("/input"),
      testing::HasSubstr(R"("runtimeConfig":{"mac":"0a:00:00:00:00:07","ips":["10.0.0.9/16"]})"));
  EXPECT_THAT(read("/input"), testing::HasSubstr(R"("deviceID":"0000:81:00.2")"));
  SandboxNetwork unable = asked;
  unable.config = R"({"plugins": [{"type": "fake", "capabilities": {"ips": true}}]})";
  const auto plan = network.plan(with_networks({unable}));
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message(), testing::HasSubstr("the pod asks for \"mac\""));
}

TEST_F(NamedNetworksTest, find_plugins_of_our_own_first) {
  NetworkOptions options = options_in(root_);
  options.own_folder = root_ + "/own";
  options.program = root_ + "/plugins/fake";
  options.own_plugins = {"spiderpool", "coordinator"};
  PodNetwork network(options);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(network.link_plugins().ok());
  EXPECT_EQ(fs::read_symlink(root_ + "/own/spiderpool"), options.program);
  options.program = "/elsewhere";
  ASSERT_TRUE(PodNetwork(options).link_plugins().ok());
  EXPECT_EQ(fs::read_symlink(root_ + "/own/coordinator"), "/elsewhere");
}

// The victim: not a test of its own.
TEST(PodNetworkCrash, DISABLED_victim) {
  const char* root = std::getenv("DIBS_CRASH_ROOT");
  if (root == nullptr) GTEST_SKIP() << "run by the test below";
  PodNetwork network(options_in(root));
  (void)network.add("one", "/ns", {}, *network.plan({})).ok();
}

TEST_F(PodNetworkTest, removal_waits_for_an_addition_whose_agent_was_killed) {
  // As bridge and host-local do: the address is given out by a child of the plugin.
  make_plugin(
      "sh -c 'echo > $0/began; read go < $0/gate; echo $1 > $0/address; echo child >> $0/log' "
      "$d $CNI_CONTAINERID; exit 1");
  ASSERT_EQ(::mkfifo((root_ + "/began").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((root_ + "/gate").c_str(), 0600), 0);
  {
    auto victim = runtime::Process::start(
        {.argv = {"/proc/self/exe", "--gtest_filter=PodNetworkCrash.DISABLED_victim",
                  "--gtest_also_run_disabled_tests"},
         .env =
             std::vector<std::string>{"DIBS_CRASH_ROOT=" + root_, "PATH=/usr/sbin:/usr/bin:/bin"}});
    ASSERT_TRUE(victim.ok());
    EXPECT_EQ(read("/began"), "\n");  // opens when the child is there
  }
  ASSERT_TRUE(exists("/state/adding/one"));

  PodNetwork network(options_in(root_));
  Result<> removed = Error::internal("did not run");
  std::thread next([&] { removed = network.remove("one", "", {}, *network.plan({})); });
  // Time enough for one that does not wait; less than it waits at most, however busy the machine.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < end && !exists("/log")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  write("/gate", "go\n");
  next.join();

  EXPECT_TRUE(removed.ok());
  EXPECT_EQ(read("/log"), "child\ndeleted\n");
  EXPECT_FALSE(exists("/address"));
  EXPECT_FALSE(exists("/state/adding/one"));
}

}  // namespace
}  // namespace dibs::node
