#include "driver/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "driver/test_world.h"

namespace dibs::driver {
namespace {

using test::from_text;

std::vector<Device> make_devices(std::size_t count) {
  std::vector<Device> devices;
  for (std::size_t i = 0; i < count; ++i) devices.emplace_back(cat("d", i));
  return devices;
}

TEST(Pool, device_is_put_together_as_the_api_wants_it) {
  Device device("gpu-0");
  device.attribute("index", 3)
      .attribute("fast", true)
      .attribute("model", "X")
      .version("driverVersion", "1.0.0")
      .capacity("memory", "81920Mi", from_text("{'default': '1024Mi'}"))
      .taint("example.com/hot", "NoSchedule")
      .taint("example.com/lost", "NoExecute", "since-noon");

  const auto slices = slices_of(make_pool("p", {device}));

  ASSERT_TRUE(slices.ok());
  ASSERT_EQ(slices->size(), 1u);
  EXPECT_EQ((*slices)[0], from_text(R"({'devices': [{'name': 'gpu-0',
      'attributes': {'index': {'int': 3}, 'fast': {'bool': true}, 'model': {'string': 'X'},
                     'driverVersion': {'version': '1.0.0'}},
      'capacity': {'memory': {'value': '80Gi', 'requestPolicy': {'default': '1Gi'}}},
      'taints': [{'key': 'example.com/hot', 'effect': 'NoSchedule'},
                 {'key': 'example.com/lost', 'value': 'since-noon', 'effect': 'NoExecute'}]}]})"));
}

TEST(Pool, is_split_at_the_limits_of_a_slice) {
  struct Case {
    std::size_t devices;
    bool tainted;
    std::vector<std::size_t> sizes;
  };
  const Case cases[] = {{128, false, {128}}, {129, false, {128, 1}},
                        {64, true, {64}},    {129, true, {64, 64, 1}},
                        {0, false, {0}},     {300, false, {128, 128, 44}}};
  for (const auto& one : cases) {
    auto devices = make_devices(one.devices);
    if (one.tainted) devices.back().taint("k", "NoSchedule");

    const auto slices = slices_of(make_pool("p", devices));

    ASSERT_TRUE(slices.ok());
    std::vector<std::size_t> sizes;
    for (const auto& slice : *slices) sizes.push_back(slice["devices"].size());
    EXPECT_EQ(sizes, one.sizes) << one.devices;
  }
}

TEST(Pool, ten_thousand_devices_fit) {
  const auto slices = slices_of(make_pool("p", make_devices(10000)));

  ASSERT_TRUE(slices.ok());
  EXPECT_EQ(slices->size(), 79u);
}

TEST(Pool, counters_stand_in_slices_of_their_own) {
  Pool pool = make_pool("p", {});
  for (int i = 0; i < 9; ++i) {
    pool.slices[0].shared_counters.push_back(
        from_text(cat("{'name': 'c", i, "', 'counters': {'memory': {'value': '1024Mi'}}}")));
  }
  Device device("d");
  device.set("consumesCounters",
             from_text("[{'counterSet': 'c8', 'counters': {'memory': {'value': '512Mi'}}}]"));
  pool.slices[0].devices.push_back(device);

  const auto slices = slices_of(pool);

  ASSERT_TRUE(slices.ok());
  ASSERT_EQ(slices->size(), 3u);
  EXPECT_EQ((*slices)[0]["sharedCounters"].size(), 8u);
  EXPECT_EQ((*slices)[1]["sharedCounters"].size(), 1u);
  EXPECT_EQ((*slices)[1]["sharedCounters"][0]["counters"]["memory"]["value"].str(), "1Gi");
  EXPECT_EQ((*slices)[2]["devices"].size(), 1u);
}

TEST(Pool, mistakes_are_named) {
  Device device("d");
  EXPECT_EQ(slices_of(make_pool("p", {device, device})).error().message(),
            "pool \"p\": duplicate device name \"d\"");

  device.set("consumesCounters",
             from_text("[{'counterSet': 'c', 'counters': {'m': {'value': '1'}}}]"));
  EXPECT_EQ(slices_of(make_pool("p", {device})).error().message(),
            "pool \"p\", device \"d\": unknown counter set \"c\"");

  Pool pool = make_pool("p", {device});
  const auto set = from_text("{'name': 'c', 'counters': {'x': {'value': '1'}}}");
  pool.slices[0].shared_counters = {set};
  EXPECT_EQ(slices_of(pool).error().message(),
            "pool \"p\", device \"d\": unknown counter \"m\" in counter set \"c\"");

  pool.slices[0].shared_counters = {set, set};
  EXPECT_EQ(slices_of(pool).error().message(), "pool \"p\": duplicate counter set \"c\"");
}

}  // namespace
}  // namespace dibs::driver
