#include "drivers/nvidia/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"

namespace dibs::drivers::nvidia {
namespace {

using testing::HasSubstr;

std::string typed(const std::string& kind, const std::string& rest = "") {
  return cat("{apiVersion: resource.nvidia.com/v1beta1, kind: ", kind, rest.empty() ? "" : ", ",
             rest, "}");
}

Result<DeviceConfig> decode(const std::string& yaml) {
  return decode_config(*json::parse_yaml(yaml));
}

std::string error_of(const std::string& yaml) {
  const auto decoded = decode(yaml);
  return decoded ? "" : decoded.error().message();
}

TEST(Config, without_sharing_says_nothing) {
  for (const char* kind : {"GpuConfig", "MigDeviceConfig"}) {
    const auto config = decode(typed(kind));
    ASSERT_TRUE(config.ok()) << config.error().message();
    EXPECT_EQ(config->sharing, Sharing::unset);
    EXPECT_EQ(config->for_mig, std::string(kind) == "MigDeviceConfig");
  }
}

TEST(Config, has_intervals) {
  const std::pair<const char*, int> cases[] = {
      {"", 0},
      {", timeSlicingConfig: {}", 0},
      {", timeSlicingConfig: {interval: Default}", 0},
      {", timeSlicingConfig: {interval: Short}", 1},
      {", timeSlicingConfig: {interval: Medium}", 2},
      {", timeSlicingConfig: {interval: Long}", 3},
  };
  for (const auto& [more, number] : cases) {
    const auto config =
        decode(typed("GpuConfig", cat("sharing: {strategy: TimeSlicing", more, "}")));
    ASSERT_TRUE(config.ok()) << config.error().message();
    EXPECT_EQ(config->sharing, Sharing::time_slicing);
    EXPECT_EQ(config->interval_number(), number);
  }
}

TEST(Config, has_limits_of_mps) {
  const auto config = decode(typed("GpuConfig", R"(sharing: {strategy: MPS, mpsConfig: {
      defaultActiveThreadPercentage: 50, defaultPinnedDeviceMemoryLimit: 10Gi,
      defaultPerDevicePinnedMemoryLimit: {"1": 512Mi, GPU-c: 1G}}})"));
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->sharing, Sharing::mps);
  EXPECT_EQ(config->mps.active_thread_percentage, 50);
  const auto limits = limits_of(config->mps, {"GPU-a", "GPU-b", "GPU-c"});
  ASSERT_TRUE(limits.ok()) << limits.error().message();
  EXPECT_EQ(*limits, (std::map<std::string, std::string>{
                         {"GPU-a", "10240M"}, {"GPU-b", "512M"}, {"GPU-c", "953M"}}));
}

TEST(Config, refuses_limits_that_are_none) {
  const auto limits = [](const std::string& yaml) {
    const auto config =
        decode(typed("MigDeviceConfig", cat("sharing: {strategy: MPS, mpsConfig: ", yaml, "}")));
    EXPECT_TRUE(config.ok()) << config.error().message();
    const auto found = limits_of(config->mps, {"GPU-a"});
    return found ? std::string() : found.error().message();
  };
  EXPECT_EQ(limits("{defaultPinnedDeviceMemoryLimit: 1Ki}"),
            "invalid limit: default value set too low: 1Ki");
  EXPECT_EQ(limits("{defaultPerDevicePinnedMemoryLimit: {GPU-b: 1Gi}}"),
            "invalid device: unable to parse key as an integer: GPU-b");
  EXPECT_EQ(limits("{defaultPerDevicePinnedMemoryLimit: {'7': 1Gi}}"),
            "invalid device: invalid device index: 7");
}

