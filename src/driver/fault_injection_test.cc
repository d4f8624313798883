#include "driver/fault_injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "driver/test_world.h"
#include "runtime/real_runtime.h"

namespace dibs::driver {
namespace {

using json::Value;
using test::from_text;
using test::kNodes;
using test::TestWorld;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kDriver = "lamps.example.com";

class Lamps : public Driver {
 public:
  Result<std::vector<Pool>> devices() override {
    Pool pool = make_pool("node-0", {Device("lamp-0"), Device("lamp-1")});
    pool.annotations = annotations;
    return std::vector<Pool>{std::move(pool)};
  }
  Result<std::vector<PreparedDevice>> prepare(const Claim& claim) override {
    ++prepares;
    std::vector<PreparedDevice> out;
    for (const auto& device : claim.devices) out.push_back(prepared(device));
    return out;
  }
  Result<> unprepare(const ClaimName&) override { return success(); }

  int prepares = 0;
  Value annotations = {};
};

class FaultInjectionTest : public testing::Test {
 protected:
  std::unique_ptr<Plugin> start() {
    auto options = TestWorld::options(kDriver);
    options.faults = true;
    auto started = Plugin::start(lamps, world.environment(), std::move(options));
    EXPECT_TRUE(started.ok()) << started.error().message();
    world.settle();
    return started ? std::move(started).value() : nullptr;
  }

  void set(const std::string& faults) {
    const Value text = faults.empty() ? Value() : Value(json::write(from_text(faults)));
    const auto patched = world.api->patch(
        kNodes, "", "node-0", client::PatchType::merge,
        Value::object({{"metadata",
                        Value::object({{"annotations",
                                        Value::object({{faults_annotation(kDriver), text}})}})}}));
    ASSERT_TRUE(patched.ok()) << patched.error().message();
    world.settle();
  }

  std::vector<std::string> published() {
    std::vector<std::string> names;
    for (const auto& slice : world.slices()) {
      for (const auto& device : slice["spec"]["devices"].items()) {
        names.push_back(cat(device["name"].as_string(), device["taints"].empty() ? "" : "!"));
      }
    }
    return names;
  }

  Value taken() { return world.slices().at(0)["metadata"]["annotations"][kFaultsTaken]; }

  ClaimName claim(const std::string& name, const std::string& lamp) {
    return TestWorld::name_of(
        world.make_claim(name, cat("{'devices': {'results': [{'request': 'r', 'driver': '", kDriver,
                                   "', 'pool': 'node-0', 'device': '", lamp, "'}]}}")));
  }

