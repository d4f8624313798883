#include "drivers/nvidia/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/nvidia/nvidia_fakes.h"
#include "json/parse.h"

namespace dibs::drivers::nvidia {
namespace {

using json::Value;
using test::make_gpu;
using test::make_instance;

SlicesInput input_of(std::vector<Gpu> gpus, MigMode mode = MigMode::dynamic) {
  SlicesInput input{"node-0", "580.95.05", "13.0", {}};
  for (auto& gpu : gpus) {
    KnownGpu known;
    known.parts = parts_of(gpu, mode, {});
    known.gpu = std::move(gpu);
    input.gpus.push_back(std::move(known));
  }
  return input;
}

std::vector<Value> slices(const SlicesInput& input, const Health& health = Health()) {
  auto made = driver::slices_of(pool_of(input, health));
  EXPECT_TRUE(made.ok()) << made.error().message();
  return made ? *made : std::vector<Value>();
}

Value device(const std::vector<Value>& all, std::string_view name) {
  for (const auto& slice : all) {
    for (const auto& one : slice["devices"].items()) {
      if (one["name"].as_string() == name) return one;
    }
  }
  ADD_FAILURE() << "no device " << name;
  return {};
}

TEST(Slices, say_of_a_gpu_what_upstream_says) {
  const Value gpu = device(slices(input_of({make_gpu(0)}, MigMode::fixed)), "gpu-0");
  const Value expected = *json::parse(R"({
    "type": {"string": "gpu"}, "uuid": {"string": "GPU-00000000"},
    "productName": {"string": "NVIDIA H200"}, "brand": {"string": "Nvidia"},
    "architecture": {"string": "Hopper"}, "cudaComputeCapability": {"version": "9.0.0"},
    "driverVersion": {"version": "580.95.5"}, "cudaDriverVersion": {"version": "13.0.0"},
    "resource.kubernetes.io/pciBusID": {"string": "0000:19:00.0"},
    "resource.kubernetes.io/pcieRoot": {"string": "pci0000:16"},
    "resource.kubernetes.io/numaNode": {"int": 1}})");
  EXPECT_EQ(gpu["attributes"], expected);
  EXPECT_EQ(gpu["capacity"], *json::parse(R"({"memory": {"value": "140Gi"}})"));
  EXPECT_FALSE(gpu.contains("consumesCounters"));
}

TEST(Slices, divide_a_gpu_by_counters) {
  const auto all = slices(input_of({make_gpu(0), make_gpu(1)}));
  ASSERT_EQ(all.size(), 3u);
  ASSERT_EQ(all[0]["sharedCounters"].size(), 2u);
  const Value& set = all[0]["sharedCounters"][0];
  EXPECT_EQ(set["name"].str(), "gpu-0-counter-set");
  EXPECT_EQ(set["counters"]["multiprocessors"]["value"].str(), "132");
  EXPECT_EQ(set["counters"]["copy-engines"]["value"].str(), "7");
  EXPECT_EQ(set["counters"]["memory"]["value"].str(), "140Gi");
  EXPECT_EQ(set["counters"]["memory-slice-7"]["value"].str(), "1");
  EXPECT_EQ(set["counters"].size(), 7u + 8);

  const Value whole = device(all, "gpu-0");
  EXPECT_EQ(whole["consumesCounters"][0]["counters"], set["counters"]);
  EXPECT_EQ(whole["capacity"]["multiprocessors"]["value"].str(), "132");

  const Value part = device(all, "gpu-1-mig-3g71gb-9-4");
  EXPECT_EQ(part["attributes"]["type"]["string"].str(), "mig");
  EXPECT_EQ(part["attributes"]["profile"]["string"].str(), "3g.71gb");
  EXPECT_EQ(part["attributes"]["parentUUID"]["string"].str(), "GPU-00000001");
  EXPECT_FALSE(part["attributes"].contains("uuid"));
  EXPECT_EQ(part["capacity"], *json::parse(R"({
    "multiprocessors": {"value": "60"}, "copyEngines": {"value": "3"}, "decoders": {"value": "3"},
    "encoders": {"value": "0"}, "jpegEngines": {"value": "3"}, "ofaEngines": {"value": "0"},
    "memory": {"value": "70Gi"}})"));
  const Value& taken = part["consumesCounters"][0];
  EXPECT_EQ(taken["counterSet"].str(), "gpu-1-counter-set");
  EXPECT_TRUE(taken["counters"].contains("memory-slice-4"));
  EXPECT_TRUE(taken["counters"].contains("memory-slice-7"));
  EXPECT_FALSE(taken["counters"].contains("memory-slice-3"));
}

TEST(Slices, leave_out_what_others_have) {
  Gpu gpu = make_gpu(0, true);
  gpu.instances = {make_instance(1, 9, {0, 4})};
  const auto all = slices(input_of({gpu}));
  const Value& counters = all[0]["sharedCounters"][0]["counters"];
  EXPECT_EQ(counters["multiprocessors"]["value"].str(), "72");
  EXPECT_EQ(counters["memory"]["value"].str(), "70Gi");
  EXPECT_EQ(counters["memory-slice-3"]["value"].str(), "0");
  EXPECT_EQ(counters["memory-slice-4"]["value"].str(), "1");
  const Value found = device(all, "gpu-0-mig-3g71gb-9-0");
  EXPECT_EQ(found["attributes"]["uuid"]["string"].str(), "MIG-1");
  EXPECT_EQ(found["capacity"]["memorySlice3"]["value"].str(), "1");
  EXPECT_FALSE(found.contains("consumesCounters"));
}

TEST(Slices, hold_no_more_than_the_api_takes) {
  std::vector<Gpu> gpus;
  for (unsigned minor = 0; minor < 16; ++minor) gpus.push_back(make_gpu(minor));
  std::size_t sets = 0;
  std::size_t devices = 0;
  for (const auto& slice : slices(input_of(std::move(gpus)))) {
    EXPECT_LE(slice["sharedCounters"].size(), driver::kMaxCounterSets);
    EXPECT_LE(slice["devices"].size(), driver::kMaxCostlyDevices);
    sets += slice["sharedCounters"].size();
    devices += slice["devices"].size();
  }
  EXPECT_EQ(sets, 16u);
  EXPECT_EQ(devices, 16u * 18);
}

TEST(Slices, are_there_without_gpus_too) { EXPECT_EQ(slices(input_of({})).size(), 1u); }

TEST(Slices, show_what_is_wrong_as_taints) {
  Health health;
  health.set_lost("GPU-00000000", true, {});
  const auto all = slices(input_of({make_gpu(0), make_gpu(1)}), health);
  for (const char* name : {"gpu-0", "gpu-0-mig-1g18gb-19-0"}) {
    EXPECT_EQ(device(all, name)["taints"],
              *json::parse(R"([{"key": "gpu.nvidia.com/gpu-lost", "effect": "NoSchedule"}])"));
  }
  EXPECT_FALSE(device(all, "gpu-1").contains("taints"));
}

TEST(Slices, make_versions_of_any_number_of_numbers) {
  EXPECT_EQ(three_numbers("13.0"), "13.0.0");
  EXPECT_EQ(three_numbers("580.95.05"), "580.95.5");
  EXPECT_EQ(three_numbers("nonsense"), "0.0.0");
}

}  // namespace
}  // namespace dibs::drivers::nvidia
