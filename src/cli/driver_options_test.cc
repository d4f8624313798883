#include "cli/driver_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/gpu/gpu_driver.h"
#include "drivers/net/control/control_half.h"
#include "drivers/net/node/node_half.h"
#include "drivers/nvidia/nvidia_driver.h"

namespace dibs::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(DriverOptions, are_laid_over_what_the_node_says) {
  const auto chosen = parse_drivers({"gpu:num-devices=4+partitions=2", "binding-conditions=true",
                                     "gpu-pcie-roots=pci0000:80+gpu-pcie-roots=pci0000:81", "cpu",
                                     "net:allow-immediate+enable-ipv6=false", "subnet-match=off"});
  ASSERT_TRUE(chosen.ok()) << chosen.error().message();
  ASSERT_EQ(chosen->size(), 3U);
  EXPECT_EQ((*chosen)[1].name, "cpu");
  EXPECT_FALSE((*chosen)[1].tuning.gpu);

  drivers::GpuDriverOptions gpu;
  gpu.node_name = "node-0";
  (*chosen)[0].tuning.gpu(gpu);
  EXPECT_EQ(gpu.node_name, "node-0");
  EXPECT_EQ(gpu.devices, 4U);
  EXPECT_EQ(gpu.gpu_partitions, 2U);
  EXPECT_TRUE(gpu.binding_conditions);
  EXPECT_THAT(gpu.gpu_pcie_roots, ElementsAre("pci0000:80", "pci0000:81"));

  drivers::net::NodeHalfOptions node;
  node.node_name = "node-0";
  (*chosen)[2].tuning.net_node(node);
  EXPECT_EQ(node.node_name, "node-0");
  EXPECT_FALSE(node.ipam.selection.ipv6);
  EXPECT_TRUE(node.ipam.selection.ipv4);
  drivers::net::ControlHalfOptions control;
  (*chosen)[2].tuning.net_control(control);
  EXPECT_TRUE(control.allow_immediate);
  EXPECT_FALSE(control.ipam.selection.ipv6);
}

TEST(DriverOptions, of_places_mean_the_same_in_every_folder) {
  const auto chosen = parse_drivers({"nvidia:driver-root=.", "mig=static+usage-every=5s"});
  ASSERT_TRUE(chosen.ok()) << chosen.error().message();
  drivers::nvidia::NvidiaDriverOptions options;
  (*chosen)[0].tuning.nvidia(options);
  EXPECT_THAT(options.driver_root, StartsWith("/"));
  EXPECT_EQ(options.sysfs_root, "") << "found by itself";
  EXPECT_EQ(options.mig, "static");
  EXPECT_EQ(options.usage_every, std::chrono::seconds(5));
}

TEST(DriverOptions, that_are_wrong_are_told_with_their_driver) {
  const auto error_of = [](const std::vector<std::string>& words) {
    const auto chosen = parse_drivers(words);
    return chosen.ok() ? "" : chosen.error().message();
  };
  EXPECT_EQ(error_of({"gpuu"}),
            "--drivers \"gpuu\": must be gpu, sim-net, cpu, net or nvidia; did you mean \"gpu\"?");
  EXPECT_THAT(error_of({"gpu:partitons=4"}),
              StartsWith("--drivers gpu: option \"partitons\" is unknown; did you mean "
                         "\"partitions\"?; known are num-devices, partitions, "));
  EXPECT_EQ(error_of({"gpu:partitions=x"}),
            "--drivers gpu: option \"partitions\": \"x\": must be a whole number from 0 to 128");
  EXPECT_THAT(error_of({"gpu:partitions"}), HasSubstr("option \"partitions\": needs a value"));
  EXPECT_THAT(error_of({"gpu:partitions="}), HasSubstr("option \"partitions\": needs a value"));
  EXPECT_THAT(error_of({"gpu:partitions=1+partitions=2"}), HasSubstr("given more than once"));
  EXPECT_THAT(error_of({"gpu:node-name=x"}), HasSubstr("decided by the cluster"));
  EXPECT_THAT(error_of({"gpu:"}), HasSubstr("an option is empty"));
  EXPECT_THAT(error_of({"partitions=4"}), HasSubstr("behind a driver and a colon"));
  EXPECT_THAT(error_of({"gpu", "partitions=4"}), HasSubstr("behind a driver and a colon"));
  EXPECT_THAT(error_of({"gpu:gpu-pcie-roots=x"}), StartsWith("--drivers gpu: --gpu-pcie-roots"));
  EXPECT_THAT(error_of({"net:resource-pools=/no/such"}), StartsWith("--drivers net: --resource-"));
  EXPECT_THAT(error_of({"net:subnet-match=x"}), HasSubstr("is not one of auto, strict, off"));
  EXPECT_EQ(error_of({"nvidia:mig=often"}),
            "--drivers nvidia: option \"mig\": \"often\" is not one of dynamic, static");
  EXPECT_EQ(error_of({"nvidia:nvml-library=/no/such.so"}),
            "--drivers nvidia: --nvml-library: no such file: /no/such.so");
  EXPECT_EQ(error_of({"nvidia:container-env=X"}),
            "--drivers nvidia: --container-env: \"X\" is not NAME=VALUE");
  EXPECT_EQ(error_of({"gpu", "gpu"}), "--drivers gpu: named twice");
}

}  // namespace
}  // namespace dibs::cli
