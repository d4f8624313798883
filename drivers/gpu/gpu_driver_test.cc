#include "drivers/gpu/gpu_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "driver/test_world.h"
#include "drivers/gpu/binding_controller.h"
#include "json/parse.h"

namespace dibs::drivers {
namespace {

using driver::ClaimName;
using driver::test::from_text;
using driver::test::kClaims;
using driver::test::TestWorld;
using json::Value;
using testing::ElementsAre;
using testing::HasSubstr;

const client::Gvr kClasses = {"resource.k8s.io", "v1", "deviceclasses"};

std::string one_gpu(const std::string& device, const std::string& config = "[]") {
  return cat(
      "{'devices': {'results': [{'request': 'r', 'driver': 'gpu.example.com', 'pool': "
      "'node-0', 'device': '",
      device, "'}], 'config': ", config, "}}");
}

TEST(GpuDriver, shows_its_class_once) {
  TestWorld world;
  auto options = options_for_node("node-0", "/node");
  auto first = start_gpu_driver(world.environment(), options);
  ASSERT_TRUE(first.ok()) << first.error().message();
  world.settle();
  auto second = start_gpu_driver(world.environment(), options);
  ASSERT_TRUE(second.ok());
  world.settle();

  const auto found = world.api->get(kClasses, "", "gpu.example.com");

  ASSERT_TRUE(found.ok());
  EXPECT_EQ(
      (*found)["spec"]["selectors"],
      from_text(R"([{'cel': {'expression': "device.driver == \u0027gpu.example.com\u0027"}}])"));
  EXPECT_EQ((*found)["spec"]["extendedResourceName"].str(), "example.com/gpu");
}

TEST(GpuDriver, classes_of_other_profiles_have_their_names) {
  for (const char* profile : {"net", "cpu"}) {
    TestWorld world;
    auto started =
        start_gpu_driver(world.environment(), options_for_node("node-0", "/node", profile));
    ASSERT_TRUE(started.ok());
    world.settle();

    const auto found = world.api->get(kClasses, "", cat(profile, ".example.com"));

    ASSERT_TRUE(found.ok());
    EXPECT_FALSE((*found)["spec"].contains("extendedResourceName"));
  }
}

TEST(GpuDriver, writes_device_status_at_the_first_prepare) {
  TestWorld world;
  auto started = start_gpu_driver(world.environment(), options_for_node("node-0", "/node"));
  ASSERT_TRUE(started.ok());
  world.settle();
  const ClaimName claim = TestWorld::name_of(world.make_claim("a", one_gpu("gpu-0")));

  const auto response = world.prepare(*started->plugin, {claim});

  EXPECT_EQ(response.claims().at(claim.uid).error(), "");
  Value stored = *world.api->get(kClaims, "default", "a");
  EXPECT_EQ(stored["status"]["devices"], from_text(R"([{'driver': 'gpu.example.com',
      'pool': 'node-0', 'device': 'gpu-0', 'conditions': null,
      'data': {'driverVersion': {'version': '1.0.0'}, 'model': {'string': 'LATEST-GPU-MODEL'},
               'uuid': {'string': 'gpu-9df4af2f-59a7-4bf1-83a4-32180f074e56'}}}])"));