  TestWorld world;
  Lamps lamps;
};

const char* const kVanished = "{'node-0/lamp-0': {'vanish': {'since': '2026-01-01T00:00:00Z'}}}";
const char* const kFailed =
    "{'node-0/lamp-0': {'fail': {'reason': 'dark', 'since': '2026-01-01T00:00:00Z'}}}";

TEST_F(FaultInjectionTest, says_that_faults_are_taken_and_which) {
  auto plugin = start();
  EXPECT_EQ(taken(), Value(""));
  EXPECT_THAT(published(), ElementsAre("lamp-0", "lamp-1"));

  set(kFailed);
  EXPECT_EQ(taken(), Value(json::write(from_text(kFailed))));
  EXPECT_THAT(published(), ElementsAre("lamp-0!", "lamp-1"));
  const Value& taint = world.slices().at(0)["spec"]["devices"][0]["taints"][0];
  EXPECT_EQ(taint["timeAdded"].str(), "2026-01-01T00:00:00Z");

  set("");
  EXPECT_EQ(taken(), Value(""));
  EXPECT_THAT(published(), ElementsAre("lamp-0", "lamp-1"));
}

TEST_F(FaultInjectionTest, leaves_annotations_of_the_driver_as_they_are) {
  lamps.annotations = Value::object({{"lamps.example.com/hours", "7"}});
  auto plugin = start();
  set(kFailed);
  EXPECT_EQ(taken(), Value(json::write(from_text(kFailed))));
  EXPECT_EQ(world.slices().at(0)["metadata"]["annotations"]["lamps.example.com/hours"], "7");
}

TEST_F(FaultInjectionTest, keeps_faults_over_restarts_without_showing_the_device_in_between) {
  auto plugin = start();
  set(kFailed);
  const std::string before = world.slices().at(0)["metadata"]["resourceVersion"].str();

  plugin.reset();
  plugin = start();

  EXPECT_THAT(published(), ElementsAre("lamp-0!", "lamp-1"));
  EXPECT_EQ(world.slices().at(0)["metadata"]["resourceVersion"].str(), before);
}

TEST_F(FaultInjectionTest, a_device_that_vanished_is_neither_published_nor_prepared) {
  auto plugin = start();
  const ClaimName held = claim("held", "lamp-0");
  EXPECT_EQ(world.prepare(*plugin, {held}).claims().at(held.uid).error(), "");

  set(kVanished);

  EXPECT_THAT(published(), ElementsAre("lamp-1"));
  EXPECT_EQ(world.unprepare(*plugin, {held}).claims().at(held.uid).error(), "");
  EXPECT_THAT(world.prepare(*plugin, {held}).claims().at(held.uid).error(),
              HasSubstr("device lamp-0 of pool node-0 is gone"));
  EXPECT_EQ(lamps.prepares, 1);

  set("");
  EXPECT_THAT(published(), ElementsAre("lamp-0", "lamp-1"));
  EXPECT_EQ(world.prepare(*plugin, {held}).claims().at(held.uid).error(), "");
}

TEST_F(FaultInjectionTest, text_that_cannot_be_read_changes_nothing_and_is_not_taken) {
  auto plugin = start();
  set(kFailed);
  set("{'node-0/lamp-0': {'burn': {}}}");

  EXPECT_THAT(published(), ElementsAre("lamp-0!", "lamp-1"));
  EXPECT_EQ(taken(), Value(json::write(from_text(kFailed))));

  plugin.reset();
  plugin = start();
  EXPECT_THAT(published(), ElementsAre("lamp-0", "lamp-1"));
  EXPECT_EQ(taken(), Value(""));
}

TEST_F(FaultInjectionTest, faults_go_with_the_node) {
  auto plugin = start();
  set(kFailed);
  ASSERT_TRUE(world.api->remove(kNodes, "", "node-0").ok());
  world.create(kNodes, "", "{'metadata': {'name': 'node-0'}}");
  world.settle(std::chrono::minutes(1));

  EXPECT_THAT(published(), ElementsAre("lamp-0", "lamp-1"));
}

TEST_F(FaultInjectionTest, without_a_look_at_the_node_devices_come_late_and_take_none) {
  const auto driver_without_rights =
      world.connect({"system:serviceaccount:kube-system:somebody", {"system:masters-not"}});
  client::Client blind(*driver_without_rights);
  FaultInjection faults(lamps, blind, world.sim.runtime(), kDriver, "node-0");
  int told = 0;
  EXPECT_EQ(faults.devices().error().code(), Code::unavailable);

  faults.begin([&] { ++told; });
  world.settle(std::chrono::seconds(10));

  EXPECT_EQ(told, 1);
  const auto pools = faults.devices();
  ASSERT_TRUE(pools.ok());
  EXPECT_TRUE((*pools)[0].annotations.is_null());
}

TEST_F(FaultInjectionTest, says_which_devices_are_ill) {
  auto plugin = start();
  FaultInjection faults(lamps, *world.api, world.sim.runtime(), kDriver, "node-0");
  faults.begin([] {});
  const auto health = [&] {
    std::vector<std::string> out;
    for (const auto& one : faults.health()) {
      out.push_back(cat(one.device,
                        one.health == Health::healthy     ? " is well"
                        : one.health == Health::unhealthy ? " is ill: "
                                                          : " may be anything",
                        one.message));
    }
    return out;
  };
  world.settle();
  EXPECT_THAT(health(), ElementsAre("lamp-0 may be anything", "lamp-1 may be anything"));
  set(kFailed);
  EXPECT_THAT(health(), ElementsAre("lamp-0 is ill: dark", "lamp-1 may be anything"));
  set(kVanished);
  EXPECT_THAT(health(), ElementsAre("lamp-0 is ill: the device is gone", "lamp-1 may be anything"));
  set("");
  EXPECT_THAT(health(), ElementsAre("lamp-0 is well", "lamp-1 may be anything"));
}

/// Waiting takes threads, which a simulation does not have.
class SlowLamps : public testing::Test {
 protected:
  SlowLamps()
      : transport(client::make_in_process_transport(api.handler(), runtime.runtime())),
        client(*transport),
        faults(lamps, client, runtime.runtime(), kDriver, "node-0") {
    set("10m");
    std::promise<void> seen;
    faults.begin([&, told = false]() mutable {
      if (!std::exchange(told, true)) seen.set_value();
    });
    seen.get_future().wait();
    api.put("/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c",
            from_text(cat("{'metadata': {'namespace': 'n', 'name': 'c', 'uid': 'u'}, 'status': "
                          "{'allocation': {'devices': {'results': [{'request': 'r', 'driver': '",
                          kDriver, "', 'pool': 'node-0', 'device': 'lamp-0'}]}}}}")));
  }
  ~SlowLamps() override { faults.stop(); }

