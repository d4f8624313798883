#include "drivers/nvidia/nvml/library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "drivers/nvidia/fake/testing/fake_machine.h"
#include "drivers/nvidia/nvml/loaded.h"

namespace dibs::drivers::nvidia::nvml {
namespace {

using fake::FakeMachine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kMiB = 1024 * 1024;

std::unique_ptr<Library> open_fake() {
  auto library = Library::open(FakeMachine::library());
  EXPECT_TRUE(library.ok()) << library.error().message();
  return library.ok() ? std::move(*library) : nullptr;
}

/// The value, or a test that fails with the error.
template <typename T>
T must(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.error().message();
  return result.ok() ? std::move(*result) : T();
}

std::string first_gpu(Library& library) {
  const auto uuids = must(library.gpu_uuids());
  return uuids.empty() ? "" : uuids.front();
}

template <typename T>
Code code_of_failure(const Result<T>& result) {
  return result.ok() ? Code::ok : code_of(result.error());
}

TEST(Library, tells_what_is_missing_where_there_is_none) {
  const auto library = Library::open("/nowhere/libnvidia-ml.so.1");

  ASSERT_FALSE(library.ok());
  EXPECT_EQ(code_of(library.error()), Code::library_not_found);
  EXPECT_THAT(library.error().message(), HasSubstr("/nowhere/libnvidia-ml.so.1"));
  EXPECT_THAT(library.error().message(), HasSubstr("--nvml-library"));
}

TEST(Library, refuses_a_library_that_is_not_nvml) {
  const auto library = Library::open("libyaml-0.so.2");

  ASSERT_FALSE(library.ok());
  EXPECT_EQ(code_of(library.error()), Code::function_not_found);
  EXPECT_THAT(library.error().message(), HasSubstr("nvmlInit_v2"));
}

TEST(Library, tells_the_versions) {
  const FakeMachine machine("h200");
  const auto library = open_fake();

  EXPECT_EQ(must(library->driver_version()), "580.95.05");
  EXPECT_EQ(must(library->cuda_version()), "13.0");
}

TEST(Library, describes_a_gpu) {
  const FakeMachine machine("h200");
  const auto library = open_fake();

  const GpuInfo gpu = must(library->gpu(first_gpu(*library)));

  EXPECT_EQ(gpu.index, 0U);
  EXPECT_EQ(gpu.minor, 0U);
  EXPECT_EQ(gpu.uuid, "GPU-5d1f3b7a-9c42-4e0b-8a6d-2f7e1c9b4a60");
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_EQ(gpu.brand, "Nvidia");
  EXPECT_EQ(gpu.architecture, "Hopper");
  EXPECT_EQ(gpu.compute_capability, "9.0");
  EXPECT_EQ(gpu.pci_bus_id, "0000:19:00.0");
  EXPECT_EQ(gpu.memory_bytes, 143771 * kMiB);
  EXPECT_TRUE(gpu.mig_capable);
  EXPECT_FALSE(gpu.mig_enabled);
  EXPECT_EQ(gpu.addressing_mode, "HMM");
}

TEST(Library, knows_a_gpu_without_mig) {
  const FakeMachine machine("l4");
  const auto library = open_fake();
  const std::string uuid = first_gpu(*library);

  const GpuInfo gpu = must(library->gpu(uuid));

  EXPECT_EQ(gpu.architecture, "Ada Lovelace");
  EXPECT_FALSE(gpu.mig_capable);
  EXPECT_THAT(must(library->mig_profiles(uuid)), IsEmpty());
  EXPECT_THAT(must(library->mig_instances(uuid)), IsEmpty());
  EXPECT_THAT(must(library->nvlinks(uuid)), IsEmpty());
  EXPECT_EQ(code_of_failure(library->set_mig_mode(uuid, true)), Code::not_supported);
}

TEST(Library, does_not_find_a_gpu_that_never_was) {
  const FakeMachine machine("l4");
  const auto library = open_fake();

  const auto gpu = library->gpu("GPU-none");

  ASSERT_FALSE(gpu.ok());
  EXPECT_EQ(code_of(gpu.error()), Code::not_found);
  EXPECT_EQ(gpu.error().code(), dibs::Code::not_found);
  EXPECT_THAT(gpu.error().message(), HasSubstr("GPU-none"));
}

TEST(Library, lists_eight_gpus_with_their_links) {
  const FakeMachine machine("dgx-h100");
  const auto library = open_fake();

  const auto uuids = must(library->gpu_uuids());
  const auto links = must(library->nvlinks(uuids.at(7)));

  EXPECT_THAT(uuids, SizeIs(8));
  ASSERT_THAT(links, SizeIs(18));
  EXPECT_TRUE(links[17].active);
  EXPECT_EQ(links[17].version, 4U);
  EXPECT_EQ(links[17].remote_kind, "switch");
  EXPECT_EQ(links[17].remote_pci_bus_id, "0000:08:00.0");
}

TEST(Library, tells_links_that_are_down) {
  const FakeMachine machine("dgx-h100");
  const auto library = open_fake();

  machine.faults("gpus: [{gpu: 0, linksDown: 2}]");

  const auto links = must(library->nvlinks(first_gpu(*library)));
  ASSERT_THAT(links, SizeIs(18));
  EXPECT_FALSE(links[1].active);
  EXPECT_TRUE(links[2].active);
}

TEST(Library, tells_utilization) {
  const FakeMachine machine("h200");
  const auto library = open_fake();
  machine.faults("gpus: [{gpu: 0, gpuPercent: 73, memoryPercent: 20, memoryUsed: 40Gi}]");

  const Utilization load = must(library->utilization(first_gpu(*library)));

  EXPECT_EQ(load.gpu_percent, 73U);
  EXPECT_EQ(load.memory_percent, 20U);
  EXPECT_EQ(load.memory_used, 40 * 1024 * kMiB);
  EXPECT_EQ(load.memory_total, 143771 * kMiB);
}

TEST(Library, has_no_percentages_of_a_gpu_in_mig_mode) {
  const FakeMachine machine("h200");
  const auto library = open_fake();
  const std::string uuid = first_gpu(*library);
  must(library->set_mig_mode(uuid, true));

  const Utilization load = must(library->utilization(uuid));

  EXPECT_FALSE(load.gpu_percent.has_value());
  EXPECT_EQ(load.memory_total, 143771 * kMiB);
}

TEST(Library, tells_errors_of_memory) {
  const FakeMachine machine("h200");
  const auto library = open_fake();
  const std::string uuid = first_gpu(*library);
  machine.faults(
      "gpus: [{gpu: 0, rows: {correctable: 2, uncorrectable: 1, pending: true, failed: true},"
      " ecc: {corrected: 5, uncorrected: 3}}]");

  const RemappedRows rows = must(library->remapped_rows(uuid));
  const EccErrors errors = must(library->ecc_errors(uuid));

  EXPECT_EQ(rows.correctable, 2U);
  EXPECT_EQ(rows.uncorrectable, 1U);
  EXPECT_TRUE(rows.pending);
  EXPECT_TRUE(rows.failed);
  EXPECT_TRUE(errors.enabled);
  EXPECT_EQ(errors.corrected, 5U);
  EXPECT_EQ(errors.uncorrected_ever, 3U);
}

TEST(Library, keeps_a_compute_mode) {
  const FakeMachine machine("l4");
  const auto library = open_fake();
  const std::string uuid = first_gpu(*library);

  must(library->set_compute_mode(uuid, ComputeMode::exclusive_process));

  EXPECT_EQ(must(library->compute_mode(uuid)), ComputeMode::exclusive_process);
}

TEST(Library, leaves_a_lost_gpu_out_and_tells_it) {
  const FakeMachine machine("dgx-h100");
  const auto library = open_fake();
  const std::string uuid = must(library->gpu_uuids()).at(3);
  machine.faults("gpus: [{gpu: 3, lost: true}]");

  std::vector<UnreadGpu> unread;
  const auto uuids = must(library->gpu_uuids(&unread));

  EXPECT_THAT(uuids, SizeIs(7));
  ASSERT_THAT(unread, SizeIs(1));
  EXPECT_EQ(unread[0].index, 3U);
  EXPECT_EQ(code_of(unread[0].error), Code::gpu_is_lost);
  const auto gpu = library->gpu(uuid);
  EXPECT_EQ(code_of_failure(gpu), Code::gpu_is_lost);
  EXPECT_EQ(gpu.error().code(), dibs::Code::unavailable);
}

TEST(Library, does_not_see_a_gpu_that_is_gone_until_it_is_back) {
  const FakeMachine machine("l4");
  const auto library = open_fake();
  const auto both = must(library->gpu_uuids());
  machine.faults("gpus: [{gpu: 0, gone: true}]");

  EXPECT_THAT(must(library->gpu_uuids()), ElementsAre(both[1]));
  EXPECT_EQ(must(library->gpu(both[1])).index, 0U);
  EXPECT_EQ(code_of_failure(library->gpu(both[0])), Code::not_found);

  machine.faults("");
  EXPECT_EQ(must(library->gpu_uuids()), both);
}

TEST(Library, tells_the_code_that_a_call_fails_with) {
  const FakeMachine machine("l4");
  const auto library = open_fake();
  const std::string uuid = first_gpu(*library);
  machine.faults("calls: [{call: nvmlDeviceGetName, code: no_permission, times: 1}]");

  const auto first = library->gpu(uuid);
  const auto second = library->gpu(uuid);

  ASSERT_FALSE(first.ok());
  EXPECT_EQ(code_of(first.error()), Code::no_permission);
  EXPECT_EQ(first.error().code(), dibs::Code::forbidden);
  EXPECT_THAT(first.error().message(), HasSubstr("NVML_ERROR_NO_PERMISSION"));
  EXPECT_TRUE(second.ok());
}

TEST(Library, counts_calls_that_go_well_before_one_fails) {
  const FakeMachine machine("l4");
  const auto library = open_fake();
  machine.faults("calls: [{call: nvmlSystemGetDriverVersion, code: 999, after: 2, times: 1}]");

  std::vector<bool> went_well;
  for (int i = 0; i < 4; ++i) went_well.push_back(library->driver_version().ok());

  EXPECT_THAT(went_well, ElementsAre(true, true, false, true));
}

TEST(Library, waits_for_a_call_that_takes_long) {
  const FakeMachine machine("l4");
  const auto library = open_fake();
  machine.faults("calls: [{call: nvmlSystemGetDriverVersion, takes: 30ms}]");

  const auto begun = std::chrono::steady_clock::now();
  must(library->driver_version());

  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(30));
}

TEST(Library, tells_what_is_wrong_with_the_driver_when_it_is_opened) {
  const FakeMachine machine("l4");
  machine.faults("calls: [{call: nvmlInit_v2, code: driver_not_loaded}]");

  const auto library = Library::open(FakeMachine::library());

  EXPECT_EQ(code_of_failure(library), Code::driver_not_loaded);
  EXPECT_THAT(library.error().message(), HasSubstr("modprobe nvidia"));
}

TEST(Library, keeps_the_code_of_an_error_that_gets_a_context) {
  const FakeMachine machine("l4");
  const auto library = open_fake();

  const auto gpu = library->gpu("GPU-none");

  EXPECT_EQ(code_of(gpu.error().within("claim default/a")), Code::not_found);
  EXPECT_EQ(code_of(Error::internal("of somebody else")), Code::unknown);
}

TEST(Library, is_shut_down_by_the_last_that_goes) {
  const FakeMachine machine("l4");
  auto first = open_fake();
  auto second = open_fake();

  first = nullptr;

  EXPECT_EQ(must(second->driver_version()), "580.95.05");
}

TEST(FakeLibrary, finds_its_machine_beside_itself) {
  const FakeMachine machine("l4");
  const std::string root = machine.lay_out();
  unsetenv("DIBS_FAKE_NVML");

  const auto library = Library::open(root + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");

  ASSERT_TRUE(library.ok()) << library.error().message();
  EXPECT_THAT(must((*library)->gpu_uuids()), SizeIs(2));
}

TEST(FakeLibrary, has_no_driver_without_a_machine) {
  const auto library = Library::open(FakeMachine::library());

  EXPECT_EQ(code_of_failure(library), Code::driver_not_loaded);
}

TEST(FakeLibrary, keeps_the_faults_while_their_file_is_broken) {
  const FakeMachine machine("l4");
  const auto library = open_fake();
  machine.faults("gpus: [{gpu: 0, lost: true}]");
  EXPECT_THAT(must(library->gpu_uuids()), SizeIs(1));

  machine.faults("gpus: [{gpu: 0, lo");

  EXPECT_THAT(must(library->gpu_uuids()), SizeIs(1));
}

/// A structure whose first field is not its own size and number is not written to.
TEST(FakeLibrary, refuses_another_version_of_a_structure) {
  const FakeMachine machine("h200");
  const auto loaded = must(Loaded::open(FakeMachine::library()));
  abi::Device device = nullptr;
  ASSERT_EQ(loaded->nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  const int mismatch = static_cast<int>(Code::argument_version_mismatch);

  for (const unsigned version : {0U, 2U, abi::version_of<abi::MemoryV2>(3), 0x02000020U}) {
    abi::MemoryV2 memory = {version, 0, 0, 0, 0};
    EXPECT_EQ(loaded->nvmlDeviceGetMemoryInfo_v2(device, &memory), mismatch) << version;
    EXPECT_EQ(memory.total, 0U);
    abi::AddressingModeV1 mode = {version, 77};
    EXPECT_EQ(loaded->nvmlDeviceGetAddressingMode(device, &mode), mismatch) << version;
    abi::GpuInstanceProfileV2 profile = {};
    profile.version = version;
    EXPECT_EQ(loaded->nvmlDeviceGetGpuInstanceProfileInfoV(device, 0, &profile), mismatch);
  }
}

TEST(FakeLibrary, gives_both_versions_of_a_profile) {
  const FakeMachine machine("h200");
  const auto loaded = must(Loaded::open(FakeMachine::library()));
  abi::Device device = nullptr;
  ASSERT_EQ(loaded->nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  constexpr unsigned kOneSliceRev2 = 9;

  abi::GpuInstanceProfileV2 second = {};
  second.version = abi::version_of<abi::GpuInstanceProfileV2>(2);
  ASSERT_EQ(loaded->nvmlDeviceGetGpuInstanceProfileInfoV(device, kOneSliceRev2, &second), 0);
  abi::GpuInstanceProfileV3 third = {};
  third.version = abi::version_of<abi::GpuInstanceProfileV3>(3);
  ASSERT_EQ(loaded->nvmlDeviceGetGpuInstanceProfileInfoV(
                device, kOneSliceRev2, reinterpret_cast<abi::GpuInstanceProfileV2*>(&third)),
            0);

  EXPECT_EQ(second.id, 15U);
  EXPECT_STREQ(second.name, "MIG 1g.35gb");
  EXPECT_EQ(third.id, 15U);
  EXPECT_STREQ(third.name, "MIG 1g.35gb");
  EXPECT_EQ(third.memory_mb, second.memory_mb);
}

/// Every function that the Library looks up is there, optional ones included.
TEST(FakeLibrary, has_every_function) {
  void* handle = dlopen(FakeMachine::library().c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  for (const char* name :
       {"nvmlInit", "nvmlErrorString", "nvmlDeviceGetMemoryInfo_v2", "nvmlEventSetWait_v2",
        "nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlDeviceCreateGpuInstanceWithPlacement",
        "nvmlDeviceGetGpuInstancePossiblePlacements_v2", "nvmlDeviceGetAddressingMode"}) {
    EXPECT_NE(dlsym(handle, name), nullptr) << name;
  }
  EXPECT_EQ(dlsym(handle, "_ZN4dibs4json10parse_yamlESt17basic_string_viewIcSt11char_traitsIcEE"),
            nullptr);
  dlclose(handle);
}

}  // namespace
}  // namespace dibs::drivers::nvidia::nvml