  const std::string version = stored["metadata"]["resourceVersion"].str();
  world.prepare(*started->plugin, {claim});
  stored = *world.api->get(kClaims, "default", "a");
  EXPECT_EQ(stored["metadata"]["resourceVersion"].str(), version);
}

TEST(GpuDriver, lets_containers_read_what_their_devices_are) {
  for (const bool on : {false, true}) {
    TestWorld world;
    auto options = options_for_node("node-0", "/node");
    options.device_metadata = on;
    auto started = start_gpu_driver(world.environment(), options);
    ASSERT_TRUE(started.ok());
    world.settle();
    const ClaimName claim = TestWorld::name_of(world.make_claim("a", one_gpu("gpu-0")));

    const auto response = world.prepare(*started->plugin, {claim});

    const auto& devices = response.claims().at(claim.uid).devices();
    ASSERT_EQ(devices.size(), 1);
    const std::string id = cat("gpu.example.com/metadata=", claim.uid, "_r");
    const auto& ids = devices[0].cdi_device_ids();
    EXPECT_EQ(std::count(ids.begin(), ids.end(), id), on ? 1 : 0);
    const auto text = world.files->read(
        "/node/plugins/gpu.example.com/dra-device-metadata/default_a/r/metadata.json");
    ASSERT_EQ(text.ok(), on);
    if (!on) continue;
    const Value first = *json::parse(text->substr(0, text->find('\n')));
    const Value& device = first["requests"][0]["devices"][0];
    EXPECT_EQ(device["name"].str(), "gpu-0");
    EXPECT_EQ(device["attributes"]["uuid"]["string"].str(),
              "gpu-9df4af2f-59a7-4bf1-83a4-32180f074e56");
    world.unprepare(*started->plugin, {claim});
    EXPECT_FALSE(world.files->exists(
        "/node/plugins/gpu.example.com/dra-device-metadata/default_a/r/metadata.json"));
  }
}

TEST(GpuDriver, refuses_in_the_words_of_events) {
  TestWorld world;
  auto started = start_gpu_driver(world.environment(), options_for_node("node-0", "/node"));
  ASSERT_TRUE(started.ok());
  world.settle();
  const ClaimName guess = TestWorld::name_of(world.make_claim(
      "a", one_gpu("gpu-0",
                   "[{'source': 'FromClaim', 'opaque': {'driver': 'gpu.example.com', "
                   "'parameters': {'apiVersion': 'gpu.resource.example.com/v1alpha1', "
                   "'kind': 'GpuConfig', 'sharing': {'strategy': 'Guessing'}}}}]")));
  const ClaimName other = TestWorld::name_of(world.make_claim("b", one_gpu("gpu-9")));

  const auto response = world.prepare(*started->plugin, {guess, other});

  EXPECT_EQ(response.claims().at(guess.uid).error(),
            cat("error preparing devices for claim ", guess.uid,
                ": prepare failed: error applying config: error validating GPU config: unknown GPU "
                "sharing strategy: Guessing"));
  EXPECT_EQ(response.claims().at(other.uid).error(),
            cat("error preparing devices for claim ", other.uid,
                ": prepare failed: requested device is not allocatable: gpu-9"));
}

TEST(GpuDriver, checkpoint_has_the_form_of_upstream) {
  TestWorld world;
  auto started = start_gpu_driver(world.environment(), options_for_node("node-0", "/node"));
  ASSERT_TRUE(started.ok());
  world.settle();
  const ClaimName claim = TestWorld::name_of(world.make_claim("a", one_gpu("gpu-0")));
  const std::string path = "/node/plugins/gpu.example.com/checkpoint.json";

  world.prepare(*started->plugin, {claim});
  EXPECT_EQ(*world.files->read(path),
            cat("{\n  \"kind\": \"Checkpoint\",\n  \"apiVersion\": "
                "\"checkpoint.internal.example.com/v1\",\n  \"preparedClaims\": [\n    {\n      "
                "\"uid\": \"",
                claim.uid, "\"\n    }\n  ]\n}\n"));

  world.unprepare(*started->plugin, {claim});
  EXPECT_EQ(*world.files->read(path),
            "{\n  \"kind\": \"Checkpoint\",\n  \"apiVersion\": "
            "\"checkpoint.internal.example.com/v1\"\n}\n");
}

TEST(GpuDriver, many_devices_are_published_in_several_slices) {
  TestWorld world;
  auto options = options_for_node("node-0", "/node");
  options.devices = 10;
  options.gpu_partitions = 7;
  auto started = start_gpu_driver(world.environment(), options);
  ASSERT_TRUE(started.ok());
  world.settle();

  std::vector<std::size_t> sizes;
  for (const auto& slice : world.slices()) {
    sizes.push_back(slice["spec"]["devices"].size() + slice["spec"]["sharedCounters"].size());
  }
  EXPECT_THAT(sizes, ElementsAre(8, 2, 64, 16));
}

TEST(GpuDriver, gpus_say_on_which_pcie_root_they_are_where_they_are_told) {
  const std::string attribute = "resource.kubernetes.io/pcieRoot";
  for (const unsigned partitions : {0U, 2U}) {
    TestWorld world;
    auto options = options_for_node("node-0", "/node");
    options.devices = 3;
    options.gpu_partitions = partitions;
    options.gpu_pcie_roots = {"pci0000:80", "pci0000:c0"};
    auto started = start_gpu_driver(world.environment(), options);
    ASSERT_TRUE(started.ok());
    world.settle();

    for (const auto& slice : world.slices()) {
      for (const auto& device : slice["spec"]["devices"].items()) {
        const bool second = device["attributes"]["index"]["int"].as_int() == 1;
        EXPECT_EQ(device["attributes"][attribute]["string"].as_string(),
                  second ? "pci0000:c0" : "pci0000:80");
      }
    }
  }
  for (const char* text : {"pci0000:80", "pci10000:e1"}) EXPECT_TRUE(is_pcie_root(text)) << text;
  for (const char* text : {"", "0000:80", "pci0000:8", "pci0000:80/0000:80:01.0", "pcixxxx:80"}) {
    EXPECT_FALSE(is_pcie_root(text)) << text;
  }
}

TEST(BindingController, says_that_devices_are_ready) {
  TestWorld world;
  auto options = options_for_node("node-0", "/node");
  options.binding_conditions = true;
  auto started = start_gpu_driver(world.environment(), options);
  ASSERT_TRUE(started.ok());
  world.settle();
  EXPECT_EQ(world.slices()[0]["spec"]["devices"][0]["bindingConditions"],
            from_text("['BindingConditions']"));

  world.make_claim("a", R"({'devices': {'results': [{'request': 'r', 'driver': 'gpu.example.com',
      'pool': 'node-0', 'device': 'gpu-0', 'bindingConditions': ['BindingConditions'],
      'bindingFailureConditions': ['BindingFailureConditions']}]},
      'allocationTimestamp': '2026-11-15T00:00:00Z'})");
  world.settle();

  const Value devices = (*world.api->get(kClaims, "default", "a"))["status"]["devices"];
  ASSERT_EQ(devices.size(), 1u);
  const Value& condition = devices[0]["conditions"][0];
  EXPECT_EQ(condition["type"].str(), "BindingConditions");
  EXPECT_EQ(condition["status"].str(), "True");
  EXPECT_EQ(condition["reason"].str(), "Ready");
  EXPECT_EQ(condition["message"].str(), "Device is ready");
}

