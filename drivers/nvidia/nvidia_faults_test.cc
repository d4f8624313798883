#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/nvidia/nvidia_driver_for_test.h"

namespace dibs::drivers::nvidia {
namespace {

using driver::ClaimName;
using driver::test::TestWorld;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class NvidiaFaults : public NvidiaDriver {};

TEST_F(NvidiaFaults, gives_nothing_of_others_away_when_they_take_its_number) {
  start();
  const ClaimName small = claim("a", {kSmall4});
  EXPECT_EQ(prepare(small), "");
  // A reset took it, and somebody made another one there.
  machine.reset();
  ASSERT_TRUE(machine.others().create_mig(machine.uuid(), 20, {4, 1}).ok());
  EXPECT_EQ(unprepare(small), "");
  EXPECT_THAT(machine.instances(), ElementsAre("20@4"));
}

TEST_F(NvidiaFaults, makes_anew_what_a_reset_took) {
  start();
  const ClaimName small = claim("a", {kSmall4});
  EXPECT_EQ(prepare(small), "");
  machine.reset();
  EXPECT_THAT(machine.instances(), IsEmpty());
  restart();
  EXPECT_EQ(prepare(small), "");
  EXPECT_THAT(machine.instances(), ElementsAre("19@4"));
  EXPECT_THAT(nodes(cdi_of(small).devices.at(0)),
              Contains(StartsWith("/dev/nvidia-caps/nvidia-cap")));
}

TEST_F(NvidiaFaults, keeps_a_claim_whose_instance_is_in_use) {
  start();
  const ClaimName small = claim("a", {kSmall4});
  EXPECT_EQ(prepare(small), "");
  const std::string uuid = machine.others().mig_instances(machine.uuid())->at(0).uuid;
  machine.set_faults(cat("instances: [{uuid: ", uuid, "}]"));
  EXPECT_THAT(unprepare(small), HasSubstr(cat("error deleting MIG device ", kSmall4)));
  EXPECT_THAT(machine.instances(), ElementsAre("19@4"));
  machine.set_faults("");
  EXPECT_EQ(unprepare(small), "");
  EXPECT_THAT(machine.instances(), IsEmpty());
}

TEST_F(NvidiaFaults, shows_errors_as_taints_and_health) {
  start();
  EXPECT_EQ(prepare(claim("a", {kSmall0})), "");
  const unsigned instance = machine.others().mig_instances(machine.uuid())->at(0).gpu_instance;
  machine.set_faults(
      cat("events: [{gpu: 0, xid: 63, gpuInstance: ", instance, ", computeInstance: 0}]"));
  world.settle(std::chrono::seconds(3));
  EXPECT_THAT(taints(kSmall0), ElementsAre("gpu.nvidia.com/xid=63:NoSchedule"));
  EXPECT_THAT(taints("gpu-0"), IsEmpty());
  machine.set_faults("events: [{gpu: 0, xid: 13}]");
  world.settle(std::chrono::seconds(3));
  EXPECT_THAT(taints("gpu-0"), ElementsAre("gpu.nvidia.com/xid=13:None"));
  machine.set_faults("events: [{gpu: 0, xid: 79}, {gpu: 0, doubleBitEcc: true}]");
  world.settle(std::chrono::seconds(3));
  EXPECT_THAT(taints("gpu-0"), ElementsAre("gpu.nvidia.com/ecc=double-bit:NoSchedule",
                                           "gpu.nvidia.com/xid=79:NoSchedule"));
}

TEST_F(NvidiaFaults, goes_on_watching_a_gpu_whose_mode_was_switched) {
  start();
  world.settle(std::chrono::seconds(2));
  // Told before it is noticed that the mode is to be another, and not lost with the event set.
  machine.set_faults("events: [{gpu: 0, xid: 13}]");
  EXPECT_EQ(prepare(claim("a", {kSmall0})), "");
  world.settle(std::chrono::seconds(3));
  EXPECT_THAT(taints("gpu-0"), ElementsAre("gpu.nvidia.com/xid=13:None"));
  machine.set_faults("events: [{gpu: 0, xid: 79}]");
  world.settle(std::chrono::seconds(3));
  EXPECT_THAT(taints("gpu-0"), ElementsAre("gpu.nvidia.com/xid=79:NoSchedule"));
}

TEST_F(NvidiaFaults, leaves_no_mode_waiting_for_a_reset) {
  start();
  machine.set_faults("gpus: [{gpu: 0, busy: true}]");
  EXPECT_THAT(prepare(claim("a", {kSmall0})), HasSubstr("NVML_ERROR_IN_USE"));
  machine.set_faults("");
  machine.reset();
  EXPECT_FALSE(machine.mig_enabled());
}

TEST_F(NvidiaFaults, puts_a_mode_back_once_nobody_has_the_gpu_open) {
  start();
  const ClaimName small = claim("a", {kSmall0});
  EXPECT_EQ(prepare(small), "");
  machine.set_faults("gpus: [{gpu: 0, busy: true}]");
  EXPECT_EQ(unprepare(small), "");
  wait();
  EXPECT_TRUE(machine.mig_enabled());
  machine.set_faults("");
  wait();
  EXPECT_FALSE(machine.mig_enabled());
  EXPECT_TRUE(ledger()["migModeBefore"].empty());
}

TEST_F(NvidiaFaults, keeps_the_mode_of_a_claim_that_came_before_it_was_put_back) {
  start();
  const ClaimName first = claim("a", {kSmall0});
  EXPECT_EQ(prepare(first), "");
  machine.set_faults("gpus: [{gpu: 0, busy: true}]");
  EXPECT_EQ(unprepare(first), "");
  machine.set_faults("");
  // The mode is still on, and off is what a reset would make it.
  EXPECT_EQ(prepare(claim("b", {kSmall4})), "");
  machine.reset();
  EXPECT_TRUE(machine.mig_enabled());
}

TEST_F(NvidiaFaults, tells_of_a_gpu_that_it_cannot_read_and_does_not_call_it_lost) {
  std::vector<std::string> warnings;
  log::set_sink([&](std::string_view line) {
    if (line.find("cannot be read") != std::string_view::npos) warnings.emplace_back(line);
  });
  start();
  EXPECT_THAT(warnings, IsEmpty());
  machine.set_faults("calls: [{call: nvmlDeviceGetGpuInstanceProfileInfo, code: unknown}]");
  wait();
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr(machine.uuid()), HasSubstr("UNKNOWN"))));
  EXPECT_THAT(taints("gpu-0"), IsEmpty());
  machine.set_faults("calls: [{call: nvmlDeviceGetHandleByIndex_v2, code: no_permission}]");
  wait();
  wait();
  EXPECT_EQ(warnings.size(), 2u);
  EXPECT_THAT(taints("gpu-0"), Not(Contains(HasSubstr("gpu-lost"))));
  log::set_sink([](std::string_view) {});
}

