#include "cli/node_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"
#include "node/pods/node_lease.h"
#include "runtime/sim_runtime.h"

namespace dibs::cli {
namespace {

using namespace std::chrono_literals;
using json::Value;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A lease of 40 s that somebody renews, or nobody.
class NodeNames : public ::testing::Test {
 protected:
  Value lease(std::string_view holder) const {
    Value out =
        Value::object({{"spec", Value::object({{"leaseDurationSeconds", 40},
                                               {"renewTime", format_rfc3339_micro(renewed_)}})}});
    if (!holder.empty()) {
      out.set("metadata",
              Value::object({{"annotations", Value::object({{node::kAgentAnnotation, holder}})}}));
    }
    return out;
  }
  /// Time passes, and the holder renews every ten seconds while it lives.
  void pass() {
    sim_.advance(1s);
    if (alive_ && clock().now() - renewed_ >= 10s) renewed_ = clock().now();
  }
  Result<> check(std::string_view holder) {
    return check_name_is_free({"node-0", "us", "--node-prefix", clock(), [this] { pass(); }},
                              [&]() -> Result<Value> { return lease(holder); });
  }
  runtime::Clock& clock() { return sim_.runtime().clock; }
  Duration taken() { return clock().now() - start_; }

  runtime::SimRuntime sim_;
  const Time start_ = sim_.runtime().clock.now();
  Time renewed_ = start_ - 3s;
  bool alive_ = true;
};

TEST_F(NodeNames, are_free_without_a_lease_and_where_it_is_our_own) {
  EXPECT_TRUE(check_name_is_free({"n", "us", "", clock(), [] {}}, []() -> Result<Value> {
                return Error::not_found("");
              }).ok());
  EXPECT_TRUE(check("us").ok());
  EXPECT_TRUE(check("").ok()) << "of one that does not tell who it is";
  EXPECT_EQ(taken(), 0s);
}

TEST_F(NodeNames, are_refused_where_another_renews_the_lease) {
  const auto checked = check("machine-b_1");
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code(), Code::conflict);
  EXPECT_THAT(checked.error().message(),
              AllOf(HasSubstr("\"node-0\" is alive in another process, machine-b_1"),
                    HasSubstr("--node-prefix")));
  EXPECT_LE(taken(), 12s);
}

TEST_F(NodeNames, are_taken_over_from_who_is_dead) {
  alive_ = false;
  EXPECT_TRUE(check("machine-b_1").ok());
  EXPECT_GE(taken(), 35s);
  EXPECT_LE(taken(), 41s);
  EXPECT_TRUE(check("machine-b_1").ok()) << "and at once when the lease has run out";
  EXPECT_LE(taken(), 41s);
}

TEST_F(NodeNames, agents_of_one_folder_are_the_same) {
  const auto files = runtime::make_memory_files();
  const auto first = agent_of(*files, "/data/nodes", sim_.runtime().random);
  ASSERT_TRUE(first.ok()) << first.error().message();
  EXPECT_EQ(*agent_of(*files, "/data/nodes", sim_.runtime().random), *first);
  EXPECT_NE(*agent_of(*files, "/other/nodes", sim_.runtime().random), *first);
}

}  // namespace
}  // namespace dibs::cli
