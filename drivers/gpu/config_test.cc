#include "drivers/gpu/config.h"

#include <gtest/gtest.h>

#include "driver/test_world.h"
#include "drivers/gpu/profile.h"

namespace dibs::drivers {
namespace {

using driver::test::from_text;
using json::Value;

constexpr const char* kGpu =
    "'apiVersion': 'gpu.resource.example.com/v1alpha1', 'kind': 'GpuConfig'";
constexpr const char* kNet =
    "'apiVersion': 'net.resource.example.com/v1alpha1', 'kind': 'NetConfig'";

std::string outcome_of(const std::string& parameters, const std::string& profile_name) {
  ProfileOptions options;
  options.driver_name = profile_name + ".example.com";
  const auto profile = make_profile(profile_name, options);
  const auto decoded = (*profile)->decode(from_text(parameters));
  if (!decoded) return "decode: " + decoded.error().message();
  driver::AllocatedDevice device;
  device.device = profile_name == "gpu" ? "gpu-0" : profile_name == "net" ? "nic-0" : "numa-0";
  const auto env = (*profile)->environment(*decoded, device);
  if (!env) return env.error().message();
  std::string out;
  for (const auto& line : *env) out += (out.empty() ? "" : " ") + line;
  return out;
}

TEST(Config, of_gpus) {
  struct Case {
    std::string rest;
    const char* outcome;
  };
  const Case cases[] = {
      {"",
       "GPU_DEVICE_0=gpu-0 GPU_DEVICE_0_SHARING_STRATEGY=TimeSlicing "
       "GPU_DEVICE_0_TIMESLICE_INTERVAL=Default"},
      {", 'sharing': {'strategy': 'TimeSlicing', 'timeSlicingConfig': {'interval': 'Long'}}, 'x': "
       "1",
       "GPU_DEVICE_0=gpu-0 GPU_DEVICE_0_SHARING_STRATEGY=TimeSlicing "
       "GPU_DEVICE_0_TIMESLICE_INTERVAL=Long"},
      {", 'sharing': {'strategy': 'SpacePartitioning'}",
       "GPU_DEVICE_0=gpu-0 GPU_DEVICE_0_SHARING_STRATEGY=SpacePartitioning "
       "GPU_DEVICE_0_PARTITION_COUNT=1"},
      {", 'sharing': {'strategy': 'SpacePartitioning', 'spacePartitioningConfig': "
       "{'partitionCount': 0}}",
       "GPU_DEVICE_0=gpu-0 GPU_DEVICE_0_SHARING_STRATEGY=SpacePartitioning "
       "GPU_DEVICE_0_PARTITION_COUNT=0"},
      {", 'sharing': {'strategy': 'Guessing'}",
       "error validating GPU config: unknown GPU sharing strategy: Guessing"},
      {", 'sharing': {}", "error validating GPU config: unknown GPU sharing strategy: "},
      {", 'sharing': {'strategy': 'TimeSlicing', 'timeSlicingConfig': {}}",
       "error validating GPU config: unknown time-slice interval: "},
      {", 'sharing': {'strategy': 'TimeSlicing', 'timeSlicingConfig': {'interval': 'Never'}}",
       "error validating GPU config: unknown time-slice interval: Never"},
      {", 'sharing': {'strategy': 'SpacePartitioning', 'spacePartitioningConfig': "
       "{'partitionCount': -1}}",
       "error validating GPU config: invalid partition count: -1"},
      {", 'sharing': {'strategy': 'TimeSlicing', 'spacePartitioningConfig': {}}",
       "unable to get time slicing config for device gpu-0: cannot use SpacePartitioningConfig "
       "with "
       "the 'TimeSlicing' strategy"},
      {", 'sharing': {'strategy': 'SpacePartitioning', 'timeSlicingConfig': {}}",
       "unable to get space partitioning config for device gpu-0: cannot use TimeSlicingConfig "
       "with "
       "the 'SpacePartitioning' strategy"},
      {", 'sharing': 7",
       "decode: json: cannot unmarshal number into Go struct field GpuConfig.sharing of type "
       "v1alpha1.GpuSharing"},
      {", 'sharing': {'strategy': 1}",
       "decode: json: cannot unmarshal number into Go struct field GpuSharing.sharing.strategy of "
       "type v1alpha1.GpuSharingStrategy"},
      {", 'sharing': {'strategy': 'SpacePartitioning', 'spacePartitioningConfig': "
       "{'partitionCount': 1.5}}",
       "decode: json: cannot unmarshal number 1.5 into Go struct field "
       "SpacePartitioningConfig.sharing.spacePartitioningConfig.partitionCount of type int"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(outcome_of("{" + std::string(kGpu) + one.rest + "}", "gpu"), one.outcome) << one.rest;
  }
}

TEST(Config, of_another_kind_or_none_is_refused) {
  EXPECT_EQ(outcome_of("{'sharing': {}}", "gpu"),
            "decode: Object 'Kind' is missing in '{\"sharing\":{}}'");
  EXPECT_EQ(outcome_of("{'kind': 'GpuConfig'}", "gpu"),
            "decode: Object 'apiVersion' is missing in '{\"kind\":\"GpuConfig\"}'");
  EXPECT_EQ(
      outcome_of("{'kind': 'Other', 'apiVersion': 'gpu.resource.example.com/v1alpha1'}", "gpu")
          .substr(0, 82),
      "decode: no kind \"Other\" is registered for version \"gpu.resource.example.com/v1alph");
  EXPECT_EQ(outcome_of("{" + std::string(kGpu) + "}", "cpu").substr(0, 46),
            "decode: no kind \"GpuConfig\" is registered for ");
}

TEST(Config, of_network_interfaces) {
  struct Case {
    std::string rest;
    const char* outcome;
  };
  const Case cases[] = {
      {"", ""},
      {", 'bwBurst': {'ingressBurst': 8, 'egressBurst': 16}",
       "NET_DEVICE_0_INGRESS_BURST=8 NET_DEVICE_0_EGRESS_BURST=16"},
      {", 'bwBurst': {'ingressBurst': 34359738359}", "NET_DEVICE_0_INGRESS_BURST=34359738359"},
      {", 'bwBurst': {'ingressBurst': 34359738360}",
       "error validating Net config: invalid ingressBurst: burst cannot be more than 4GB"},
      {", 'bwBurst': {'egressBurst': 18446744073709551615}",
       "error validating Net config: invalid egressBurst: burst cannot be more than 4GB"},
      {", 'bwBurst': {'egressBurst': -1}",
       "decode: json: cannot unmarshal number -1 into Go struct field "
       "BandwidthBurstEntry.bwBurst.egressBurst of type uint64"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(outcome_of("{" + std::string(kNet) + one.rest + "}", "net"), one.outcome) << one.rest;
  }
}

TEST(Profile, names_are_checked) {
  EXPECT_EQ(make_profile("tpu", {}).error().message(),
            "invalid device profile \"tpu\", valid profiles are [\"cpu\" \"gpu\" \"net\"]");
}

}  // namespace
}  // namespace dibs::drivers
