#include "cli/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cli/fault_board.h"
#include "driver/test_world.h"
#include "drivers/gpu/gpu_driver.h"
#include "json/parse.h"

namespace dibs::cli {
namespace {

using driver::test::kNodes;
using driver::test::kSlices;
using driver::test::TestWorld;
using json::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const Time kNow = *parse_rfc3339("2026-03-01T12:00:00Z");

class DeviceCommand : public testing::Test {
 protected:
  DeviceCommand() {
    gpus =
        drivers::start_gpu_driver(world.environment(), drivers::options_for_node("node-0", "/node"))
            .value();
    world.settle();
    // Of a driver that knows nothing of faults.
    world.create(kSlices, "", R"({'metadata': {'name': 'other'}, 'spec': {'nodeName': 'node-0',
        'driver': 'other.example.com',
        'pool': {'name': 'shelf/node-0', 'generation': 1, 'resourceSliceCount': 1},
        'devices': [{'name': 'gpu-0'}, {'name': 'eth0'}]}})");
  }

  DeviceOutcome run(DeviceVerb verb, const std::vector<std::string>& targets) {
    DeviceFlags flags = with;
    flags.targets = targets;
    int looks = 0;
    return change_devices(verb, flags, *world.api, kNow, [&] {
      world.sim.advance(std::chrono::milliseconds(100));
      return ++looks < 50;
    });
  }

  DeviceOutcome list(const std::string& output = "table") {
    DeviceFlags flags;
    flags.output = output;
    return list_faults(flags, *world.api, kNow + std::chrono::minutes(5));
  }

  Value annotation() {
    return (*world.api->get(
        kNodes, "", "node-0"))["metadata"]["annotations"]["faults.dibs.dev/gpu.example.com"];
  }

  TestWorld world;
  driver::Running gpus;
  DeviceFlags with;
};

const char* const kGpu0 = "node-0/gpu.example.com/gpu-0";

TEST_F(DeviceCommand, lets_devices_fail_and_heals_them) {
  with.reason = "XID 79";
  const auto failed = run(DeviceVerb::fail, {kGpu0, "node-0/gpu-1"});
  EXPECT_EQ(failed.errors, "");
  EXPECT_EQ(failed.status, 0);
  EXPECT_EQ(failed.output,
            "node-0/gpu-0 (gpu.example.com) fails: unhealthy, taint "
            "gpu.example.com/unhealthy:NoExecute\n"
            "node-0/gpu-1 (gpu.example.com) fails: unhealthy, taint "
            "gpu.example.com/unhealthy:NoExecute\n");
  EXPECT_EQ(
      list().output,
      "NODE     DRIVER            POOL     DEVICE   FAULT   TAKEN   AGE   ABOUT\n"
      "node-0   gpu.example.com   node-0   gpu-0    fail    yes     5m    NoExecute: XID 79\n"
      "node-0   gpu.example.com   node-0   gpu-1    fail    yes     5m    NoExecute: XID 79\n");

  EXPECT_EQ(run(DeviceVerb::heal, {"node-0/gpu-1", "node-0/gpu-2"}).output,
            "node-0/gpu-1 (gpu.example.com) is healed\n"
            "node-0/gpu-2 (gpu.example.com) has no fault\n");
  with.all = true;
  EXPECT_EQ(run(DeviceVerb::heal, {}).output, "node-0/gpu-0 (gpu.example.com) is healed\n");
  EXPECT_TRUE(annotation().is_null());
  EXPECT_EQ(list().errors, "no faults are set\n");
  EXPECT_EQ(run(DeviceVerb::heal, {}).output, "no faults are set\n");
}

TEST_F(DeviceCommand, a_device_may_have_several_faults) {
  with.prepare = std::chrono::seconds(30);
  with.effect = "None";
  run(DeviceVerb::fail, {kGpu0});
  EXPECT_EQ(run(DeviceVerb::slow, {kGpu0}).output,
            "node-0/gpu-0 (gpu.example.com) is slow: prepare 30s\n");
  EXPECT_EQ(run(DeviceVerb::vanish, {kGpu0}).output, "node-0/gpu-0 (gpu.example.com) is gone\n");
  // What has vanished is still known by its name.
  EXPECT_EQ(run(DeviceVerb::vanish, {kGpu0}).status, 0);

  const Value items = (*json::parse(list("json").output))["items"];
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0]["fault"].str(), "fail");
  EXPECT_EQ(items[0]["effect"].str(), "None");
  EXPECT_EQ(items[1]["fault"].str(), "vanish");
  EXPECT_EQ(items[2]["prepare"].str(), "30s");
  EXPECT_TRUE(items[2]["taken"].as_bool());
}

