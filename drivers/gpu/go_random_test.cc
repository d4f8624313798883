#include "drivers/gpu/go_random.h"

#include <gtest/gtest.h>

namespace dibs::drivers {
namespace {

TEST(GoRandom, uuids_are_those_of_the_example_driver) {
  struct Case {
    const char* node;
    std::size_t device;
    const char* uuid;
  };
  const Case cases[] = {
      {"las1", 0, "gpu-94011f0b-8dcd-b4b0-cd99-40eab2e3c96a"},
      {"las1", 1, "gpu-47c24e57-3354-c854-8378-bb405f612c6f"},
      {"las1", 7, "gpu-5b147f06-5a26-41e4-26e3-c40af79b1df5"},
      {"las2", 0, "gpu-6a82d495-9ead-76d0-a860-29092b7c0115"},
      {"las3", 0, "gpu-c7034ac6-4b7c-16f1-9be3-06636102356e"},
      {"dra-example-driver-cluster-worker", 0, "gpu-18db0e85-99e9-c746-8531-ffeb86328b39"},
      {"dra-example-driver-cluster-worker", 1, "gpu-93d37703-997c-c46f-a531-755e3e0dc2ac"},
      {"node-0", 0, "gpu-9df4af2f-59a7-4bf1-83a4-32180f074e56"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(device_uuids("gpu-", one.node, 8)[one.device], one.uuid) << one.node;
  }
}

TEST(GoRandom, numbers_are_those_of_go) {
  // rand.New(rand.NewSource(1)).Int63(), the well-known first ones.
  GoRandom random(1);

  EXPECT_EQ(random.next63(), 5577006791947779410u);
  EXPECT_EQ(random.next63(), 8674665223082153551u);
}

}  // namespace
}  // namespace dibs::drivers
