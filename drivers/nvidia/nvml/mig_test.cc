#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <set>
#include <thread>

#include "base/strings.h"
#include "drivers/nvidia/fake/testing/fake_machine.h"
#include "drivers/nvidia/nvml/library.h"
#include "drivers/nvidia/nvml/loaded.h"

namespace dibs::drivers::nvidia::nvml {
namespace {

using fake::FakeMachine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kMiB = 1024 * 1024;

template <typename T>
T must(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.error().message();
  return result.ok() ? std::move(*result) : T();
}

template <typename T>
Code code_of_failure(const Result<T>& result) {
  return result.ok() ? Code::ok : code_of(result.error());
}

/// A GPU of a machine with MIG on.
struct MigWorld {
  explicit MigWorld(std::string_view name)
      : machine(name), library(must(Library::open(FakeMachine::library()))) {
    uuid = must(library->gpu_uuids()).front();
    must(library->set_mig_mode(uuid, true));
  }

  Result<MigInstance> create(unsigned profile, unsigned start, unsigned size) {
    return library->create_mig(uuid, profile, {start, size});
  }
  /// "id:start:size" of each GPU instance.
  std::vector<std::string> instances() {
    std::vector<std::string> told;
    for (const MigInstance& instance : must(library->mig_instances(uuid))) {
      told.push_back(cat(instance.gpu_instance, ":", instance.placement.start, ":",
                         instance.placement.size, instance.uuid.empty() ? " half" : ""));
    }
    return told;
  }

