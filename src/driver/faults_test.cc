#include "driver/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "driver/test_world.h"

namespace dibs::driver {
namespace {

using json::Value;
using test::from_text;
using testing::ElementsAre;
using testing::HasSubstr;

const Time kThen = *parse_rfc3339("2026-01-02T03:04:05Z");

TEST(Faults, come_back_as_they_were_written) {
  Faults faults;
  faults["node-1/gpu-0"].fail = {"XID 79", "NoSchedule", kThen};
  faults["node-1/gpu-0"].slow = {std::chrono::seconds(30), std::chrono::milliseconds(1500), kThen};
  faults["far/away/gpu-1"].vanish = {kThen};

  const auto read = parse_faults(write_faults(faults));

  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(write_faults(*read), write_faults(faults));
  ASSERT_EQ(read->size(), 2u);
  const DeviceFaults& first = read->at("node-1/gpu-0");
  EXPECT_EQ(first.fail->reason, "XID 79");
  EXPECT_EQ(first.fail->effect, "NoSchedule");
  EXPECT_EQ(first.fail->since, kThen);
  EXPECT_EQ(first.slow->prepare, std::chrono::seconds(30));
  EXPECT_EQ(first.slow->unprepare, std::chrono::milliseconds(1500));
  EXPECT_TRUE(read->at("far/away/gpu-1").vanish);
}

TEST(Faults, that_are_none_are_no_text) {
  Faults faults;
  faults["p/d"] = {};

  EXPECT_EQ(write_faults(faults), "");
  EXPECT_TRUE(parse_faults("")->empty());
  EXPECT_TRUE(parse_faults(R"({"p/d": {}})")->empty());
}

TEST(Faults, that_cannot_be_read_are_told_with_their_place) {
  const auto error = [](const char* text) {
    const auto read = parse_faults(json::write(from_text(text)));
    return read ? std::string("none") : read.error().message();
  };
  EXPECT_THAT(parse_faults("{").error().message(), HasSubstr("no JSON"));
  EXPECT_EQ(error("[]"), "must be an object");
  EXPECT_EQ(error("{'d': {}}"), "\"d\": must be POOL/DEVICE");
  EXPECT_EQ(error("{'p/d': 1}"), "p/d: must be an object");
  EXPECT_EQ(error("{'p/d': {'burn': {}}}"), "p/d: unknown field \"burn\"");
  EXPECT_EQ(error("{'p/d': {'vanish': {}}}"),
            "p/d: vanish: since: must be a time, such as 2026-01-01T00:00:00Z");
  EXPECT_EQ(error("{'p/d': {'fail': {'effect': 'Maybe', 'since': '2026-01-02T03:04:05Z'}}}"),
            "p/d: fail: effect: must be NoExecute, NoSchedule or None");
  EXPECT_EQ(error(cat("{'p/d': {'fail': {'reason': '", std::string(257, 'x'), "'}}}").c_str()),
            "p/d: fail: reason: must have at most 256 bytes");
  for (const char* wrong : {"soon", "-1s", "11m", "99999999999h"}) {
    EXPECT_EQ(error(cat("{'p/d': {'slow': {'prepare': '", wrong, "'}}}").c_str()),
              "p/d: slow: prepare: must be a duration from 0s to 10m0s");
  }
}

TEST(Faults, take_devices_away_and_taint_them) {
  Faults faults;
  faults["p/a"].fail = {"ill", "NoExecute", kThen};
  faults["p/b"].vanish = {kThen};
  faults["p/c"].fail = {"ill", "None", kThen};
  faults["q/d"].vanish = {kThen};
  Device own("a");
  own.set("taints", from_text("[{'key': 'old', 'effect': 'NoSchedule'}]"));
  const Pool pool = make_pool("p", {own, Device("b"), Device("c"), Device("d")});

  const Pool made = with_faults(pool, faults, "d.example.com");

  std::vector<std::string> names;
  for (const auto& device : made.slices[0].devices) names.push_back(device.object()["name"].str());
  EXPECT_THAT(names, ElementsAre("a", "c", "d"));
  EXPECT_EQ(made.slices[0].devices[0].object()["taints"], from_text(R"([
      {'key': 'old', 'effect': 'NoSchedule'},
      {'key': 'd.example.com/unhealthy', 'value': 'true', 'effect': 'NoExecute',
       'timeAdded': '2026-01-02T03:04:05Z'}])"));
  EXPECT_FALSE(made.slices[0].devices[1].object().contains("taints"));
}

}  // namespace
}  // namespace dibs::driver
