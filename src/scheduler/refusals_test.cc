#include "scheduler/refusals.h"

#include <gtest/gtest.h>

#include "json/parse.h"
#include "scheduler/cluster_state.h"

namespace dibs::scheduler {
namespace {

json::Value slice(const std::string& node, const std::string& pool) {
  return json::Value::object(
      {{"spec", json::Value::object({{"driver", "d"},
                                     {"nodeName", node},
                                     {"pool", json::Value::object({{"name", pool}})}})}});
}

json::Value allocation(const std::string& pool) {
  return json::parse(R"({"devices":{"results":[{"driver":"d","pool":")" + pool +
                     R"(","device":"x"}]}})")
      .value();
}

class RefusalsTest : public testing::Test {
 protected:
  RefusalsTest() {
    one.name = "one";
    two.name = "two";
    two.index = 1;
    refusals.slice_changed(slice("one", "p1"));
    refusals.slice_changed(slice("two", "p2"));
    refusals.note(refusals.of("a"), one);
    refusals.note(refusals.of("a"), two);
  }
  bool still(const std::string& demand, const NodeInfo& node) {
    return refusals.of(demand).still(node);
  }

  Refusals refusals;
  NodeInfo one;
  NodeInfo two;
};

TEST_F(RefusalsTest, HoldForThatDemandOnly) {
  EXPECT_TRUE(still("a", one));
  EXPECT_FALSE(still("b", one));
}

TEST_F(RefusalsTest, AnAllocationFreesItsNodeAlone) {
  refusals.allocation_changed(allocation("p1"));
  EXPECT_FALSE(still("a", one));
  EXPECT_TRUE(still("a", two));
}

TEST_F(RefusalsTest, ASliceOrTheNodeItselfChangesIt) {
  refusals.slice_changed(slice("one", "p1"));
  EXPECT_FALSE(still("a", one));
  EXPECT_TRUE(still("a", two));
  refusals.node_changed("two");
  EXPECT_FALSE(still("a", two));
}

TEST_F(RefusalsTest, DevicesOfNoNodeChangeAll) {
  refusals.allocation_changed(allocation("elsewhere"));
  EXPECT_FALSE(still("a", one));
  EXPECT_FALSE(still("a", two));
}

TEST_F(RefusalsTest, APoolOfTwoNodesChangesAll) {
  refusals.slice_changed(slice("two", "p1"));
  refusals.note(refusals.of("a"), one);
  refusals.note(refusals.of("a"), two);
  refusals.allocation_changed(allocation("p1"));
  EXPECT_FALSE(still("a", one));
  EXPECT_FALSE(still("a", two));
}

TEST_F(RefusalsTest, AreKeptAsBitsByIndex) {
  NodeInfo far;
  far.name = "far";
  far.index = 70;
  refusals.note(refusals.of("a"), far);
  EXPECT_EQ(refusals.of("a").nodes(), (std::vector<std::uint64_t>{3, 64}));
  refusals.node_changed("one");
  EXPECT_EQ(refusals.of("a").nodes(), (std::vector<std::uint64_t>{2, 64}));
}

TEST_F(RefusalsTest, AreForgottenWhenNodesGetOtherIndexes) {
  refusals.all_changed();
  two.index = 0;
  EXPECT_FALSE(still("a", two));
  refusals.note(refusals.of("a"), two);
  // What was at the index before has nothing to do with it any more.
  EXPECT_TRUE(still("a", two));
  refusals.node_changed("two");
  EXPECT_FALSE(still("a", two));
}

TEST_F(RefusalsTest, ManyDemandsAreForgotten) {
  for (int i = 0; i < 1000; ++i) refusals.of(std::to_string(i));
  EXPECT_FALSE(still("a", one));
}

}  // namespace
}  // namespace dibs::scheduler
