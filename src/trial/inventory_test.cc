#include "trial/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/test_text.h"

namespace dibs::trial {
namespace {

using json::Value;
using json::test::from_text;
using testing::HasSubstr;

Value slice(const std::string& pool, const std::string& devices, int generation = 1,
            int count = 1) {
  return from_text(
      cat("{'metadata': {'name': 's', 'ownerReferences': [{'kind': 'Node', 'uid': 'u'}]},",
          " 'spec': {'nodeName': 'n', 'pool': {'name': '", pool, "', 'generation': ", generation,
          ", 'resourceSliceCount': ", count, "}, 'devices': ", devices, "}}"));
}

std::string names_of(const Result<std::vector<Offered>>& read) {
  if (!read) return cat("error: ", read.error().message());
  std::string out;
  for (const auto& one : *read) append(out, out.empty() ? "" : " ", one.pool, "/", one.name());
  return out;
}

TEST(Inventory, has_the_devices_of_the_newest_generation_untainted_ones_first) {
  EXPECT_EQ(
      names_of(read_inventory(
          {slice("p", "[{'name': 'old'}]"), slice("p", "[{'name': 'a', 'taints': [{}]}]", 2, 2),
           slice("p", "[{'name': 'b'}]", 2, 2), slice("q", "[{'name': 'a'}]")},
          "n", "u")),
      "p/b q/a p/a");
}

TEST(Inventory, says_what_is_wrong) {
  Value unowned = slice("p", "[{'name': 'a'}]");
  unowned.mut("metadata").erase("ownerReferences");
  struct Case {
    std::vector<Value> slices;
    const char* error;
  };
  const Case cases[] = {
      {{}, "no ResourceSlice"},
      {{slice("p", "[]")}, "slices without devices"},
      {{slice("p", "[{'name': 'a'}]", 1, 2)}, "pool p says that it has 2 slices and has 1"},
      {{slice("p", "[{'name': 'a'}]", 1, 2), slice("p", "[{'name': 'a'}]", 1, 2)},
       "pool p has device a twice"},
      {{slice("p", "[]", 1, 2), slice("p", "[]", 1, 1)}, "pool p says that it has 1 slice and has"},
      {{unowned}, "slice s is not owned by its node"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(names_of(read_inventory(one.slices, "n", "u")), HasSubstr(one.error));
  }
  EXPECT_THAT(names_of(read_inventory({slice("p", "[{'name': 'a'}]")}, "m", "u")),
              HasSubstr("is of node \"n\""));
}

TEST(Inventory, knows_what_can_be_in_use_at_once) {
  const auto device = [](const std::string& set) {
    return Offered{"p", from_text("{'consumesCounters': [{'counterSet': '" + set + "'}]}")};
  };
  EXPECT_FALSE(go_together(device("gpu-0"), device("gpu-0")));
  EXPECT_TRUE(go_together(device("gpu-0"), device("gpu-1")));
  EXPECT_TRUE(go_together(Offered{"p", from_text("{}")}, device("gpu-0")));
}

TEST(Inventory, allocates_a_share_of_what_can_be_shared) {
  const Offered whole{"p", from_text("{'name': 'a', 'capacity': {'memory': {'value': '8Gi'}}}")};
  EXPECT_EQ(allocation_result(whole, "d", "r", "s"),
            from_text("{'request': 'r', 'driver': 'd', 'pool': 'p', 'device': 'a'}"));

  const Offered shared{"p", from_text(R"({'name': 'a', 'allowMultipleAllocations': true,
      'capacity': {'memory': {'value': '8Gi', 'requestPolicy': {'default': '1Gi'}},
                   'lanes': {'value': '4'}}})")};
  EXPECT_EQ(allocation_result(shared, "d", "r", "s"),
            from_text(R"({'request': 'r', 'driver': 'd', 'pool': 'p', 'device': 'a',
                          'shareID': 's', 'consumedCapacity': {'memory': '1Gi', 'lanes': '4'}})"));
}

}  // namespace
}  // namespace dibs::trial
