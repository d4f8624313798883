#include "drivers/nvidia/workshop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "drivers/nvidia/machine_for_test.h"
#include "drivers/nvidia/nvidia_fakes.h"
#include "runtime/sim_runtime.h"

namespace dibs::drivers::nvidia {
namespace {

using testing::ElementsAre;

/// A watch that was begun before a switch is not to be relied on after it, also where the GPU
/// changed its mode at once.
TEST(Workshop, has_the_watch_begun_anew_around_every_switch_of_the_mode) {
  log::set_sink([](std::string_view) {});
  test::Machine machine("h200");
  test::Programs programs;
  const auto files = runtime::make_memory_files();
  ASSERT_TRUE(files->make_dirs("/d").ok());
  runtime::SimRuntime world;
  std::vector<std::string> seen;
  const auto note = [&](const char* what) {
    return [&, what] { seen.push_back(cat(what, machine.mig_enabled() ? " with MIG on" : "")); };
  };
  Workshop workshop({machine.others(), *files, world.runtime().clock, "/d/gpus.json",
                     TimeSlices(programs.runner(), *files, {}),
                     MpsDaemons(programs.runner(), *files, *files, {}, "/d/mps"), MigMode::dynamic,
                     note("let go"), note("taken up")});
  Order order;
  order.id = {"default", "a", "11111111-2222-3333-4444-555555555555"};
  Part part;
  part.name = "gpu-0-mig-1g18gb-19-0";
  part.gpu_uuid = machine.uuid();
  part.profile = machine.others().mig_profiles(machine.uuid())->at(0);
  part.placement = {0, 1};
  order.parts = {part};
  const Workshop::Turn turn(workshop);

  ASSERT_TRUE(workshop.prepare(order).ok());
  EXPECT_THAT(seen, ElementsAre("let go", "taken up with MIG on"));
  seen.clear();
  ASSERT_TRUE(workshop.unprepare(order.id).ok());
  EXPECT_THAT(seen, ElementsAre("let go with MIG on", "taken up"));
  log::set_sink({});
}

}  // namespace
}  // namespace dibs::drivers::nvidia