TEST(BindingController, leaves_what_is_said_and_what_is_not_its_own) {
  const Value claim = from_text(R"({'status': {
      'allocation': {'devices': {'results': [
        {'driver': 'd', 'pool': 'p', 'device': 'a', 'bindingConditions': ['X', 'Y']},
        {'driver': 'd', 'pool': 'other', 'device': 'a', 'bindingConditions': ['X']},
        {'driver': 'e', 'pool': 'p', 'device': 'a', 'bindingConditions': ['X']}]}},
      'devices': [{'driver': 'd', 'pool': 'p', 'device': 'a', 'conditions': [
        {'type': 'X', 'status': 'True', 'reason': 'Mine'}, {'type': 'Y', 'status': 'False'}]}]}})");

  const Value out = with_conditions(claim, "d", "p", Time::from_seconds(0));

  EXPECT_EQ(out["status"]["devices"].size(), 1u);
  EXPECT_EQ(out["status"]["devices"][0]["conditions"], from_text(R"([
      {'type': 'X', 'status': 'True', 'reason': 'Mine'},
      {'type': 'Y', 'status': 'True', 'lastTransitionTime': '1970-01-01T00:00:00Z',
       'reason': 'Ready', 'message': 'Device is ready'}])"));
  EXPECT_EQ(with_conditions(out, "d", "p", Time::from_seconds(9)), out);
}

}  // namespace
}  // namespace dibs::drivers
