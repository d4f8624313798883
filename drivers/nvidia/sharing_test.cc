#include "drivers/nvidia/sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "drivers/nvidia/nvidia_fakes.h"

namespace dibs::drivers::nvidia {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SharingTest : public testing::Test {
 protected:
  SharingTest() {
    log::set_sink([](std::string_view) {});
    EXPECT_TRUE(files->make_dirs("/usr/bin").ok());
    EXPECT_TRUE(files->make_dirs("/d").ok());
  }
  ~SharingTest() override { log::set_sink({}); }

  void install(const char* program) {
    ASSERT_TRUE(files->write(cat("/usr/bin/", program), "").ok());
  }

  std::unique_ptr<runtime::Files> files = runtime::make_memory_files();
  test::Programs programs;
  TimeSlices slices{programs.runner(), *files, {}};
  MpsDaemons daemons{programs.runner(), *files, *files, {}, "/d/mps"};
  const LedgerDaemon daemon{"u-1", {"GPU-a", "GPU-b"}, 50, {{"GPU-a", "10M"}}};
};

TEST_F(SharingTest, sets_time_slices_by_nvidia_smi) {
  EXPECT_THAT(slices.set("GPU-a", 3, "1.2").error().message(), HasSubstr("nvidia-smi"));
  install("nvidia-smi");
  EXPECT_TRUE(slices.set("GPU-a", 3, "1.2").ok());
  EXPECT_THAT(programs.lines(),
              ElementsAre("nvidia-smi compute-policy -i GPU-a --set-timeslice 3"));
  programs.broken = {"nvidia-smi"};
  EXPECT_EQ(slices.set("GPU-a", 0, "1.2").error().message(),
            "error setting time slice: nvidia-smi failed");
}

TEST_F(SharingTest, starts_a_daemon_with_its_settings) {
  EXPECT_FALSE(daemons.start(daemon, "1.2").ok());
  EXPECT_THAT(programs.lines(), IsEmpty());
  install("nvidia-cuda-mps-control");
  ASSERT_TRUE(daemons.start(daemon, "1.2").ok());
  EXPECT_THAT(
      programs.lines(),
      ElementsAre("mountpoint -q /d/mps/u-1/shm", "find /d/mps/u-1/pipe -xdev -mindepth 1 -delete",
                  "mps -d /d/mps/u-1/shm /d/mps/u-1/pipe /d/mps/u-1/log/start.log",
                  "mps < set_default_active_thread_percentage 50",
                  "mps < set_default_device_pinned_mem_limit GPU-a 10M", "mps < get_server_list"));
  EXPECT_THAT(programs.ran[2].env,
              ElementsAre("CUDA_VISIBLE_DEVICES=GPU-a,GPU-b", "CUDA_MPS_PIPE_DIRECTORY=/mnt",
                          "CUDA_MPS_LOG_DIRECTORY=/d/mps/u-1/log"));
  EXPECT_EQ(programs.ran[3].env, programs.ran[2].env);
  programs.ran.clear();
  ASSERT_TRUE(daemons.start(daemon, "1.2").ok());
  EXPECT_THAT(programs.lines(), ElementsAre("mps < get_server_list"));
}

TEST_F(SharingTest, starts_no_daemon_beside_one_that_does_not_answer) {
  install("nvidia-cuda-mps-control");
  ASSERT_TRUE(daemons.start(daemon, "1.2").ok());
  programs.ran.clear();
  programs.hung = {"nvidia-cuda-mps-control"};
  EXPECT_EQ(daemons.start(daemon, "1.2").error().message(),
            "MPS control daemon u-1 does not answer; its log is /d/mps/u-1/log/control.log");
  EXPECT_THAT(programs.lines(), ElementsAre("mps < get_server_list"));
  EXPECT_LE(programs.ran[0].patience, std::chrono::seconds(2));
  // With its claim it goes all the same.
  ASSERT_TRUE(daemons.stop(daemon, "1.2").ok());
  EXPECT_THAT(programs.lines(), Contains("rm -r --one-file-system -- /d/mps/u-1"));
}

TEST_F(SharingTest, mounts_the_memory_of_a_daemon_once) {
  install("nvidia-cuda-mps-control");
  programs.broken = {"mountpoint"};
  ASSERT_TRUE(daemons.start(daemon, "1.2").ok());
  EXPECT_THAT(programs.lines(), Contains(HasSubstr("mount -t tmpfs")));
}

TEST_F(SharingTest, stops_a_daemon_and_leaves_nothing) {
  install("nvidia-cuda-mps-control");
  EXPECT_TRUE(daemons.stop(daemon, "1.2").ok());
  EXPECT_THAT(programs.lines(), IsEmpty());
  ASSERT_TRUE(daemons.start(daemon, "1.2").ok());
  programs.ran.clear();
  ASSERT_TRUE(daemons.stop(daemon, "1.2").ok());
  EXPECT_THAT(programs.lines(), ElementsAre("mps < get_server_list", "mps < quit -t 10",
                                            "mountpoint -q /d/mps/u-1/shm", "umount /d/mps/u-1/shm",
                                            "rm -r --one-file-system -- /d/mps/u-1"));
}

// Where the next daemon writes its files as the machine's root.
TEST_F(SharingTest, lets_no_container_write_beside_the_pipe) {
  for (const auto& mount : daemons.edits(daemon).mounts) {
    EXPECT_EQ(mount.container_path == "/dev/shm" ? "rw" : "ro", mount.options.front())
        << mount.container_path;
    EXPECT_THAT(mount.host_path, Not(HasSubstr("log")));
  }
}

TEST_F(SharingTest, tells_containers_where_the_daemon_is) {
  const auto edits = daemons.edits(daemon);
  EXPECT_THAT(edits.env, ElementsAre("CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps"));
  ASSERT_EQ(edits.mounts.size(), 2u);
  EXPECT_EQ(edits.mounts[0].host_path, "/d/mps/u-1/shm");
  EXPECT_EQ(edits.mounts[0].container_path, "/dev/shm");
  EXPECT_EQ(edits.mounts[1].host_path, "/d/mps/u-1/pipe");
}

TEST(DaemonId, is_another_for_other_devices) {
  EXPECT_EQ(daemon_id("u", {"a", "b"}), daemon_id("u", {"a", "b"}));
  EXPECT_NE(daemon_id("u", {"a", "b"}), daemon_id("u", {"a"}));
}

}  // namespace
}  // namespace dibs::drivers::nvidia
