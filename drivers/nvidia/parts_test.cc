#include "drivers/nvidia/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/nvidia/nvidia_fakes.h"

namespace dibs::drivers::nvidia {
namespace {

using test::make_gpu;
using test::make_instance;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> names(const std::vector<Part>& parts) {
  std::vector<std::string> out;
  for (const auto& part : parts) out.push_back(part.name);
  return out;
}

TEST(Parts, are_the_gpu_and_all_places_of_all_profiles) {
  const auto found = names(parts_of(make_gpu(3), MigMode::dynamic, {}));
  EXPECT_EQ(found.size(), 1u + 7 + 7 + 2 + 1);
  EXPECT_EQ(found.front(), "gpu-3");
  EXPECT_THAT(found, Contains("gpu-3-mig-1g18gb-19-6"));
  EXPECT_THAT(found, Contains("gpu-3-mig-1g18gb-me-20-0"));
  EXPECT_THAT(found, Contains("gpu-3-mig-3g71gb-9-4"));
}

TEST(Parts, are_the_gpu_alone_where_no_instance_can_be_made) {
  EXPECT_THAT(names(parts_of(make_gpu(0), MigMode::fixed, {})), ElementsAre("gpu-0"));
  Gpu small = make_gpu(0);
  small.info.mig_capable = false;
  small.profiles.clear();
  EXPECT_THAT(names(parts_of(small, MigMode::dynamic, {})), ElementsAre("gpu-0"));
}

TEST(Parts, of_a_gpu_that_cannot_switch_its_mode_follow_the_mode) {
  Gpu ampere = make_gpu(0);
  ampere.info.architecture = "Ampere";
  EXPECT_THAT(names(parts_of(ampere, MigMode::dynamic, {})), ElementsAre("gpu-0"));
  ampere.info.mig_enabled = true;
  const auto found = names(parts_of(ampere, MigMode::dynamic, {}));
  EXPECT_EQ(found.size(), 7u + 7 + 2 + 1);
  EXPECT_THAT(found, Not(Contains("gpu-0")));
}

TEST(Parts, of_others_are_devices_and_their_places_are_none) {
  Gpu gpu = make_gpu(0, true);
  gpu.instances = {make_instance(1, 9, {0, 4})};
  const auto parts = parts_of(gpu, MigMode::dynamic, {});
  const auto found = names(parts);
  EXPECT_THAT(found, Contains("gpu-0-mig-3g71gb-9-0"));
  EXPECT_EQ(parts.front().mig_uuid, "MIG-1");
  EXPECT_THAT(found, Not(Contains("gpu-0")));
  EXPECT_THAT(found, Not(Contains("gpu-0-mig-1g18gb-19-3")));
  EXPECT_THAT(found, Contains("gpu-0-mig-1g18gb-19-4"));
  // Who says that the instance is ours changes nothing of what is offered.
  EXPECT_EQ(names(parts_of(gpu, MigMode::dynamic, {1})),
            names(parts_of(make_gpu(0), MigMode::dynamic, {})));
}

TEST(Parts, that_are_fixed_are_the_instances_that_are_there) {
  Gpu gpu = make_gpu(0, true);
  EXPECT_THAT(parts_of(gpu, MigMode::fixed, {}), IsEmpty());
  gpu.instances = {make_instance(1, 9, {0, 4}), make_instance(7, 19, {4, 1})};
  EXPECT_THAT(names(parts_of(gpu, MigMode::fixed, {})),
              ElementsAre("gpu-0-mig-3g71gb-9-0", "gpu-0-mig-1g18gb-19-4"));
}

TEST(Parts, leave_out_what_is_divided_further) {
  Gpu gpu = make_gpu(0, true);
  gpu.instances = {make_instance(1, 9, {0, 4}), make_instance(1, 9, {0, 4})};
  gpu.instances[1].compute_instance = 1;
  gpu.instances[1].uuid = "MIG-1-1";
  EXPECT_THAT(parts_of(gpu, MigMode::fixed, {}), IsEmpty());
  // It is in the way nevertheless.
  EXPECT_THAT(names(parts_of(gpu, MigMode::dynamic, {})), Not(Contains("gpu-0-mig-1g18gb-19-0")));
}

TEST(Parts, take_together_what_all_of_one_kind_take) {
  const Totals totals = totals_of(make_gpu(0));
  EXPECT_EQ(totals.memory_slices, 8u);
  EXPECT_EQ(totals.whole[0], (std::pair<std::string, std::uint64_t>("multiprocessors", 132)));
  EXPECT_EQ(totals.counters[0].second, 132u);
  EXPECT_EQ(totals.whole.back().second, 140ULL << 30);
  EXPECT_EQ(totals.counters.back().second, 140ULL << 30);
}

}  // namespace
}  // namespace dibs::drivers::nvidia
