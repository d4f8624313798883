#include "drivers/nvidia/fake/placing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::drivers::nvidia::fake {
namespace {

using ::testing::ElementsAre;

/// A GPU with 7 compute and 8 memory slices, as A100, H100 and H200 are.
Model seven_slices() {
  Model model;
  model.mig = true;
  model.slices = 7;
  model.memory_slices = 8;
  const struct {
    unsigned id;
    unsigned index;
    unsigned slices;
    unsigned instances;
    unsigned multiprocessors;
    unsigned size;
    std::vector<unsigned> starts;
  } profiles[] = {{19, 0, 1, 7, 16, 1, {0, 1, 2, 3, 4, 5, 6}},
                  {15, 9, 1, 4, 26, 2, {0, 2, 4, 6}},
                  {14, 1, 2, 3, 32, 2, {0, 2, 4}},
                  {9, 2, 3, 2, 60, 4, {0, 4}},
                  {5, 3, 4, 1, 64, 4, {0}},
                  {0, 4, 7, 1, 132, 8, {0}}};
  for (const auto& given : profiles) {
    Profile profile;
    profile.name = cat(given.slices, "g.", given.size, "gb");
    profile.id = given.id;
    profile.index = given.index;
    profile.slices = given.slices;
    profile.instances = given.instances;
    profile.multiprocessors = given.multiprocessors;
    for (const unsigned start : given.starts) profile.placements.push_back({start, given.size});
    model.profiles.push_back(profile);
  }
  return model;
}

/// Places what fits, one after another; "no" where it does not.
std::vector<std::string> place(const Model& model, const std::vector<unsigned>& ids) {
  std::vector<GpuInstance> there;
  std::vector<std::string> told;
  for (const unsigned id : ids) {
    const auto chosen = choose_placement(model, there, *profile_by_id(model, id));
    if (!chosen) {
      told.push_back("no");
      continue;
    }
    GpuInstance instance;
    instance.profile = id;
    instance.placement = *chosen;
    told.push_back(cat(gpu_instance_id(model, *chosen), "@", chosen->start));
    there.push_back(instance);
  }
  return told;
}

/// The example of NVIDIA's guide: `nvidia-smi mig -cgi 19,14,5`.
TEST(Placing, chooses_as_the_driver_does) {
  EXPECT_THAT(place(seven_slices(), {19, 14, 5}), ElementsAre("13@6", "5@4", "1@0"));
  EXPECT_THAT(place(seven_slices(), {9, 9}), ElementsAre("2@4", "1@0"));
  EXPECT_THAT(place(seven_slices(), {0, 19}), ElementsAre("0@0", "no"));
  EXPECT_THAT(place(seven_slices(), {15, 15, 15, 15, 19}),
              ElementsAre("6@6", "5@4", "4@2", "3@0", "no"));
  EXPECT_THAT(place(seven_slices(), {14, 14, 14, 19, 19}),
              ElementsAre("5@4", "4@2", "3@0", "13@6", "no"));
}

TEST(Placing, counts_what_is_left) {
  const Model model = seven_slices();
  std::vector<GpuInstance> there(1);
  there[0].profile = 14;
  there[0].placement = {2, 2};

  EXPECT_EQ(remaining(model, there, *profile_by_id(model, 19)), 5U);
  EXPECT_EQ(remaining(model, there, *profile_by_id(model, 14)), 2U);
  EXPECT_EQ(remaining(model, there, *profile_by_id(model, 9)), 1U);
  EXPECT_EQ(remaining(model, there, *profile_by_id(model, 5)), 0U);
  EXPECT_EQ(remaining(model, {}, *profile_by_id(model, 0)), 1U);
}

/// Memory would do, but compute slices are used up.
TEST(Placing, needs_compute_slices) {
  Model model = seven_slices();
  model.slices = 3;
  EXPECT_THAT(place(model, {14, 14, 19}), ElementsAre("5@4", "no", "13@6"));
}

TEST(Placing, has_compute_profiles_up_to_the_whole) {
  const Model model = seven_slices();
  std::vector<std::string> told;
  for (const ComputeProfile& compute : compute_profiles(model, *profile_by_id(model, 9))) {
    told.push_back(cat(compute.id, ": ", compute.slices, " x", compute.instances, " ",
                       compute.multiprocessors));
  }
  EXPECT_THAT(told, ElementsAre("0: 1 x3 16", "1: 2 x1 32", "2: 3 x1 60"));
}

TEST(Placing, fills_a_gpu_instance_with_compute_instances) {
  const Model model = seven_slices();
  const Profile& profile = *profile_by_id(model, 14);
  const ComputeProfile one = compute_profiles(model, profile)[0];
  GpuInstance instance;
  instance.profile = 14;
  for (unsigned start : {0U, 1U}) {
    const auto chosen = choose_compute_placement(instance, profile, one);
    ASSERT_TRUE(chosen.has_value());
    EXPECT_EQ(chosen->start, start);
    EXPECT_EQ(compute_instance_id(instance), start);
    instance.compute.push_back({compute_instance_id(instance), 0, *chosen, start});
  }

  EXPECT_FALSE(choose_compute_placement(instance, profile, one).has_value());
  EXPECT_EQ(instance_name(profile, instance.compute[0]), "1c.2g.2gb");
}

}  // namespace
}  // namespace dibs::drivers::nvidia::fake
