#include "node/plugins/device_grants.h"

#include <gmock/gmock.h>

namespace dibs::node {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

TEST(DeviceGrants, what_is_held_survives_the_file_and_what_is_only_taken_does_not) {
  DeviceGrants grants;
  grants.add_resource("example.com/gpu");
  grants.take("p", "c", "example.com/gpu", {"a", "b"});
  grants.hold("p", "c", "example.com/gpu", std::string("bytes\0\xff", 7));
  grants.take("q", "c", "example.com/gpu", {"d"});
  EXPECT_THAT(grants.used("example.com/gpu"), ElementsAre("a", "b", "d"));

  const auto again = DeviceGrants::decode(grants.encode());
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->used("example.com/gpu"), ElementsAre("a", "b"));
  EXPECT_EQ(again->find("p", "c", "example.com/gpu")->answer, std::string("bytes\0\xff", 7));
  EXPECT_THAT(again->resources(), ElementsAre("example.com/gpu"));
}

TEST(DeviceGrants, a_damaged_file_is_an_error) {
  for (const char* text :
       {"", "{}", "[]", R"({"grants": [{}]})",
        R"({"grants": [{"podUID": "p", "container": "c", "resource": "r", "answer": "*"}]})"}) {
    EXPECT_FALSE(DeviceGrants::decode(text).ok()) << text;
  }
}

TEST(DeviceGrants, are_released_with_their_pod) {
  DeviceGrants grants;
  for (const char* pod : {"p", "q", "r"}) grants.take(pod, "c", "example.com/gpu", {pod});
  EXPECT_TRUE(grants.release("p"));
  EXPECT_FALSE(grants.release("p"));
  EXPECT_TRUE(grants.keep_only({"q"}));
  EXPECT_FALSE(grants.keep_only({"q"}));
  EXPECT_THAT(grants.used("example.com/gpu"), ElementsAre("q"));
  EXPECT_THAT(grants.holders("example.com/gpu", {"q", "r"}), ElementsAre("q"));
}

TEST(DeviceChoice, takes_what_is_reused_then_preferred_then_any) {
  DeviceNeed need;
  need.count = 3;
  need.healthy = {"a", "b", "c", "d", "e"};
  need.used = {"a", "e"};
  need.reusable = {"e"};
  auto choice = begin_choice("example.com/gpu", need);
  ASSERT_TRUE(choice.ok());
  EXPECT_THAT(choice->available, ElementsAre("b", "c", "d"));
  // What is not free, or does not exist, is no use to prefer.
  EXPECT_THAT(end_choice(*choice, {"a", "d", "nonsense", "d"}), ElementsAre("e", "d", "b"));
  EXPECT_THAT(end_choice(*choice, {}), ElementsAre("e", "b", "c"));
}

TEST(DeviceChoice, says_what_is_missing) {
  DeviceNeed need;
  need.count = 2;
  EXPECT_EQ(begin_choice("example.com/gpu", need).error().message(),
            "no healthy devices present; cannot allocate unhealthy devices example.com/gpu");
  need.healthy = {"a", "b"};
  need.used = {"a"};
  EXPECT_EQ(begin_choice("example.com/gpu", need).error().message(),
            "requested number of devices unavailable for example.com/gpu. Requested: 2, Available: "
            "1");
}

}  // namespace
}  // namespace dibs::node