TEST(Config, is_read_strictly) {
  const std::pair<std::string, std::string> cases[] = {
      {"7", "cannot unmarshal number"},
      {"{kind: GpuConfig}", "Object 'apiVersion' is missing"},
      {"{apiVersion: v1}", "Object 'Kind' is missing"},
      {"{apiVersion: v1, kind: Pod}", "no kind \"Pod\" is registered for version \"v1\""},
      {typed("VfioDeviceConfig"), "passes no GPU through"},
      {typed("ComputeDomainChannelConfig"), "compute-domain.nvidia.com"},
      {typed("GpuConfig", "shoring: {}"), "strict decoding error: unknown field \"shoring\""},
      {typed("GpuConfig", "sharing: 1"), "cannot unmarshal number"},
      {typed("GpuConfig", "sharing: {}"), "unknown GPU sharing strategy: , supported"},
      {typed("GpuConfig", "sharing: {strategy: Hope}"), "unknown GPU sharing strategy: Hope"},
      {typed("GpuConfig", "sharing: {strategy: TimeSlicing, timeSlicingConfig: {interval: Eon}}"),
       "unknown time-slice interval: Eon"},
      {typed("GpuConfig", "sharing: {strategy: TimeSlicing, timeSlicingConfig: {period: 1}}"),
       "unknown field \"sharing.timeSlicingConfig.period\""},
      {typed("MigDeviceConfig", "sharing: {strategy: TimeSlicing, timeSlicingConfig: {}}"),
       "unknown field \"sharing.timeSlicingConfig\""},
      {typed("GpuConfig", "sharing: {strategy: TimeSlicing, mpsConfig: {}}"),
       "cannot use MpsConfig with the 'TimeSlicing' strategy"},
      {typed("GpuConfig", "sharing: {strategy: MPS, timeSlicingConfig: {}}"),
       "cannot use TimeSlicingConfig with the 'MPS' strategy"},
      {typed("GpuConfig",
             "sharing: {strategy: MPS, mpsConfig: {defaultActiveThreadPercentage: "
             "101}}"),
       "must not be greater than 100"},
      {typed("GpuConfig",
             "sharing: {strategy: MPS, mpsConfig: {defaultActiveThreadPercentage: "
             "-1}}"),
       "must not be negative"},
      {typed("GpuConfig",
             "sharing: {strategy: MPS, mpsConfig: {defaultActiveThreadPercentage: "
             "x}}"),
       "of type int"},
      {typed("GpuConfig",
             "sharing: {strategy: MPS, mpsConfig: {defaultPinnedDeviceMemoryLimit: "
             "lots}}"),
       "defaultPinnedDeviceMemoryLimit"},
      {typed("GpuConfig",
             "sharing: {strategy: MPS, mpsConfig: {defaultPerDevicePinnedMemoryLimit: [1]}}"),
       "of type map"},
  };
  for (const auto& [yaml, message] : cases) EXPECT_THAT(error_of(yaml), HasSubstr(message)) << yaml;
}

class ConfigChoice : public testing::Test {
 protected:
  static RequestConfig config(std::vector<std::string> requests, bool for_mig) {
    RequestConfig out{std::move(requests), {}};
    out.config.for_mig = for_mig;
    return out;
  }
  static std::optional<std::size_t> chosen(const std::vector<RequestConfig>& configs,
                                           const std::string& request, bool is_mig) {
    driver::AllocatedDevice device;
    device.request = request;
    const auto found = config_of(configs, device, is_mig);
    EXPECT_TRUE(found.ok()) << found.error().message();
    return found ? *found : std::nullopt;
  }
};

TEST_F(ConfigChoice, is_the_last_one_of_its_kind) {
  const std::vector<RequestConfig> configs = {config({}, false), config({"a"}, false),
                                              config({}, true)};
  EXPECT_EQ(chosen(configs, "a", false), 1u);
  EXPECT_EQ(chosen(configs, "a/large", false), 1u);
  EXPECT_EQ(chosen(configs, "b", false), 0u);
  EXPECT_EQ(chosen(configs, "b", true), 2u);
  EXPECT_EQ(chosen({}, "b", true), std::nullopt);
}

TEST_F(ConfigChoice, refuses_one_that_is_meant_for_it_and_of_the_other_kind) {
  driver::AllocatedDevice device;
  device.request = "a";
  device.device = "gpu-0";
  const auto found = config_of({config({"a"}, true)}, device, false);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message(),
            "cannot apply MigDeviceConfig to device \"gpu-0\" of type \"gpu\" (request: a)");
}

}  // namespace
}  // namespace dibs::drivers::nvidia