TEST_F(DeviceCommand, stars_stand_for_letters) {
  EXPECT_THAT(run(DeviceVerb::vanish, {"node-*/gpu.*/gpu-[0-9]"}).errors,
              HasSubstr("has no device \"gpu-[0-9]\""));
  const auto gone = run(DeviceVerb::vanish, {"*/gpu.example.com/*"});
  EXPECT_EQ(std::count(gone.output.begin(), gone.output.end(), '\n'), 8);
  EXPECT_EQ(world.slices().size(), 2u);
}

TEST_F(DeviceCommand, refuses_what_it_cannot_do_and_changes_nothing) {
  const auto said = [&](const std::string& target, int status) {
    const auto outcome = run(DeviceVerb::fail, {"node-0/gpu-1", target});
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(outcome.output, "");
    EXPECT_TRUE(annotation().is_null());
    return outcome.errors;
  };
  EXPECT_EQ(said("nodee-0/gpu-0", 1),
            "dibs device fail: there is no node \"nodee-0\"; did you mean \"node-0\"?\n");
  EXPECT_EQ(said("node-0/gpu-00", 1),
            "dibs device fail: node-0/gpu-00: node-0 has no device \"gpu-00\"; did you mean "
            "\"gpu-0\"?\n");
  EXPECT_EQ(said("node-0/gpu.exampl.com/gpu-0", 1),
            "dibs device fail: node-0/gpu.exampl.com/gpu-0: driver gpu.exampl.com has no devices "
            "on node-0; did you mean \"gpu.example.com\"?\n");
  EXPECT_THAT(said("node-0/gpu-0", 2), HasSubstr("is 2 devices: name one of "
                                                 "node-0/gpu.example.com/node-0/gpu-0, "
                                                 "node-0/other.example.com/shelf/node-0/gpu-0"));
  EXPECT_THAT(said("node-0/eth0", 1),
              StartsWith("dibs device fail: driver other.example.com of node-0/eth0 takes no "
                         "faults"));
  EXPECT_THAT(said("node-0/other.example.com/shelf/node-0/gpu-0", 1), HasSubstr("takes no faults"));
  EXPECT_THAT(said("node-0//gpu-0", 2), HasSubstr("must be NODE/DEVICE"));
}

TEST_F(DeviceCommand, says_when_the_driver_does_not_take_it) {
  gpus = {};

  const auto late = run(DeviceVerb::vanish, {kGpu0});

  EXPECT_EQ(late.status, 1);
  EXPECT_THAT(late.errors, HasSubstr("written, but not taken within 10s by gpu.example.com on "
                                     "node-0: does it run?"));
  EXPECT_THAT(list().output, HasSubstr("vanish   no      5m"));
}

TEST_F(DeviceCommand, tells_of_faults_that_nobody_can_read) {
  ASSERT_TRUE(world.api
                  ->patch(kNodes, "", "node-0", client::PatchType::merge,
                          json::test::from_text("{'metadata': {'annotations': "
                                                "{'faults.dibs.dev/gpu.example.com': '['}}}"))
                  .ok());

  EXPECT_THAT(run(DeviceVerb::fail, {kGpu0}).errors,
              HasSubstr("which kubectl annotate node node-0 faults.dibs.dev/gpu.example.com- "
                        "takes away: no JSON"));
  const auto listed = list();
  EXPECT_EQ(listed.status, 1);
  EXPECT_THAT(listed.errors, HasSubstr("faults of gpu.example.com on node-0 cannot be read"));
}

TEST_F(DeviceCommand, takes_away_what_a_driver_that_is_gone_has_left) {
  with.prepare = std::chrono::seconds(1);
  run(DeviceVerb::slow, {kGpu0});
  gpus = {};
  for (const auto& slice : world.slices()) {
    ASSERT_TRUE(world.api->remove(kSlices, "", slice["metadata"]["name"].as_string()).ok());
  }

  EXPECT_THAT(list().output, HasSubstr("no such device"));
  EXPECT_EQ(run(DeviceVerb::heal, {"node-0/gpu-0"}).output,
            "node-0/gpu-0 (gpu.example.com) is healed\n");
  EXPECT_TRUE(annotation().is_null());
}

}  // namespace
}  // namespace dibs::cli
