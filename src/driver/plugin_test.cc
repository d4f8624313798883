#include "driver/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/strings.h"
#include "driver/test_world.h"
#include "json/yaml.h"
#include "proto/plugin_registration.pb.h"

namespace dibs::driver {
namespace {

using json::Value;
using test::from_text;
using test::TestWorld;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Lamps : public Driver {
 public:
  Result<std::vector<Pool>> devices() override {
    if (unknown) return Error::unavailable("not counted yet");
    std::vector<Device> list;
    for (int i = 0; i < lamps; ++i) list.push_back(Device(cat("lamp-", i)).attribute("index", i));
    return std::vector<Pool>{make_pool("node-0", std::move(list))};
  }
  Result<std::vector<PreparedDevice>> prepare(const Claim& claim) override {
    calls.push_back(cat("prepare ", claim.id.name, claim.prepared ? " again" : ""));
    if (broken) return Error::internal("the fuse is gone");
    if (throws) throw std::runtime_error("sparks");
    std::vector<PreparedDevice> out;
    for (const auto& device : claim.devices) {
      out.push_back(prepared(device, env_edits({cat("LAMP=", device.device)})));
      out.back().cdi_version = cdi_version;
    }
    return out;
  }
  Result<> unprepare(const ClaimName& claim) override {
    calls.push_back(cat("unprepare ", claim.name));
    if (broken) return Error::internal("the fuse is gone");
    return success();
  }

  int lamps = 2;
  std::string cdi_version;
  bool unknown = false;
  bool broken = false;
  bool throws = false;
  std::vector<std::string> calls;
};

constexpr const char* kDriver = "lamps.example.com";

std::string one_lamp(const std::string& lamp, const std::string& more = "") {
  return cat(
      "{'devices': {'results': [{'request': 'r', 'driver': 'lamps.example.com', 'pool': "
      "'node-0', 'device': '",
      lamp, "'", more, "}]}}");
}

class PluginTest : public testing::Test {
 protected:
  std::unique_ptr<Plugin> start(PluginOptions options) {
    auto plugin = expect_started(Plugin::start(lamps, world.environment(), std::move(options)));
    world.settle();
    return plugin;
  }
  static std::unique_ptr<Plugin> expect_started(Result<std::unique_ptr<Plugin>> started) {
    EXPECT_TRUE(started.ok()) << started.error().message();
    return started ? std::move(started).value() : nullptr;
  }
  std::unique_ptr<Plugin> start() { return start(TestWorld::options(kDriver)); }

  std::vector<std::string> cdi_files() { return *world.files->list("/node/cdi"); }