  FakeMachine machine;
  std::unique_ptr<Library> library;
  std::string uuid;
};

std::string starts_of(const MigProfile& profile) {
  std::string starts;
  for (const Placement& placement : profile.placements) append(starts, placement.start, " ");
  return starts.empty() ? "" : cat(starts, "x ", profile.placements.front().size);
}

/// What `nvidia-smi mig -lgip` and `-lgipp` say of these GPUs.
TEST(Mig, lists_the_profiles_of_an_h200) {
  const FakeMachine machine("h200");
  const auto library = must(Library::open(FakeMachine::library()));

  const auto profiles = must(library->mig_profiles(must(library->gpu_uuids()).front()));

  std::vector<std::string> told;
  for (const MigProfile& profile : profiles) {
    told.push_back(
        cat(profile.name, " ", profile.id, " of ", profile.slices, " at ", starts_of(profile)));
  }
  EXPECT_THAT(told,
              ElementsAre("1g.18gb 19 of 1 at 0 1 2 3 4 5 6 x 1", "2g.35gb 14 of 2 at 0 2 4 x 2",
                          "3g.71gb 9 of 3 at 0 4 x 4", "4g.71gb 5 of 4 at 0 x 4",
                          "7g.141gb 0 of 7 at 0 x 8", "1g.18gb+me 20 of 1 at 0 1 2 3 4 5 6 x 1",
                          "1g.35gb 15 of 1 at 0 2 4 6 x 2"));
  const MigProfile& whole = profiles[4];
  EXPECT_EQ(whole.multiprocessors, 132U);
  EXPECT_EQ(whole.copy_engines, 8U);
  EXPECT_EQ(whole.decoders, 7U);
  EXPECT_EQ(whole.jpeg, 7U);
  EXPECT_EQ(whole.ofa, 1U);
  EXPECT_EQ(whole.encoders, 0U);
  EXPECT_EQ(whole.memory_bytes, 143360 * kMiB);
  EXPECT_EQ(whole.instances, 1U);
}

/// NVIDIA's tools compute names where the library does not tell them.
TEST(Mig, computes_the_names_that_the_library_tells) {
  for (const char* name : {"h200", "dgx-h100", "a100-40"}) {
    const FakeMachine machine(name);
    const auto library = must(Library::open(FakeMachine::library()));
    const std::string uuid = must(library->gpu_uuids()).front();
    const std::uint64_t memory = must(library->gpu(uuid)).memory_bytes;

    for (const MigProfile& profile : must(library->mig_profiles(uuid))) {
      EXPECT_EQ(mig_profile_name(profile, memory), profile.name);
    }
  }
}

TEST(Mig, makes_an_instance_and_destroys_it) {
  MigWorld world("h200");

  const MigInstance made = must(world.create(14, 2, 2));

  EXPECT_EQ(made.profile, 14U);
  EXPECT_EQ(made.placement, (Placement{2, 2}));
  EXPECT_EQ(made.compute_instance, 0U);
  EXPECT_THAT(made.uuid, ::testing::StartsWith("MIG-"));
  EXPECT_THAT(world.instances(), ElementsAre("4:2:2"));
  EXPECT_EQ(must(world.library->mig_utilization(made.uuid)).memory_total, 33280 * kMiB);

  must(world.library->destroy_mig(world.uuid, made.gpu_instance));
  EXPECT_THAT(world.instances(), IsEmpty());
}

TEST(Mig, leaves_out_places_of_a_profile_that_has_none) {
  for (const char* code : {"not_supported", "invalid_argument"}) {
    MigWorld world("h200");
    world.machine.faults(cat("calls: [{call: nvmlDeviceGetGpuInstancePossiblePlacements_v2, code: ",
                             code, ", times: 1}]"));

    const auto profiles = must(world.library->mig_profiles(world.uuid));

    ASSERT_THAT(profiles, SizeIs(7)) << code;
    EXPECT_THAT(profiles[0].placements, IsEmpty()) << code;
    EXPECT_THAT(profiles[1].placements, SizeIs(3)) << code;
  }
}

TEST(Mig, lists_instances_where_one_profile_of_compute_instances_has_no_list) {
  for (const char* code : {"not_supported", "invalid_argument"}) {
    MigWorld world("h200");
    must(world.create(14, 2, 2));
    world.machine.faults(
        cat("calls: [{call: nvmlGpuInstanceGetComputeInstances, code: ", code, ", times: 1}]"));

    EXPECT_THAT(must(world.library->mig_instances(world.uuid)), SizeIs(1)) << code;
  }
}

TEST(Mig, knows_an_instance_by_its_compute_instance_or_by_its_index) {
  MigWorld world("h200");
  const MigInstance made = must(world.create(19, 3, 1));
  for (const char* call : {"nvmlDeviceGetMigDeviceHandleByIndex, code: unknown",
                           "nvmlDeviceGetUUID, code: not_found, times: 1"}) {
    world.machine.faults(cat("calls: [{call: ", call, "}]"));

    const auto instances = must(world.library->mig_instances(world.uuid));

    ASSERT_THAT(instances, SizeIs(1)) << call;
    EXPECT_EQ(instances[0].uuid, made.uuid) << call;
  }
}

TEST(Mig, gives_an_instance_that_is_made_again_the_same_name) {
  MigWorld world("h200");
  const MigInstance first = must(world.create(19, 3, 1));
  must(world.library->destroy_mig(world.uuid, first.gpu_instance));

  const MigInstance second = must(world.create(19, 3, 1));

  EXPECT_EQ(second.uuid, first.uuid);
  EXPECT_EQ(second.gpu_instance, 10U);
}

TEST(Mig, destroys_what_is_not_there) {
  MigWorld world("h200");
  EXPECT_TRUE(world.library->destroy_mig(world.uuid, 9).ok());
  must(world.library->set_mig_mode(world.uuid, false));
  EXPECT_TRUE(world.library->destroy_mig(world.uuid, 9).ok());
}

TEST(Mig, refuses_a_place_that_is_taken) {
  MigWorld world("h200");
  must(world.create(14, 2, 2));

  // The same place, a part of it, and what has it as a part.
  EXPECT_EQ(code_of_failure(world.create(14, 2, 2)), Code::insufficient_resources);
  EXPECT_EQ(code_of_failure(world.create(19, 3, 1)), Code::insufficient_resources);
  EXPECT_EQ(code_of_failure(world.create(9, 0, 4)), Code::insufficient_resources);
  EXPECT_EQ(code_of_failure(world.create(0, 0, 8)), Code::insufficient_resources);
  const auto refused = world.create(19, 3, 1);
  EXPECT_EQ(refused.error().code(), dibs::Code::conflict);
  EXPECT_THAT(refused.error().message(), HasSubstr("3:1"));
}

TEST(Mig, refuses_a_place_that_the_profile_does_not_have) {
  MigWorld world("h200");
  EXPECT_EQ(code_of_failure(world.create(14, 1, 2)), Code::invalid_argument);
  EXPECT_EQ(code_of_failure(world.create(14, 0, 1)), Code::invalid_argument);
  EXPECT_EQ(code_of_failure(world.create(19, 7, 1)), Code::invalid_argument);
  EXPECT_EQ(code_of_failure(world.create(9, 4, 3)), Code::invalid_argument);
  EXPECT_EQ(code_of_failure(world.create(77, 0, 1)), Code::not_found);
}

TEST(Mig, has_room_for_seven_of_the_smallest) {
  MigWorld world("h200");
  for (unsigned start = 0; start < 7; ++start) must(world.create(19, start, 1));

  EXPECT_THAT(world.instances(),
              ElementsAre("7:0:1", "8:1:1", "9:2:1", "10:3:1", "11:4:1", "12:5:1", "13:6:1"));
  std::set<std::string> uuids;
  for (const MigInstance& instance : must(world.library->mig_instances(world.uuid))) {
    uuids.insert(instance.uuid);
  }
  EXPECT_THAT(uuids, SizeIs(7));
}

TEST(Mig, has_one_with_media_engines) {
  MigWorld world("h200");
  must(world.create(20, 0, 1));

  EXPECT_EQ(code_of_failure(world.create(20, 1, 1)), Code::insufficient_resources);
  EXPECT_TRUE(world.create(19, 1, 1).ok());
}

TEST(Mig, mixes_profiles_as_they_fit) {
  MigWorld world("dgx-h100");
  must(world.create(5, 0, 4));   // 4g
  must(world.create(15, 4, 2));  // 1g with two memory slices
  must(world.create(15, 6, 2));

  EXPECT_THAT(world.instances(), ElementsAre("1:0:4", "5:4:2", "6:6:2"));
}

TEST(Mig, has_halves_of_three_slices) {
  MigWorld world("dgx-h100");
  must(world.create(9, 4, 4));
  must(world.create(9, 0, 4));

  EXPECT_THAT(world.instances(), ElementsAre("1:0:4", "2:4:4"));
  // A compute slice is left, but no memory.
  EXPECT_EQ(code_of_failure(world.create(19, 6, 1)), Code::insufficient_resources);
}

TEST(Mig, needs_mig_mode) {
  const FakeMachine machine("h200");
  const auto library = must(Library::open(FakeMachine::library()));
  const std::string uuid = must(library->gpu_uuids()).front();

  EXPECT_EQ(code_of_failure(library->create_mig(uuid, 19, {0, 1})), Code::not_supported);
  EXPECT_THAT(must(library->mig_instances(uuid)), IsEmpty());
}

TEST(Mig, mode_stays_on_while_there_are_instances) {
  MigWorld world("h200");
  const MigInstance made = must(world.create(19, 0, 1));

  EXPECT_EQ(code_of_failure(world.library->set_mig_mode(world.uuid, false)), Code::in_use);
  EXPECT_TRUE(must(world.library->gpu(world.uuid)).mig_enabled);

  must(world.library->destroy_mig(world.uuid, made.gpu_instance));
  must(world.library->set_mig_mode(world.uuid, false));
  EXPECT_FALSE(must(world.library->gpu(world.uuid)).mig_enabled);
}

TEST(Mig, mode_is_not_changed_under_a_process) {
  const FakeMachine machine("h200");
  const auto library = must(Library::open(FakeMachine::library()));
  const std::string uuid = must(library->gpu_uuids()).front();
  machine.faults("gpus: [{gpu: 0, busy: true}]");

  EXPECT_EQ(code_of_failure(library->set_mig_mode(uuid, true)), Code::in_use);

  machine.faults("");
  EXPECT_TRUE(library->set_mig_mode(uuid, true).ok());
}

TEST(Mig, mode_waits_for_a_reset_on_an_older_gpu) {
  const FakeMachine machine("a100-40");
  const auto library = must(Library::open(FakeMachine::library()));
  const std::string uuid = must(library->gpu_uuids()).at(1);

  EXPECT_EQ(code_of_failure(library->set_mig_mode(uuid, true)), Code::reset_required);
  EXPECT_FALSE(must(library->gpu(uuid)).mig_enabled);

  machine.run("reset", "1");
  EXPECT_TRUE(must(library->gpu(uuid)).mig_enabled);
}

TEST(Mig, leaves_nothing_where_the_second_half_fails) {
  MigWorld world("h200");
  world.machine.faults(
      "calls: [{call: nvmlGpuInstanceCreateComputeInstance, code: insufficient_resources}]");

  EXPECT_EQ(code_of_failure(world.create(19, 0, 1)), Code::insufficient_resources);

  EXPECT_THAT(world.instances(), IsEmpty());
}

TEST(Mig, tells_what_it_had_to_leave) {
  MigWorld world("h200");
  world.machine.faults(
      "calls: [{call: nvmlGpuInstanceCreateComputeInstance, code: insufficient_resources},"
      " {call: nvmlGpuInstanceDestroy, code: in_use}]");

  const auto made = world.create(19, 0, 1);

  EXPECT_EQ(code_of_failure(made), Code::insufficient_resources);
  EXPECT_THAT(made.error().message(), HasSubstr("what was begun is left"));
  EXPECT_THAT(world.instances(), ElementsAre("7:0:1 half"));
}

TEST(Mig, does_not_destroy_an_instance_that_a_process_runs_in) {
  MigWorld world("h200");
  const MigInstance made = must(world.create(19, 0, 1));
  world.machine.faults(cat("instances: [{uuid: ", made.uuid, ", memoryUsed: 1Gi}]"));

  EXPECT_EQ(code_of_failure(world.library->destroy_mig(world.uuid, made.gpu_instance)),
            Code::in_use);
  EXPECT_EQ(must(world.library->mig_utilization(made.uuid)).memory_used, 1024 * kMiB);
  EXPECT_THAT(world.instances(), ElementsAre("7:0:1"));

  world.machine.faults("");
  EXPECT_TRUE(world.library->destroy_mig(world.uuid, made.gpu_instance).ok());
}

TEST(Mig, does_not_know_remapped_rows_while_there_are_instances) {
  MigWorld world("h200");
  EXPECT_TRUE(world.library->remapped_rows(world.uuid).ok());

  must(world.create(19, 0, 1));

  EXPECT_EQ(code_of_failure(world.library->remapped_rows(world.uuid)), Code::not_supported);
}

TEST(Mig, shows_what_others_made) {
  MigWorld world("h200");

  world.machine.run("create", "0 2g.35gb 4");
  world.machine.run("create", "0 19 0 half");

  const auto instances = must(world.library->mig_instances(world.uuid));
  ASSERT_THAT(instances, SizeIs(2));
  EXPECT_EQ(instances[0].compute_instance, kNoInstance);
  EXPECT_EQ(instances[0].uuid, "");
  EXPECT_EQ(instances[1].compute_instance, 0U);
  EXPECT_THAT(instances[1].uuid, ::testing::StartsWith("MIG-"));
}

/// Runs `work` in a process of its own, and says what ended it: a signal, or 0.
template <typename Work>
int in_another_process(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

void make_one(const std::string& uuid, unsigned profile, Placement placement) {
  const auto library = Library::open(FakeMachine::library());
  if (!library.ok() || !(*library)->create_mig(uuid, profile, placement).ok()) _exit(1);
}

TEST(Mig, two_processes_see_the_same) {
  MigWorld world("h200");

  EXPECT_EQ(in_another_process([&] { make_one(world.uuid, 19, {5, 1}); }), 0);

  EXPECT_THAT(world.instances(), ElementsAre("12:5:1"));
  EXPECT_EQ(code_of_failure(world.create(19, 5, 1)), Code::insufficient_resources);
}

TEST(Mig, a_process_that_is_killed_in_between_leaves_half_an_instance) {
  MigWorld world("h200");
  world.machine.faults("calls: [{call: nvmlGpuInstanceCreateComputeInstance, kill: before}]");

  EXPECT_EQ(in_another_process([&] { make_one(world.uuid, 19, {5, 1}); }), SIGKILL);
  world.machine.faults("");

  EXPECT_THAT(world.instances(), ElementsAre("12:5:1 half"));
  EXPECT_TRUE(world.library->destroy_mig(world.uuid, 12).ok());
  EXPECT_THAT(world.instances(), IsEmpty());
}

TEST(Mig, a_process_that_is_killed_after_a_call_has_done_it) {
  MigWorld world("h200");
  world.machine.faults("calls: [{call: nvmlGpuInstanceCreateComputeInstance, kill: after}]");

  EXPECT_EQ(in_another_process([&] { make_one(world.uuid, 19, {5, 1}); }), SIGKILL);
  world.machine.faults("");

  EXPECT_THAT(world.instances(), ElementsAre("12:5:1"));
}

TEST(Mig, only_one_of_many_threads_gets_a_place) {
  MigWorld world("h200");
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;

  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (unsigned start = 0; start < 7; ++start) {
        if (world.create(19, start, 1).ok()) ++made;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(made, 7);
  EXPECT_THAT(world.instances(), SizeIs(7));
}

}  // namespace
}  // namespace dibs::drivers::nvidia::nvml
