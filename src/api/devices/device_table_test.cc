#include "api/devices/testing/device_table.h"

#include <gmock/gmock.h>

#include "json/parse.h"

namespace dibs::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

json::Value slice(std::string_view driver, std::initializer_list<std::string_view> devices) {
  json::Value list = json::Value::array();
  for (const std::string_view device : devices) list.push(*json::parse(device));
  return json::Value::object(
      {{"spec", json::Value::object({{"driver", driver}, {"devices", list}})}});
}

std::vector<std::string> names(const DeviceTable& table, const cel::RowSet& rows,
                               std::string_view attribute = "n") {
  std::vector<std::string> made;
  for (cel::Row row = rows.next(0); row != cel::RowSet::kNone; row = rows.next(row + 1)) {
    for (const DeviceEntry& entry : table.device(row).attributes()) {
      if (entry.id == attribute) made.emplace_back(entry.value.text());
    }
  }
  return made;
}

constexpr std::string_view kFast =
    R"({"name": "d0", "attributes": {"n": {"string": "fast"}, "speed": {"int": 9}}})";
constexpr std::string_view kSlow =
    R"({"name": "d1", "attributes": {"n": {"string": "slow"}, "speed": {"int": 1}}})";
constexpr std::string_view kOther = R"({"name": "d2", "attributes": {"n": {"string": "other"}}})";
constexpr std::string_view kBroken = R"({"name": "d3", "attributes": {"v": {"version": "1.x"}}})";

Selector speed() {
  return compile_selector(R"(device.attributes["example.com"].speed > 5)", {.stored = true});
}

TEST(DeviceTable, a_filter_follows_slices) {
  DeviceTable table(true);
  DeviceFilter fast(table, speed());
  table.put_slice("a", slice("example.com", {kFast, kSlow, kOther}));
  fast.update();

  EXPECT_THAT(names(table, fast.matching()), ElementsAre("fast"));
  EXPECT_THAT(names(table, fast.failing()), ElementsAre("other"));
  ASSERT_EQ(table.slice("a").size(), 3u);
  EXPECT_EQ(fast.match(table.slice("a")[2]).error, "no such key: speed");
  EXPECT_TRUE(fast.match(table.slice("a")[0]).matches);

  table.put_slice("b", slice("example.com", {kFast}));
  table.put_slice("a", slice("example.com", {kSlow}));
  fast.update();

  EXPECT_THAT(names(table, fast.matching()), ElementsAre("fast"));
  EXPECT_THAT(table.slice("b"), ElementsAre(fast.matching().next(0)));
  EXPECT_THAT(names(table, fast.failing()), IsEmpty());

  table.remove_slice("b");
  table.remove_slice("never there");
  fast.update();

  EXPECT_TRUE(fast.matching().empty());
  EXPECT_EQ(table.rows().size(), 1u);
  EXPECT_TRUE(table.slice("b").empty());
}

TEST(DeviceTable, devices_keep_their_rows) {
  DeviceTable table(true);
  table.put_slice("a", slice("example.com", {kFast, kSlow}));
  const std::vector<cel::Row> before(table.slice("a").begin(), table.slice("a").end());

  table.put_slice("a", slice("example.com", {kOther, kSlow, kFast}));

  ASSERT_EQ(table.slice("a").size(), 3u);
  EXPECT_EQ(table.slice("a")[1], before[1]);
  EXPECT_EQ(table.slice("a")[2], before[0]);
}

TEST(DeviceTable, another_driver_means_another_domain) {
  DeviceTable table(true);
  DeviceFilter fast(table, speed());
  table.put_slice("a", slice("example.com", {kFast}));
  fast.update();

  table.put_slice("a", slice("example.org", {kFast}));
  fast.update();

  EXPECT_TRUE(fast.matching().empty());
  EXPECT_EQ(fast.failing().size(), 1u);
}

TEST(DeviceTable, broken_devices_fail_every_selector) {
  DeviceTable table(true);
  DeviceFilter all(table, compile_selector("true", {.stored = true}));
  table.put_slice("a", slice("example.com", {kFast, kBroken}));

  all.update();

  EXPECT_THAT(names(table, all.matching()), ElementsAre("fast"));
  ASSERT_EQ(all.failing().size(), 1u);
  EXPECT_THAT(all.match(all.failing().next(0)).error,
              ::testing::StartsWith("attribute v: parse semantic version: "));
}

TEST(DeviceTable, broken_selectors_fail_for_every_device) {
  DeviceTable table(true);
  DeviceFilter none(table, compile_selector("device.", {.stored = true}));
  table.put_slice("a", slice("example.com", {kFast, kSlow}));

  none.update();

  EXPECT_TRUE(none.matching().empty());
  EXPECT_EQ(none.failing().size(), 2u);
  EXPECT_THAT(none.match(0).error, ::testing::StartsWith("compilation failed: "));
}

}  // namespace
}  // namespace dibs::api
