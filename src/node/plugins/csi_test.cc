#include <gmock/gmock.h>

#include "client/testing/fake_api.h"
#include "client/transport.h"
#include "json/parse.h"
#include "json/test_text.h"
#include "node/plugins/csi_drivers.h"
#include "node/plugins/csi_node.h"
#include "node/plugins/fake_csi_driver.h"
#include "runtime/sim_runtime.h"

namespace dibs::node::test {
namespace {

using json::Value;
using json::test::from_text;
using testing::HasSubstr;

constexpr const char* kCsiNode = "/apis/storage.k8s.io/v1/csinodes/node-0";
constexpr const char* kNode = "/api/v1/nodes/node-0";

struct CsiDriversTest : testing::Test {
  runtime::SimRuntime sim;
  client::FakeApi api;
  rpc::MemoryNetwork network;
  std::string root = "/tmp/dibs-no-such-root";
  FakeCsiDriver driver{network, root, testing::TempDir()};
  std::unique_ptr<client::Transport> transport =
      client::make_in_process_transport(api.handler(), sim.runtime());
  client::Client client{*transport};
  CsiDrivers drivers{{"node-0", FakeCsiDriver::paths(root),
                      [this](const std::string& path) { return network.connect(path); }},
                     client,
                     sim.runtime()};

  CsiDriversTest() { put_node("uid-1", "{}"); }
  ~CsiDriversTest() override {
    drivers.stop();
    sim.run_until_idle();
  }

  void put_node(const std::string& uid, const std::string& labels) {
    api.put(kNode, from_text("{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'node-0', "
                             "'uid': '" +
                             uid + "', 'labels': " + labels + "}}"));
  }
  static PluginInfo info(std::vector<std::string> versions = {"1.0.0"},
                         const std::string& name = "fake.csi") {
    return {"CSIPlugin", name, FakeCsiDriver::kEndpoint, std::move(versions)};
  }
  static std::string text(const Result<>& result) {
    return result ? std::string() : result.error().message();
  }
};

TEST_F(CsiDriversTest, a_driver_is_written_into_the_node_and_its_csi_node) {
  driver.topology = {{"topology.fake/zone", "a"}};
  driver.max_volumes = 7;
  int changes = 0;
  drivers.on_change = [&](const std::string&) { ++changes; };

  ASSERT_EQ(text(drivers.validate(info())), "");
  ASSERT_EQ(text(drivers.add(info())), "");

  EXPECT_EQ(changes, 1);
  const Value node = *api.get(kNode);
  EXPECT_EQ(node["metadata"]["labels"]["topology.fake/zone"].as_string(), "a");
  EXPECT_EQ(node["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"].as_string(),
            R"({"fake.csi":"node-0-id"})");
  const Value made = *api.get(kCsiNode);
  EXPECT_EQ(made["metadata"]["ownerReferences"][0]["uid"].as_string(), "uid-1");
  EXPECT_EQ(made["spec"]["drivers"],
            from_text("[{'name': 'fake.csi', 'nodeID': 'node-0-id', 'topologyKeys': "
                      "['topology.fake/zone'], 'allocatable': {'count': 7}}]"));
  EXPECT_TRUE(drivers.find("fake.csi").ok());

  drivers.remove(info());
  sim.advance(std::chrono::seconds(1));
  EXPECT_FALSE(drivers.find("fake.csi").ok());
  EXPECT_TRUE((*api.get(kCsiNode))["spec"]["drivers"].empty());
  EXPECT_FALSE(
      (*api.get(kNode))["metadata"]["annotations"].contains("csi.volume.kubernetes.io/nodeid"));
}

TEST_F(CsiDriversTest, the_entry_of_one_that_is_gone_is_taken_back_when_the_server_answers_again) {
  ASSERT_EQ(text(drivers.add(info())), "");
  api.fail("PUT", 503, "ServiceUnavailable", 3);
  drivers.remove(info());
  sim.advance(std::chrono::seconds(10));
  EXPECT_TRUE((*api.get(kCsiNode))["spec"]["drivers"].empty());
}

TEST_F(CsiDriversTest, a_csi_node_of_an_earlier_node_is_made_anew) {
  ASSERT_TRUE(ensure_csi_node(client, "node-0").ok());
  put_node("uid-2", "{}");
  ASSERT_EQ(text(drivers.add(info())), "");
  EXPECT_EQ((*api.get(kCsiNode))["metadata"]["ownerReferences"][0]["uid"].as_string(), "uid-2");
  EXPECT_EQ((*api.get(kCsiNode))["spec"]["drivers"].size(), 1U);
}

TEST_F(CsiDriversTest, topology_does_not_overrule_a_label) {
  put_node("uid-1", "{'topology.fake/zone': 'b'}");
  driver.topology = {{"topology.fake/zone", "a"}};
  EXPECT_THAT(text(drivers.add(info())),
              HasSubstr("detected topology value collision: driver reported "
                        "\"topology.fake/zone\":\"a\" but existing label is "
                        "\"topology.fake/zone\":\"b\""));
  EXPECT_FALSE(drivers.find("fake.csi").ok());
}

TEST_F(CsiDriversTest, impostors_are_refused) {
  EXPECT_THAT(text(drivers.validate(info({"2.0.0"}))), HasSubstr("are supported"));
  EXPECT_THAT(text(drivers.validate(info({}))), HasSubstr("empty list for supported versions"));
  // It would become a folder outside of the driver's.
  EXPECT_THAT(text(drivers.validate(info({"1.0.0"}, "../../../etc"))), HasSubstr("domain name"));
  ASSERT_EQ(text(drivers.add(info())), "");
  PluginInfo second = info();
  second.endpoint = "/var/lib/kubelet/plugins/evil/csi.sock";
  EXPECT_THAT(text(drivers.validate(second)), HasSubstr("already registered"));
  EXPECT_FALSE(drivers.add(second).ok());
  // Nor does its end take the other's place.
  drivers.remove(second);
  EXPECT_TRUE(drivers.find("fake.csi").ok());
}

TEST_F(CsiDriversTest, paths_are_told_as_the_driver_knows_them) {
  const Connect connect = [this](const std::string& path) { return network.connect(path); };
  const CsiDriver inside(info(), FakeCsiDriver::paths(root), connect);
  EXPECT_EQ(inside.seen(root + "/pods/u"), "/var/lib/kubelet/pods/u");
  EXPECT_EQ(inside.seen(root + "-other/pods/u"), root + "-other/pods/u");
  PluginInfo real = info();
  real.endpoint = "unix://" + root + "/plugins/fake/csi.sock";
  CsiDriver outside(real, FakeCsiDriver::paths(root), connect);
  EXPECT_EQ(outside.seen(root + "/pods/u"), root + "/pods/u");
  EXPECT_TRUE(outside.node_info().ok());
}

}  // namespace
}  // namespace dibs::node::test
