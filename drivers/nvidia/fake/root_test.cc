#include "drivers/nvidia/fake/root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "base/strings.h"
#include "drivers/nvidia/fake/files.h"
#include "drivers/nvidia/fake/testing/fake_machine.h"

namespace dibs::drivers::nvidia::fake {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
namespace fs = std::filesystem;

constexpr std::string_view kCaps = "/proc/driver/nvidia/capabilities";

std::string content(const std::string& path) {
  const auto text = read_file(path);
  return text.ok() ? *text : text.error().message();
}

/// What a command prints.
std::string output_of(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string out;
  char buffer[1024];
  for (std::size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    out.append(buffer, got);
  }
  pclose(pipe);
  return out;
}

/// An H200 with MIG on.
struct World {
  World() : machine("h200") {
    const std::string text = content(machine.path());
    EXPECT_TRUE(write_file(machine.path(), text + "  migEnabled: true\n").ok());
    root = machine.lay_out();
  }
  std::string smi(const std::string& arguments) const {
    return output_of(root + "/usr/bin/nvidia-smi " + arguments);
  }
  FakeMachine machine;
  std::string root;
};

TEST(Root, has_what_a_machine_with_the_driver_has) {
  const FakeMachine machine("dgx-h100");
  const std::string root = machine.lay_out();

  for (const char* path :
       {"dev/nvidia0", "dev/nvidia7", "dev/nvidiactl", "dev/nvidia-uvm",
        "dev/nvidia-caps/nvidia-cap1", "usr/lib/x86_64-linux-gnu/libcuda.so.1",
        "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.95.05", "usr/bin/nvidia-smi",
        "usr/bin/nvidia-cuda-mps-control", "proc/driver/nvidia/version",
        "proc/driver/nvidia/gpus/0000:df:00.0/information", "proc/driver/nvidia-caps/mig-minors",
        "sys/bus/pci/devices/0000:1b:00.0/numa_node"}) {
    EXPECT_TRUE(fs::exists(root + "/" + path)) << path;
  }
  EXPECT_EQ(content(root + "/sys/bus/pci/devices/0000:9d:00.0/numa_node"), "1\n");
  EXPECT_THAT(fs::canonical(root + "/sys/bus/pci/devices/0000:1b:00.0").string(),
              HasSubstr("/sys/devices/pci0000:15/"));
}

TEST(Root, numbers_capabilities_as_the_kernel_module) {
  EXPECT_EQ(gpu_instance_cap(0, 0), 3U);
  EXPECT_EQ(compute_instance_cap(0, 0, 0), 4U);
  EXPECT_EQ(gpu_instance_cap(0, 1), 12U);
  EXPECT_EQ(gpu_instance_cap(1, 0), 138U);
}

TEST(Root, follows_the_instances) {
  const World world;
  const std::string instance = cat(world.root, kCaps, "/gpu0/mig/gi9");
  EXPECT_FALSE(fs::exists(instance));

  world.machine.run("create", "0 1g.18gb 2");

  EXPECT_THAT(content(instance + "/access"),
              StartsWith("DeviceFileMinor: 84\nDeviceFileMode: 292\n"));
  EXPECT_THAT(content(instance + "/ci0/access"), StartsWith("DeviceFileMinor: 85\n"));
  EXPECT_TRUE(fs::exists(world.root + "/dev/nvidia-caps/nvidia-cap84"));
  EXPECT_TRUE(fs::exists(world.root + "/dev/nvidia-caps/nvidia-cap85"));
  EXPECT_THAT(content(world.root + "/proc/driver/nvidia-caps/mig-minors"),
              HasSubstr("gpu0/gi9/access 84\ngpu0/gi9/ci0/access 85\n"));

  world.machine.run("destroy", "0 9");

  EXPECT_FALSE(fs::exists(instance));
  EXPECT_FALSE(fs::exists(world.root + "/dev/nvidia-caps/nvidia-cap84"));
  EXPECT_TRUE(fs::exists(world.root + "/dev/nvidia-caps/nvidia-cap1"));
}

TEST(Root, lists_gpus_and_instances_with_nvidia_smi) {
  const World world;
  world.machine.run("create", "0 2g.35gb 4");
  world.machine.run("create", "0 1g.18gb+me 2");

  EXPECT_THAT(world.smi("-L"),
              MatchesRegex("GPU 0: NVIDIA H200 \\(UUID: GPU-5d1f3b7a-[-0-9a-f]+\\)\n"
                           "  MIG 2g\\.35gb     Device  0: \\(UUID: MIG-[-0-9a-f]+\\)\n"
                           "  MIG 1g\\.18gb\\+me  Device  1: \\(UUID: MIG-[-0-9a-f]+\\)\n"));
}

TEST(Root, lists_only_what_has_its_device_nodes) {
  const World world;
  world.machine.run("create", "0 2g.35gb 4");
  world.machine.run("create", "0 1g.18gb 2");

  // As in a container that got one of the two.
  fs::remove(world.root + "/dev/nvidia-caps/nvidia-cap84");
  EXPECT_THAT(world.smi("-L"), Not(HasSubstr("1g.18gb")));
  EXPECT_THAT(world.smi("-L"), HasSubstr("2g.35gb"));

  fs::remove(world.root + "/dev/nvidia0");
  EXPECT_EQ(world.smi("-L"), "No devices found.\n");
}

TEST(Root, keeps_time_slices) {
  const World world;
  const std::string uuid = "GPU-5d1f3b7a-9c42-4e0b-8a6d-2f7e1c9b4a60";

  EXPECT_THAT(world.smi("compute-policy -i " + uuid + " --set-timeslice=2"),
              HasSubstr("Successfully set"));

  EXPECT_EQ(content(world.root + "/run/fake-nvml/timeslice-" + uuid), "2\n");
  EXPECT_THAT(world.smi("compute-policy -i " + uuid + " --set-timeslice=9"),
              HasSubstr("time slices are"));
  EXPECT_EQ(world.smi("compute-policy -i GPU-none --set-timeslice=1"), "No devices were found\n");
}

TEST(Root, serves_mps) {
  const World world;
  const std::string environment =
      cat("CUDA_MPS_PIPE_DIRECTORY=", world.machine.folder(),
          "/pipe CUDA_MPS_LOG_DIRECTORY=", world.machine.folder(), "/log ");
  const std::string control = environment + world.root + "/usr/bin/nvidia-cuda-mps-control";

  EXPECT_THAT(output_of("echo get_default_active_thread_percentage | " + control),
              HasSubstr("Cannot find MPS control daemon"));
  EXPECT_EQ(output_of(control + " -d"), "");
  EXPECT_TRUE(fs::exists(world.machine.folder() + "/pipe/control"));
  output_of("echo set_default_active_thread_percentage 50 | env " + control);
  EXPECT_EQ(output_of("echo get_default_active_thread_percentage | env " + control), "50\n");
  output_of("echo quit | env " + control);
  EXPECT_FALSE(fs::exists(world.machine.folder() + "/pipe/control"));
}

/// By glibc's own reader.
TEST(Root, has_a_cache_of_libraries) {
  const FakeMachine machine("l4");
  const std::string root = machine.lay_out();

  const std::string listed = output_of("/sbin/ldconfig -p -C " + root + "/etc/ld.so.cache");

  EXPECT_THAT(listed, HasSubstr("libcuda.so.1 (libc6,x86-64) => "
                                "/usr/lib/x86_64-linux-gnu/libcuda.so.1"));
  EXPECT_THAT(listed, HasSubstr("libnvidia-ml.so.1 (libc6,x86-64) =>"));
  EXPECT_THAT(listed, StartsWith("14 libs found"));
}

}  // namespace
}  // namespace dibs::drivers::nvidia::fake