  TestWorld world;
  Lamps lamps;
};

/// Tells what it hears of its plugin.
class Informed : public Lamps {
 public:
  void started(Plugin& given) override {
    calls.emplace_back("started");
    plugin = &given;
  }
  void stopping() override { calls.emplace_back("stopping"); }
  Plugin* plugin = nullptr;
};

TEST_F(PluginTest, is_handed_to_its_driver_once_and_for_its_life) {
  Informed informed;
  auto plugin =
      expect_started(Plugin::start(informed, world.environment(), TestWorld::options(kDriver)));
  world.settle();
  EXPECT_EQ(informed.plugin, plugin.get());

  informed.lamps = 3;
  EXPECT_TRUE(informed.plugin->publish().ok());
  world.settle();
  EXPECT_EQ(world.slices().at(0)["spec"]["devices"].size(), 3u);

  plugin->stop();
  plugin.reset();
  EXPECT_THAT(informed.calls, ElementsAre("started", "stopping"));
}

TEST_F(PluginTest, that_cannot_start_is_nobody_s) {
  Informed informed;
  auto options = TestWorld::options(kDriver);
  options.registry_dir = "/" + std::string(200, 'r');
  EXPECT_FALSE(Plugin::start(informed, world.environment(), options).ok());
  EXPECT_THAT(informed.calls, IsEmpty());
}

TEST_F(PluginTest, registers_and_publishes) {
  world.has_agent = false;
  auto plugin = start();
  EXPECT_THAT(world.network.paths("/node"),
              ElementsAre("/node/plugins/lamps.example.com/dra.sock",
                          "/node/plugins_registry/lamps.example.com-reg.sock"));
  EXPECT_FALSE(plugin->registration().has_value());

  const auto channel = world.network.connect(plugin->registration_socket());
  pluginregistration::PluginInfo info;
  info.ParseFromString(
      channel->call("/pluginregistration.Registration/GetInfo", "", std::chrono::seconds(1)).bytes);
  EXPECT_EQ(info.type(), "DRAPlugin");
  EXPECT_EQ(info.name(), kDriver);
  EXPECT_EQ(info.endpoint(), plugin->service_socket());
  EXPECT_THAT(info.supported_versions(), ElementsAre("v1.DRAPlugin", "v1beta1.DRAPlugin"));

  pluginregistration::RegistrationStatus refused;
  refused.set_error("no thanks");
  const std::string method = "/pluginregistration.Registration/NotifyRegistrationStatus";
  const auto told = channel->call(method, refused.SerializeAsString(), std::chrono::seconds(1));
  EXPECT_EQ(told.status.code, rpc::Code::unknown);
  EXPECT_EQ(told.status.message, "failed registration process: no thanks");
  EXPECT_EQ(plugin->registration()->error().message(), "failed registration process: no thanks");
  world.settle();
  // An agent that does not know the driver would take what is published for left over.
  EXPECT_THAT(world.slices(), IsEmpty());
  EXPECT_FALSE(plugin->is_published());

  pluginregistration::RegistrationStatus taken;
  taken.set_plugin_registered(true);
  EXPECT_TRUE(
      channel->call(method, taken.SerializeAsString(), std::chrono::seconds(1)).status.ok());
  EXPECT_TRUE(plugin->registration()->ok());

  world.settle();
  EXPECT_TRUE(plugin->is_published());
  ASSERT_EQ(world.slices().size(), 1u);
  lamps.lamps = 3;
  ASSERT_TRUE(plugin->publish().ok());
  world.settle();
  EXPECT_EQ(world.slices()[0]["spec"]["devices"].size(), 3u);

  plugin->stop();
  EXPECT_THAT(world.network.paths("/node"), IsEmpty());
  EXPECT_EQ(world.slices().size(), 1u);
}

TEST_F(PluginTest, publishes_without_an_agent_too_but_later) {
  world.has_agent = false;
  auto plugin = start();
  world.settle(std::chrono::seconds(8));
  EXPECT_THAT(world.slices(), IsEmpty());
  world.settle(std::chrono::seconds(3));
  EXPECT_EQ(world.slices().size(), 1u);
}

TEST_F(PluginTest, publishes_at_once_when_an_agent_that_deleted_all_knows_it_again) {
  PluginOptions options = TestWorld::options(kDriver);
  options.pod_uid = "p";  // whose slices are put right late: another instance may have its reasons
  auto plugin = start(options);
  ASSERT_EQ(world.slices().size(), 1u);
  world.has_agent = false;
  ASSERT_TRUE(
      world.api->remove(test::kSlices, "", world.slices()[0]["metadata"]["name"].str()).ok());
  world.settle();
  EXPECT_THAT(world.slices(), IsEmpty());
  world.has_agent = true;
  world.settle();
  EXPECT_EQ(world.slices().size(), 1u);
}

TEST_F(PluginTest, prepares_once_and_answers_again) {
  auto plugin = start();
  const ClaimName claim = TestWorld::name_of(world.make_claim("a", one_lamp("lamp-1")));

  for (int i = 0; i < 2; ++i) {
    const auto response = world.prepare(*plugin, {claim});

    ASSERT_TRUE(world.status.ok()) << world.status.text();
    const auto& entry = response.claims().at(claim.uid);
    EXPECT_EQ(entry.error(), "");
    ASSERT_EQ(entry.devices_size(), 1);
    EXPECT_THAT(entry.devices(0).request_names(), ElementsAre("r"));
    EXPECT_EQ(entry.devices(0).pool_name(), "node-0");
    EXPECT_EQ(entry.devices(0).device_name(), "lamp-1");
    EXPECT_FALSE(entry.devices(0).has_share_id());
    EXPECT_THAT(entry.devices(0).cdi_device_ids(),
                ElementsAre(cat("k8s.lamps.example.com/claim=", claim.uid, "-lamp-1")));
  }
  EXPECT_THAT(lamps.calls, ElementsAre("prepare a", "prepare a again"));
  const std::string file = cat("k8s.lamps.example.com-claim_", claim.uid, ".yaml");
  EXPECT_THAT(cdi_files(), ElementsAre(file));
  const auto spec = json::parse_yaml(*world.files->read("/node/cdi/" + file));
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ((*spec)["devices"][0]["containerEdits"], from_text("{'env': ['LAMP=lamp-1']}"));
  EXPECT_EQ((*spec)["devices"][0]["name"].str(), cat(claim.uid, "-lamp-1"));

  for (int i = 0; i < 2; ++i) {
    const auto gone = world.unprepare(*plugin, {claim});
    EXPECT_EQ(gone.claims().at(claim.uid).error(), "");
    EXPECT_THAT(cdi_files(), IsEmpty());
  }
}

TEST_F(PluginTest, writes_one_cdi_device_per_claim_as_classic_drivers_do) {
  PluginOptions options = TestWorld::options(kDriver);
  options.cdi_per_claim = true;
  options.guard_devices = false;
  auto plugin = start(options);
  const ClaimName claim = TestWorld::name_of(world.make_claim(
      "a",
      "{'devices': {'results': [{'request': 'r', 'driver': 'lamps.example.com', 'pool': 'node-0', "
      "'device': 'lamp-0'}, {'request': 'r', 'driver': 'lamps.example.com', 'pool': 'node-0', "
      "'device': 'lamp-1'}]}}"));
  lamps.cdi_version = "0.6.0";
  const auto response = world.prepare(*plugin, {claim});
  const std::string id = cat("k8s.lamps.example.com/claim=", claim.uid);
  ASSERT_EQ(response.claims().at(claim.uid).devices_size(), 2);
  for (const auto& device : response.claims().at(claim.uid).devices()) {
    ASSERT_EQ(device.cdi_device_ids_size(), 1);
    EXPECT_EQ(device.cdi_device_ids(0), id);
  }
  const auto text =
      world.files->read(cat("/node/cdi/k8s.lamps.example.com-claim_", claim.uid, ".yaml"));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, cat("---\n"
                       "cdiVersion: 0.6.0\n"
                       "containerEdits: {}\n"
                       "devices:\n"
                       "- containerEdits:\n"
                       "    env:\n"
                       "    - LAMP=lamp-0\n"
                       "    - LAMP=lamp-1\n"
                       "  name: ",
                       claim.uid, "\nkind: k8s.lamps.example.com/claim\n"));
  world.unprepare(*plugin, {claim});
  EXPECT_THAT(*world.files->list("/node/cdi"), IsEmpty());
  lamps.cdi_version = "0.9.9";
  EXPECT_THAT(world.prepare(*plugin, {claim}).claims().at(claim.uid).error(),
              HasSubstr("invalid version \"0.9.9\""));
  EXPECT_THAT(*world.files->list("/node/cdi"), IsEmpty());
}

TEST_F(PluginTest, starts_before_the_driver_knows_its_devices) {
  { auto before = start(); }
  const auto slices = world.slices();
  ASSERT_FALSE(slices.empty());
  lamps.unknown = true;
  auto plugin = start();
  EXPECT_EQ(world.slices(), slices);
  lamps.unknown = false;
  lamps.lamps = 3;
  EXPECT_TRUE(plugin->publish().ok());
  world.settle();
  EXPECT_EQ(world.slices()[0]["spec"]["devices"].size(), 3u);
}

TEST_F(PluginTest, an_empty_call_is_good) {
  auto plugin = start();

  EXPECT_EQ(world.prepare(*plugin, {}).claims_size(), 0);
  EXPECT_TRUE(world.status.ok());
  EXPECT_EQ(world.unprepare(*plugin, {}).claims_size(), 0);
  EXPECT_TRUE(world.status.ok());
}

TEST_F(PluginTest, bytes_that_are_no_message_are_refused) {
  auto plugin = start();
  const auto channel = world.network.connect(plugin->service_socket());

  for (const char* method : {"NodePrepareResources", "NodeUnprepareResources"}) {
    EXPECT_EQ(channel->call(cat(TestWorld::kV1, method), "\xff\xff\xff", std::chrono::seconds(1))
                  .status.code,
              rpc::Code::internal);
  }
}

TEST_F(PluginTest, older_services_answer_without_shares) {
  auto plugin = start();
  const ClaimName claim = TestWorld::name_of(world.make_claim(
      "a", one_lamp("lamp-1", ", 'shareID': '11111111-2222-4333-8444-555555555555'")));

  EXPECT_EQ(world.prepare(*plugin, {claim}).claims().at(claim.uid).devices(0).share_id(),
            "11111111-2222-4333-8444-555555555555");
  for (const char* service :
       {"/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/", "/v1alpha3.Node/"}) {
    const auto response = world.prepare(*plugin, {claim}, service);
    ASSERT_TRUE(world.status.ok()) << service;
    const auto& device = response.claims().at(claim.uid).devices(0);
    EXPECT_FALSE(device.has_share_id());
    EXPECT_THAT(device.cdi_device_ids(0), HasSubstr("-11111111-2222-4333-8444-555555555555"));
    EXPECT_TRUE(world.unprepare(*plugin, {}, service).claims().empty());
    EXPECT_TRUE(world.status.ok());
  }
}

TEST_F(PluginTest, a_claim_that_is_not_right_fails_the_call) {
  auto plugin = start();
  const Value object = world.make_claim("a", one_lamp("lamp-0"));
  ASSERT_TRUE(
      world.api
          ->create(test::kClaims, "default", from_text("{'metadata': {'name': 'b'}, 'spec': {}}"))
          .ok());
  struct Case {
    ClaimName claim;
    std::string message;
  };
  const Case cases[] = {
      {{"default", "none", "u"},
       "get resource claims: retrieve claim default/none: resourceclaims.resource.k8s.io \"none\" "
       "not found"},
      {{"default", "b", "u"}, "get resource claims: claim default/b not allocated"},
      {{"default", "a", "u"}, "get resource claims: claim default/a got replaced"},
  };
  for (const auto& one : cases) {
    world.prepare(*plugin, {TestWorld::name_of(object), one.claim});

    EXPECT_EQ(world.status.code, rpc::Code::unknown);
    EXPECT_EQ(world.status.message, one.message);
  }
  EXPECT_THAT(lamps.calls, IsEmpty());
}

TEST_F(PluginTest, errors_of_the_driver_are_told_per_claim) {
  auto plugin = start();
  const ClaimName claim = TestWorld::name_of(world.make_claim("a", one_lamp("lamp-0")));
  lamps.broken = true;

  EXPECT_EQ(
      world.prepare(*plugin, {claim}).claims().at(claim.uid).error(),
      cat("error preparing devices for claim ", claim.uid, ": prepare failed: the fuse is gone"));
  EXPECT_EQ(world.unprepare(*plugin, {claim}).claims().at(claim.uid).error(),
            cat("error unpreparing devices for claim ", claim.uid,
                ": unprepare failed: the fuse is gone"));
  EXPECT_THAT(cdi_files(), IsEmpty());
}

TEST_F(PluginTest, what_a_driver_throws_is_an_error) {
  auto plugin = start();
  const ClaimName claim = TestWorld::name_of(world.make_claim("a", one_lamp("lamp-0")));
  lamps.throws = true;

  EXPECT_EQ(world.prepare(*plugin, {claim}).claims().at(claim.uid).error(),
            cat("error preparing devices for claim ", claim.uid,
                ": prepare failed: the driver threw: sparks"));
}

TEST_F(PluginTest, no_device_is_prepared_for_two_claims) {
  auto plugin = start();
  const ClaimName first = TestWorld::name_of(world.make_claim("a", one_lamp("lamp-0")));
  world.prepare(*plugin, {first});
  // The server's own guard would refuse the second allocation while the first claim is there.
  Value claim = *world.api->get(test::kClaims, "default", "a");
  claim.mut("status").erase("allocation");
  ASSERT_TRUE(world.api->update_status(test::kClaims, "default", claim).ok());
  const ClaimName second = TestWorld::name_of(world.make_claim("b", one_lamp("lamp-0")));

  EXPECT_EQ(world.prepare(*plugin, {second}).claims().at(second.uid).error(),
            cat("error preparing devices for claim ", second.uid,
                ": device lamp-0 of pool node-0 is still prepared for claim ", first.uid));

  world.unprepare(*plugin, {first});
  EXPECT_EQ(world.prepare(*plugin, {second}).claims().at(second.uid).error(), "");
}

TEST_F(PluginTest, two_instances_overlap_in_a_rolling_update) {
  PluginOptions options = TestWorld::options(kDriver);
  options.pod_uid = "one";
  auto old = start(options);
  const ClaimName claim = TestWorld::name_of(world.make_claim("a", one_lamp("lamp-0")));
  world.prepare(*old, {claim});

  options.pod_uid = "two";
  auto young = start(options);
  EXPECT_THAT(world.network.paths("/node"),
              ElementsAre("/node/plugins/lamps.example.com/dra-one.sock",
                          "/node/plugins/lamps.example.com/dra-two.sock",
                          "/node/plugins_registry/lamps.example.com-one-reg.sock",
                          "/node/plugins_registry/lamps.example.com-two-reg.sock"));
  old->stop();

  EXPECT_EQ(world.prepare(*young, {claim}).claims().at(claim.uid).devices_size(), 1);
  EXPECT_THAT(lamps.calls, ElementsAre("prepare a", "prepare a again"));
  EXPECT_EQ(world.slices().size(), 1u);
}

TEST_F(PluginTest, says_which_folder_is_wrong) {
  PluginOptions options = TestWorld::options(kDriver);
  options.registry_dir = "/nowhere";
  Environment with_sockets = world.environment();
  with_sockets.serve = {};
  EXPECT_EQ(Plugin::start(lamps, with_sockets, options).error().message(),
            "registry folder /nowhere: no such folder");

  options = TestWorld::options(kDriver);
  options.data_dir = "/" + std::string(120, 'x');
  EXPECT_THAT(Plugin::start(lamps, world.environment(), options).error().message(),
              HasSubstr("too long, the socket's path would have 130 bytes, and 107 is the most"));
}

TEST_F(PluginTest, metadata_files_describe_the_devices) {
  PluginOptions options = TestWorld::options(kDriver);
  options.metadata = true;
  auto plugin = start(options);
  const ClaimName claim = TestWorld::name_of(world.make_claim("a", one_lamp("lamp-0")));

  const auto response = world.prepare(*plugin, {claim});

  EXPECT_THAT(response.claims().at(claim.uid).devices(0).cdi_device_ids(),
              ElementsAre(cat("k8s.lamps.example.com/claim=", claim.uid, "-lamp-0"),
                          cat("lamps.example.com/metadata=", claim.uid, "_r")));
  const std::string file =
      "/node/plugins/lamps.example.com/dra-device-metadata/default_a/r/metadata.json";
  const auto text = world.files->read(file);
  ASSERT_TRUE(text.ok());
  const auto first = json::parse(text->substr(0, text->find('\n')));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*first, from_text(cat(R"({'kind': 'DeviceMetadata',
      'apiVersion': 'metadata.resource.k8s.io/v1beta1',
      'metadata': {'name': 'a', 'namespace': 'default', 'uid': ')",
                                  claim.uid, R"(', 'generation': 1},
      'requests': [{'name': 'r', 'devices': [
          {'driver': 'lamps.example.com', 'pool': 'node-0', 'name': 'lamp-0'}]}]})")));
  const auto spec = json::parse(
      *world.files->read(cat("/node/cdi/lamps.example.com_metadata_", claim.uid, "_r.json")));
  ASSERT_TRUE(spec.ok());
  const Value& mount = (*spec)["devices"][0]["containerEdits"]["mounts"][0];
  EXPECT_EQ(mount["hostPath"].str(), file);
  EXPECT_EQ(mount["containerPath"].str(),
            "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/a/r/"
            "lamps.example.com-metadata.json");

  world.unprepare(*plugin, {claim});
  EXPECT_THAT(cdi_files(), IsEmpty());
  EXPECT_FALSE(world.files->exists(file));
}

// Kills the driver at every change of a file while it prepares and unprepares a claim, starts it
// again and lets the agent repeat its call: nothing is left over, and every answer is whole.
TEST_F(PluginTest, may_be_killed_between_any_two_writes) {
  PluginOptions options = TestWorld::options(kDriver);
  options.metadata = true;
  options.common_edits.env = {"COMMON=1"};
  const ClaimName claim = TestWorld::name_of(world.make_claim("a", one_lamp("lamp-0")));
  const std::string file = cat("k8s.lamps.example.com-claim_", claim.uid, ".yaml");
  const std::string metadata = cat("lamps.example.com_metadata_", claim.uid, "_r.json");
  int kills = 0;
  for (int n = 0;; ++n) {
    SCOPED_TRACE(n);
    test::DyingFiles dying(*world.files, n);
    {
      auto first = Plugin::start(lamps, world.environment(dying), options);
      if (first.ok()) {
        world.prepare(**first, {claim});
        world.unprepare(**first, {claim});
      }
    }
    if (dying.died()) ++kills;

    // The agent asks again for what it has no answer to, and that may be either call.
    auto second = start(options);
    ASSERT_NE(second, nullptr);
    const auto response = world.prepare(*second, {claim});
    const auto& entry = response.claims().at(claim.uid);
    EXPECT_EQ(entry.error(), "");
    EXPECT_EQ(entry.devices_size(), 1);
    EXPECT_THAT(cdi_files(),
                ElementsAre(file, "k8s.lamps.example.com-claim_common.yaml", metadata));
    EXPECT_EQ(world.unprepare(*second, {claim}).claims().at(claim.uid).error(), "");
    EXPECT_THAT(cdi_files(), ElementsAre("k8s.lamps.example.com-claim_common.yaml"));

    // And where it does not ask, a start alone leaves nothing behind but what is prepared.
    test::DyingFiles again(*world.files, n);
    {
      auto third = Plugin::start(lamps, world.environment(again), options);
      if (third.ok()) world.prepare(**third, {claim});
    }
    auto fourth = start(options);
    world.unprepare(*fourth, {claim});
    EXPECT_THAT(cdi_files(), ElementsAre("k8s.lamps.example.com-claim_common.yaml"));
    const auto checkpoint = world.files->read("/node/plugins/lamps.example.com/checkpoint.json");
    if (checkpoint) {
      EXPECT_EQ(checkpoint->find(claim.uid), std::string::npos);
    }
    if (!dying.died()) break;
  }
  EXPECT_GE(kills, 8);
}

TEST_F(PluginTest, files_of_claims_that_nobody_knows_go_at_the_start) {
  for (const char* name :
       {"k8s.lamps.example.com-claim_lost.yaml", "k8s.lamps.example.com-claim_x.yaml.1.2.tmp",
        "k8s.other.example.com-claim_kept.yaml"}) {
    ASSERT_TRUE(world.files->write(cat("/node/cdi/", name), "x").ok());
  }

  ASSERT_TRUE(world.files->make_dirs("/node/plugins/lamps.example.com").ok());
  const std::string half = "/node/plugins/lamps.example.com/checkpoint.json.12.3.tmp";
  ASSERT_TRUE(world.files->write(half, "{").ok());

  start();

  EXPECT_THAT(cdi_files(), ElementsAre("k8s.other.example.com-claim_kept.yaml"));
  EXPECT_FALSE(world.files->exists(half));
}

TEST_F(PluginTest, a_broken_checkpoint_stops_prepare_but_not_unprepare) {
  auto plugin = start();
  const ClaimName claim = TestWorld::name_of(world.make_claim("a", one_lamp("lamp-0")));
  ASSERT_TRUE(
      world.files->write("/node/plugins/lamps.example.com/checkpoint.json", "{nonsense").ok());

  EXPECT_THAT(world.prepare(*plugin, {claim}).claims().at(claim.uid).error(),
              HasSubstr("unable to sync from checkpoint: unmarshal JSON from "
                        "/node/plugins/lamps.example.com/checkpoint.json: "));
  EXPECT_EQ(world.unprepare(*plugin, {claim}).claims().at(claim.uid).error(), "");
  EXPECT_EQ(world.prepare(*plugin, {claim}).claims().at(claim.uid).error(), "");
}

}  // namespace
}  // namespace dibs::driver