TEST_F(NvidiaFaults, follows_rows_of_memory) {
  machine.set_faults("gpus: [{gpu: 0, rows: {pending: true}}]");
  start();
  EXPECT_THAT(taints("gpu-0"), ElementsAre("gpu.nvidia.com/row-remap=pending:NoSchedule"));
  machine.set_faults("");
  wait();
  EXPECT_THAT(taints("gpu-0"), IsEmpty());
}

TEST_F(NvidiaFaults, outlives_a_gpu_that_is_lost_and_comes_back) {
  start();
  const ClaimName small = claim("a", {kSmall4});
  EXPECT_EQ(prepare(small), "");
  for (const char* how : {"lost", "gone"}) {
    machine.set_faults(cat("gpus: [{gpu: 0, ", how, ": true}]"));
    wait();
    EXPECT_THAT(taints("gpu-0"), ElementsAre("gpu.nvidia.com/gpu-lost=:NoSchedule")) << how;
    EXPECT_THAT(prepare(claim(cat("b-", how), {kSmall0})), HasSubstr("is lost"));
    forget(cat("b-", how));
    // A pod that has it can end.
    EXPECT_EQ(unprepare(small), "") << how;
    machine.set_faults("");
    wait();
    EXPECT_THAT(taints("gpu-0"), IsEmpty()) << how;
    EXPECT_THAT(machine.instances(), ElementsAre("19@4"));
    // What could not be destroyed then is destroyed before the next one is made.
    EXPECT_EQ(prepare(claim(cat("c-", how), {kSmall0})), "") << how;
    EXPECT_THAT(machine.instances(), ElementsAre("19@0")) << how;
    unprepare(
        TestWorld::name_of(*world.api->get(driver::test::kClaims, "default", cat("c-", how))));
    forget(cat("c-", how));
    if (std::string(how) == "lost") {
      EXPECT_EQ(prepare(small), "");
    }
  }
}

}  // namespace
}  // namespace dibs::drivers::nvidia