  void set(const std::string& time) {
    const std::string text =
        time.empty() ? ""
                     : cat(R"({"node-0/lamp-0":{"slow":{"prepare":")", time, R"(","unprepare":")",
                           time, R"(","since":"2026-01-01T00:00:00Z"}}})");
    api.put(
        "/api/v1/nodes/node-0",
        Value::object({{"metadata",
                        Value::object({{"name", "node-0"},
                                       {"annotations",
                                        Value::object({{faults_annotation(kDriver), text}})}})}}));
  }

  static Claim claim_with(const std::string& lamp) {
    Claim out;
    AllocatedDevice device;
    device.pool = "node-0";
    device.device = lamp;
    out.devices.push_back(device);
    return out;
  }

  Lamps lamps;
  client::FakeApi api;
  runtime::RealRuntime runtime;  // ends before what its threads call
  std::unique_ptr<client::Transport> transport;
  client::Client client;
  FaultInjection faults;
};

TEST_F(SlowLamps, hold_up_neither_others_nor_claims_that_are_prepared) {
  EXPECT_TRUE(faults.prepare(claim_with("lamp-1")).ok());
  Claim again = claim_with("lamp-0");
  again.prepared = true;
  EXPECT_TRUE(faults.prepare(again).ok());
  EXPECT_EQ(lamps.prepares, 2);
}

TEST_F(SlowLamps, are_quick_as_soon_as_they_are_healed) {
  auto preparing =
      std::async(std::launch::async, [&] { return faults.prepare(claim_with("lamp-0")); });
  auto ending = std::async(std::launch::async, [&] { return faults.unprepare({"n", "c", "u"}); });
  EXPECT_EQ(preparing.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_EQ(ending.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);

  set("");

  EXPECT_TRUE(preparing.get().ok());
  EXPECT_TRUE(ending.get().ok());
}

TEST_F(SlowLamps, of_a_claim_that_is_gone_hold_up_nothing) {
  EXPECT_TRUE(faults.unprepare({"n", "gone", "v"}).ok());
  EXPECT_TRUE(faults.unprepare({"n", "c", "replaced"}).ok());
}

TEST_F(SlowLamps, are_waited_for_no_longer_when_the_driver_ends) {
  auto waiting =
      std::async(std::launch::async, [&] { return faults.prepare(claim_with("lamp-0")); });
  faults.end_waiting();

  const auto ended = waiting.get();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code(), Code::unavailable);
  EXPECT_EQ(lamps.prepares, 0);
}

}  // namespace
}  // namespace dibs::driver
