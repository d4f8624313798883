#include "drivers/nvidia/nvidia_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "drivers/nvidia/nvidia_driver_for_test.h"

namespace dibs::drivers::nvidia {
namespace {

using driver::ClaimName;
using driver::test::DyingFiles;
using driver::test::TestWorld;
using json::Value;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const client::Gvr kClasses = {"resource.k8s.io", "v1", "deviceclasses"};

TEST_F(NvidiaDriver, publishes_what_can_be_had) {
  start();
  EXPECT_TRUE(running.plugin->is_published());
  const auto found = devices();
  EXPECT_EQ(found.size(), 1u + 7 + 7 + 4 + 3 + 2 + 1 + 1);
  EXPECT_EQ(found.at("gpu-0")["attributes"]["uuid"]["string"].str(), machine.uuid());
  EXPECT_EQ(found.at("gpu-0")["attributes"]["resource.kubernetes.io/pcieRoot"]["string"].str(),
            "pci0000:16");
  EXPECT_EQ(found.at("gpu-0")["attributes"]["resource.kubernetes.io/numaNode"]["int"].as_int(), 0);
  EXPECT_EQ(found.at(kLarge4)["attributes"]["profile"]["string"].str(), "3g.71gb");

  const Value gpu = *world.api->get(kClasses, "", "gpu.nvidia.com");
  EXPECT_EQ(gpu["spec"]["extendedResourceName"].str(), "nvidia.com/gpu");
  EXPECT_EQ(gpu["spec"]["selectors"][0]["cel"]["expression"].str(),
            "device.driver == 'gpu.nvidia.com' && "
            "device.attributes['gpu.nvidia.com'].type == 'gpu'");
  EXPECT_TRUE(world.api->get(kClasses, "", "mig.nvidia.com").ok());
}

TEST_F(NvidiaDriver, gives_a_whole_gpu) {
  start();
  const ClaimName whole = claim("a", {"gpu-0"});
  EXPECT_EQ(prepare(whole), "");
  const auto spec = cdi_of(whole);
  EXPECT_EQ(spec.kind, "k8s.gpu.nvidia.com/claim");
  ASSERT_EQ(spec.devices.size(), 1u);
  EXPECT_EQ(spec.devices[0].name, cat(whole.uid, "-gpu-0"));
  EXPECT_THAT(nodes(spec.devices[0]), Contains("/dev/nvidia0"));
  EXPECT_THAT(nodes(spec.devices[0]), Contains("/dev/nvidiactl"));
  EXPECT_THAT(spec.devices[0].edits.env, ElementsAre("NVIDIA_VISIBLE_DEVICES=void"));
  std::set<std::string> mounts;
  for (const auto& mount : spec.devices[0].edits.mounts) mounts.insert(mount.container_path);
  for (const char* path :
       {"/usr/bin/nvidia-smi", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        "/usr/lib/x86_64-linux-gnu/libcuda.so", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"}) {
    EXPECT_TRUE(mounts.contains(path)) << path;
  }
  EXPECT_FALSE(machine.mig_enabled());
  EXPECT_EQ(prepare(whole), "");
  forget("a");
  EXPECT_THAT(prepare(claim("b", {kSmall0})), HasSubstr("the GPU is still prepared for claim"));
  EXPECT_FALSE(machine.mig_enabled());
  EXPECT_EQ(unprepare(whole), "");
  EXPECT_TRUE(ledger()["claims"].empty());
  EXPECT_THAT(programs.lines(), IsEmpty());
}

TEST_F(NvidiaDriver, makes_an_instance_and_destroys_it) {
  start();
  const ClaimName small = claim("a", {kSmall4});
  EXPECT_EQ(prepare(small), "");
  EXPECT_THAT(machine.instances(), ElementsAre("19@4"));
  EXPECT_THAT(nodes(cdi_of(small).devices.at(0)),
              AllOf(Contains("/dev/nvidia0"), Contains(StartsWith("/dev/nvidia-caps/nvidia-cap"))));
  EXPECT_EQ(ledger()["claims"][0]["state"].str(), "ready");
  EXPECT_EQ(prepare(small), "");
  EXPECT_THAT(machine.instances(), ElementsAre("19@4"));

  restart();
  EXPECT_EQ(prepare(small), "");
  EXPECT_THAT(machine.instances(), ElementsAre("19@4"));
  EXPECT_EQ(unprepare(small), "");
  EXPECT_THAT(machine.instances(), IsEmpty());
  EXPECT_FALSE(machine.mig_enabled());
  EXPECT_FALSE(ledger().contains("migModeBefore"));
  EXPECT_EQ(unprepare(small), "");
}

TEST_F(NvidiaDriver, gives_a_gpu_to_several_claims_that_fit) {
  start();
  const ClaimName a = claim("a", {kSmall0, "gpu-0-mig-2g35gb-14-2"});
  const ClaimName b = claim("b", {kSmall4});
  EXPECT_EQ(prepare(a), "");
  EXPECT_EQ(prepare(b), "");
  EXPECT_THAT(machine.instances(), ElementsAre("19@0", "14@2", "19@4"));
  const auto spec = cdi_of(a);
  ASSERT_EQ(spec.devices.size(), 2u);
  // Each has its own capabilities, and none of the other claim's.
  std::set<std::string> caps;
  std::size_t count = 0;
  for (const auto& device : {spec.devices[0], spec.devices[1], cdi_of(b).devices.at(0)}) {
    for (const auto& node : nodes(device)) {
      if (!node.starts_with("/dev/nvidia-caps/")) continue;
      caps.insert(node);
      ++count;
    }
  }
  EXPECT_EQ(count, 6u);
  EXPECT_EQ(caps.size(), 6u);

  // The server would not let others have them. Where it forgot, the driver does not.
  forget("b");
  EXPECT_THAT(prepare(claim("c", {kLarge4})),
              HasSubstr(cat(kSmall4, " is still prepared for claim default/b")));
  forget("a");
  forget("c");
  EXPECT_THAT(prepare(claim("d", {"gpu-0"})), HasSubstr("is still prepared for claim"));
  forget("d");
  EXPECT_EQ(unprepare(b), "");
  EXPECT_TRUE(machine.mig_enabled());
  EXPECT_EQ(prepare(claim("e", {kLarge4})), "");
  EXPECT_THAT(machine.instances(), ElementsAre("19@0", "14@2", "9@4"));
}

TEST_F(NvidiaDriver, makes_all_instances_of_a_claim_or_none) {
  start();
  machine.set_faults(
      "calls: [{call: nvmlGpuInstanceCreateComputeInstance, code: insufficient_resources, after: "
      "1}]");
  const ClaimName two = claim("a", {kSmall0, kSmall4});
  EXPECT_THAT(prepare(two), HasSubstr(cat("error creating MIG device ", kSmall4)));
  EXPECT_THAT(machine.instances(), IsEmpty());
  EXPECT_FALSE(machine.mig_enabled());
  EXPECT_TRUE(ledger()["claims"].empty());
  machine.set_faults("");
  EXPECT_EQ(prepare(two), "");
}

TEST_F(NvidiaDriver, leaves_instances_of_others_alone) {
  ASSERT_TRUE(machine.others().set_mig_mode(machine.uuid(), true).ok());
  ASSERT_TRUE(machine.others().create_mig(machine.uuid(), 19, {4, 1}).ok());
  start();
  auto found = devices();
  EXPECT_FALSE(found.contains("gpu-0"));
  EXPECT_FALSE(found.contains(kLarge4));
  EXPECT_TRUE(found.at(kSmall4)["attributes"].contains("uuid"));
  // It can be had, and outlives who has it.
  const ClaimName theirs = claim("a", {kSmall4});
  const ClaimName ours = claim("b", {kSmall0});
  EXPECT_EQ(prepare(theirs), "");
  EXPECT_EQ(prepare(ours), "");
  EXPECT_THAT(machine.instances(), ElementsAre("19@0", "19@4"));
  restart();
  EXPECT_EQ(unprepare(theirs), "");
  EXPECT_EQ(unprepare(ours), "");
  EXPECT_THAT(machine.instances(), ElementsAre("19@4"));
  EXPECT_TRUE(machine.mig_enabled());
}

TEST_F(NvidiaDriver, sees_instances_that_others_make_meanwhile) {
  ASSERT_TRUE(machine.others().set_mig_mode(machine.uuid(), true).ok());
  start();
  ASSERT_TRUE(machine.others().create_mig(machine.uuid(), 19, {4, 1}).ok());
  EXPECT_THAT(prepare(claim("a", {kLarge4})), HasSubstr("which this driver has not made"));
  EXPECT_THAT(machine.instances(), ElementsAre("19@4"));
  wait();
  EXPECT_FALSE(devices().contains(kLarge4));
  EXPECT_TRUE(devices().at(kSmall4)["attributes"].contains("uuid"));
}

/// The machine is as it was, whatever write was the last one.
TEST_F(NvidiaDriver, may_be_killed_between_any_two_writes) {
  const ClaimName two = claim("a", {kSmall0, kLarge4});
  for (int n = 0;; ++n) {
    SCOPED_TRACE(n);
    running = {};
    DyingFiles dying(*world.files, n);
    if (auto mortal = start_nvidia_driver(world.environment(dying), options); mortal.ok()) {
      running = std::move(mortal).value();
      prepare(two);
      unprepare(two);
    }
    const bool died = dying.died();
    restart();
    EXPECT_EQ(prepare(two), "");
    EXPECT_THAT(machine.instances(), ElementsAre("19@0", "9@4"));
    EXPECT_EQ(unprepare(two), "");
    EXPECT_THAT(machine.instances(), IsEmpty());
    EXPECT_FALSE(machine.mig_enabled());
    EXPECT_TRUE(ledger()["claims"].empty());
    EXPECT_THAT(*world.files->list("/node/cdi"), IsEmpty());
    if (!died) break;
  }
}

/// As above, and nobody asks for the claim again: another one gets what it was to have.
TEST_F(NvidiaDriver, that_was_killed_while_preparing_takes_back_what_it_made) {
  const ClaimName lost = claim("a", {kSmall0, kLarge4});
  const ClaimName next = claim("b", {"gpu-0"});
  for (int n = 0;; ++n) {
    SCOPED_TRACE(n);
    running = {};
    DyingFiles dying(*world.files, n);
    if (auto mortal = start_nvidia_driver(world.environment(dying), options); mortal.ok()) {
      running = std::move(mortal).value();
      prepare(lost);
    }
    const bool died = dying.died();
    restart();
    const Value first = ledger()["claims"][0];
    // Only what was finished is still there; its agent unprepares it.
    if (first["state"].as_string() != "ready") {
      EXPECT_THAT(machine.instances(), IsEmpty());
    }
    EXPECT_EQ(unprepare(lost), "");
    EXPECT_EQ(prepare(next), "");
    EXPECT_EQ(unprepare(next), "");
    EXPECT_THAT(machine.instances(), IsEmpty());
    EXPECT_FALSE(machine.mig_enabled());
    if (!died) break;
  }
}

TEST_F(NvidiaDriver, unprepares_what_it_never_saw) {
  start();
  EXPECT_EQ(unprepare({"default", "never", "11111111-2222-3333-4444-555555555555"}), "");
}

TEST_F(NvidiaDriver, refuses_what_it_cannot_do) {
  start();
  const std::pair<std::string, std::string> cases[] = {
      {opaque("{'kind': 7}"), "Object 'Kind' is missing"},
      {sharing("GpuConfig", "{'strategy': 'Hope'}"), "unknown GPU sharing strategy: Hope"},
      {sharing("GpuConfig", "7"), "cannot unmarshal number"},
      {sharing("VfioDeviceConfig", "{}"), "passes no GPU through"},
      {opaque("{'apiVersion': 'resource.nvidia.com/v1beta1', 'kind': 'MigDeviceConfig'}", "['r']"),
       "cannot apply MigDeviceConfig to device \"gpu-0\""},
  };
  int n = 0;
  for (const auto& [config, message] : cases) {
    const ClaimName bad = claim(cat("c", ++n), {"gpu-0"}, cat("[", config, "]"));
    EXPECT_THAT(prepare(bad), HasSubstr(message));
    EXPECT_EQ(unprepare(bad), "");
    forget(bad.name);
  }
  EXPECT_THAT(prepare(claim("x", {"gpu-7"})),
              HasSubstr("allocatable not found for device \"gpu-7\""));
  EXPECT_TRUE(ledger()["claims"].empty());
  EXPECT_EQ(prepare(claim("good", {"gpu-0"})), "");
}

TEST_F(NvidiaDriver, says_what_a_machine_lacks_before_it_changes_anything) {
  std::filesystem::remove_all(machine.root() + "/dev");
  start();
  EXPECT_THAT(prepare(claim("a", {kSmall0})), HasSubstr("nvidia-modprobe"));
  EXPECT_THAT(machine.instances(), IsEmpty());
  EXPECT_FALSE(machine.mig_enabled());
}

TEST_F(NvidiaDriver, lets_administrators_look_on) {
  start();
  Value name_space = *world.api->get({"", "v1", "namespaces"}, "", "default");
  name_space.mut("metadata").mut("labels").set("resource.kubernetes.io/admin-access", "true");
  ASSERT_TRUE(world.api->update({"", "v1", "namespaces"}, "", name_space).ok());
  const ClaimName owner = claim("a", {kSmall0});
  EXPECT_EQ(prepare(owner), "");
  const std::string admin = ", 'adminAccess': true";
  const ClaimName watcher = claim("b", {kSmall0}, "[]", admin);
  EXPECT_EQ(prepare(watcher), "");
  EXPECT_EQ(nodes(cdi_of(watcher).devices.at(0)), nodes(cdi_of(owner).devices.at(0)));
  EXPECT_EQ(prepare(claim("c", {"gpu-0"}, "[]", admin)), "");
  EXPECT_EQ(unprepare(watcher), "");
  EXPECT_THAT(machine.instances(), ElementsAre("19@0"));
  EXPECT_THAT(prepare(claim("d", {kSmall4}, "[]", admin)), HasSubstr("is not there"));
}

TEST_F(NvidiaDriver, publishes_a_gpu_whose_profiles_have_no_places) {
  machine.set_faults(
      "calls: [{call: nvmlDeviceGetGpuInstancePossiblePlacements_v2, code: not_supported}]");
  start();
  EXPECT_EQ(devices().size(), 1u);
  EXPECT_EQ(prepare(claim("a", {"gpu-0"})), "");
}

TEST_F(NvidiaDriver, finds_the_library_in_a_folder_of_its_own) {
  namespace fs = std::filesystem;
  const fs::path root = machine.root();
  fs::create_directories(root / "usr/local/nvidia");
  fs::rename(root / "usr/lib/x86_64-linux-gnu", root / "usr/local/nvidia/lib64");
  fs::remove(root / "etc/ld.so.cache");
  fs::remove(root / "usr/local/nvidia/lib64/libnvidia-ml.so.1");
  start();
  EXPECT_EQ(prepare(claim("a", {"gpu-0"})), "");
}

TEST_F(NvidiaDriver, loads_the_module_that_containers_cannot_load) {
  start();
  std::filesystem::remove(machine.root() + "/dev/nvidia-uvm");
  const ClaimName whole = claim("a", {"gpu-0"});
  EXPECT_EQ(prepare(whole), "");
  EXPECT_THAT(programs.lines(), IsEmpty());
  std::ofstream(machine.root() + "/usr/bin/nvidia-modprobe") << "";
  EXPECT_EQ(prepare(whole), "");
  EXPECT_THAT(programs.lines(), ElementsAre("nvidia-modprobe -u -c 0"));
}

TEST_F(NvidiaDriver, tells_how_much_is_used) {
  machine.set_faults("gpus: [{gpu: 0, gpuPercent: 37, memoryUsed: 12Gi}]");
  start();
  world.settle(std::chrono::seconds(2));
  std::string text;
  for (const auto& slice : world.slices()) {
    const Value& found = slice["metadata"]["annotations"][kUsageAnnotation];
    if (found.is_string()) text = found.str();
  }
  const auto usage = json::parse(text);
  ASSERT_TRUE(usage.ok()) << text;
  EXPECT_EQ((*usage)["gpu-0"]["percent"].as_int(), 37);
  EXPECT_EQ((*usage)["gpu-0"]["memory"].as_int(), 143771LL << 20);
  EXPECT_GE((*usage)["gpu-0"]["memoryUsed"].as_int(), 12LL << 30);
}

TEST_F(NvidiaDriver, lets_others_make_instances_where_it_is_told_to) {
  options.mig = "static";
  ASSERT_TRUE(machine.others().set_mig_mode(machine.uuid(), true).ok());
  ASSERT_TRUE(machine.others().create_mig(machine.uuid(), 9, {0, 4}).ok());
  start();
  EXPECT_EQ(devices().size(), 1u);
  const ClaimName large = claim("a", {"gpu-0-mig-3g71gb-9-0"});
  EXPECT_EQ(prepare(large), "");
  EXPECT_EQ(unprepare(large), "");
  EXPECT_THAT(machine.instances(), ElementsAre("9@0"));
}

TEST_F(NvidiaDriver, does_not_start_with_what_cannot_be) {
  options.mig = "sometimes";
  EXPECT_THAT(start_nvidia_driver(world.environment(), options).error().message(),
              HasSubstr("--mig"));
  options.mig = "dynamic";
  options.ignored_xids = {"many"};
  EXPECT_THAT(start_nvidia_driver(world.environment(), options).error().message(),
              HasSubstr("--additional-xids-to-ignore"));
  options.ignored_xids = {};
  options.nvml_library = "/nonexistent/libnvidia-ml.so.1";
  EXPECT_THAT(start_nvidia_driver(world.environment(), options).error().message(),
              HasSubstr("--nvml-library"));
}

class NvidiaDgx : public NvidiaDriver {
 protected:
  NvidiaDgx() : NvidiaDriver("dgx-h100") {}
};

TEST_F(NvidiaDgx, publishes_all_of_its_gpus) {
  start();
  EXPECT_TRUE(running.plugin->is_published());
  std::size_t gpus = 0;
  for (const auto& [name, device] : devices()) {
    gpus += device["attributes"]["type"]["string"].as_string() == "gpu" ? 1 : 0;
  }
  EXPECT_EQ(gpus, 8u);
  EXPECT_EQ(world.slices().size(), 9u);
}

TEST_F(NvidiaDgx, loses_one_gpu_and_keeps_the_others) {
  start();
  machine.set_faults("gpus: [{gpu: 3, lost: true}]");
  wait();
  EXPECT_THAT(taints("gpu-3"), ElementsAre("gpu.nvidia.com/gpu-lost=:NoSchedule"));
  EXPECT_THAT(taints("gpu-4"), IsEmpty());
  EXPECT_EQ(prepare(claim("a", {"gpu-4", "gpu-5-mig-1g10gb-19-0"})), "");
  EXPECT_EQ(cdi_of(TestWorld::name_of(*world.api->get(driver::test::kClaims, "default", "a")))
                .devices.size(),
            2u);
}

class NvidiaA100 : public NvidiaDriver {
 protected:
  NvidiaA100() : NvidiaDriver("a100-40") {}
};

/// The mode of the first one is on, of the second off, and neither changes without a reset.
TEST_F(NvidiaA100, is_whole_or_in_parts_as_its_mode_is) {
  start();
  EXPECT_TRUE(devices().contains("gpu-1"));
  EXPECT_TRUE(devices().contains("gpu-0-mig-7g40gb-0-0"));
  for (const auto& [name, device] : devices()) {
    EXPECT_EQ(device["attributes"]["type"]["string"].as_string(), name == "gpu-1" ? "gpu" : "mig")
        << name;
  }
}

class NvidiaL4 : public NvidiaDriver {
 protected:
  NvidiaL4() : NvidiaDriver("l4") {}
};

TEST_F(NvidiaL4, has_no_parts) {
  start();
  for (const auto& [name, device] : devices()) {
    EXPECT_EQ(device["attributes"]["type"]["string"].as_string(), "gpu") << name;
  }
  EXPECT_EQ(prepare(claim("a", {"gpu-0"})), "");
}

}  // namespace
}  // namespace dibs::drivers::nvidia
