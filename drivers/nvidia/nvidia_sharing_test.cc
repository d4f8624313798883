#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/nvidia/nvidia_driver_for_test.h"

namespace dibs::drivers::nvidia {
namespace {

using driver::ClaimName;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class NvidiaSharing : public NvidiaDriver {};

TEST_F(NvidiaSharing, sets_time_slices_and_resets_them) {
  start();
  const ClaimName shared = claim("a", {"gpu-0"},
                                 cat("[",
                                     sharing("GpuConfig",
                                             "{'strategy': 'TimeSlicing', 'timeSlicingConfig': "
                                             "{'interval': 'Long'}}"),
                                     "]"));
  EXPECT_EQ(prepare(shared), "");
  const std::string set = cat("nvidia-smi compute-policy -i ", machine.uuid(), " --set-timeslice ");
  EXPECT_THAT(programs.lines(), ElementsAre(set + "3"));
  programs.broken = {"nvidia-smi"};
  EXPECT_THAT(unprepare(shared), HasSubstr("nvidia-smi failed"));
  programs.broken.clear();
  restart();
  EXPECT_EQ(unprepare(shared), "");
  ASSERT_FALSE(programs.lines().empty());
  EXPECT_EQ(programs.lines().back(), set + "0");
}

TEST_F(NvidiaSharing, runs_a_daemon_for_those_who_share_by_mps) {
  start();
  const ClaimName shared = claim("a", {"gpu-0"},
                                 cat("[",
                                     sharing("GpuConfig",
                                             "{'strategy': 'MPS', 'mpsConfig': "
                                             "{'defaultActiveThreadPercentage': 50}}"),
                                     "]"));
  EXPECT_EQ(prepare(shared), "");
  EXPECT_EQ(*machine.others().compute_mode(machine.uuid()), nvml::ComputeMode::exclusive_process);
  EXPECT_THAT(programs.lines(), Contains("mps < set_default_active_thread_percentage 50"));
  EXPECT_THAT(cdi_of(shared).devices.at(0).edits.env,
              Contains("CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps"));
  // It is looked after.
  programs.ran.clear();
  wait();
  EXPECT_THAT(programs.lines(), Contains("mps < get_server_list"));

  EXPECT_EQ(unprepare(shared), "");
  EXPECT_EQ(*machine.others().compute_mode(machine.uuid()), nvml::ComputeMode::normal);
  EXPECT_THAT(programs.lines(), Contains("mps < quit -t 10"));
}

TEST_F(NvidiaSharing, starts_a_daemon_that_ended_and_none_beside_one_that_hangs) {
  start();
  const ClaimName shared =
      claim("a", {"gpu-0"}, cat("[", sharing("GpuConfig", "{'strategy': 'MPS'}"), "]"));
  EXPECT_EQ(prepare(shared), "");

  programs.ran.clear();
  programs.hung = {"nvidia-cuda-mps-control"};
  wait();
  EXPECT_THAT(programs.lines(), Each("mps < get_server_list"));
  programs.hung.clear();
  programs.broken = {"unshare"};
  wait();
  EXPECT_THAT(programs.lines(), Contains(StartsWith("mps -d ")));

  programs.broken.clear();
  EXPECT_EQ(unprepare(shared), "");
  programs.ran.clear();
  wait();
  EXPECT_THAT(programs.lines(), IsEmpty());
}

TEST_F(NvidiaSharing, lets_instances_be_shared_by_mps_too) {
  start();
  const ClaimName shared =
      claim("a", {kSmall0}, cat("[", sharing("MigDeviceConfig", "{'strategy': 'MPS'}"), "]"));
  EXPECT_EQ(prepare(shared), "");
  const std::string uuid = machine.others().mig_instances(machine.uuid())->at(0).uuid;
  bool told = false;
  for (const auto& program : programs.ran) {
    for (const auto& env : program.env) told = told || env == cat("CUDA_VISIBLE_DEVICES=", uuid);
  }
  EXPECT_TRUE(told);
  EXPECT_EQ(unprepare(shared), "");
  EXPECT_THAT(machine.instances(), IsEmpty());
}

TEST_F(NvidiaSharing, takes_back_everything_where_sharing_fails) {
  start();
  programs.broken = {"unshare", "nvidia-cuda-mps-control"};
  const ClaimName shared =
      claim("a", {kSmall0}, cat("[", sharing("MigDeviceConfig", "{'strategy': 'MPS'}"), "]"));
  EXPECT_THAT(prepare(shared), HasSubstr("error starting MPS control daemon"));
  EXPECT_THAT(machine.instances(), IsEmpty());
  EXPECT_TRUE(ledger()["claims"].empty());
}

}  // namespace
}  // namespace dibs::drivers::nvidia
