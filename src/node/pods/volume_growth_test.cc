#include "node/pods/volume_growth.h"

#include <gtest/gtest.h>

#include "json/test_text.h"

namespace dibs::node {
namespace {

using json::Value;
using json::test::from_text;

Quantity amount(const char* text) { return *Quantity::parse(text); }

Value volume_of(const std::string& size) {
  return from_text("{'spec': {'capacity': {'storage': '" + size + "'}}}");
}

Value claim_of(const std::string& status, const std::string& mode = "ReadWriteOnce",
               const std::string& more = "") {
  return from_text("{'metadata': {'resourceVersion': '7'" + more + "}, 'spec': {'accessModes': ['" +
                   mode +
                   "'], 'resources': {'requests': {'storage': '2Gi'}}}, 'status': " + status + "}");
}

std::string followed(const std::string& size, const std::string& stage) {
  return "{'capacity': {'storage': '" + size +
         "'}, 'allocatedResources': {'storage': '2Gi'}, 'allocatedResourceStatuses': {" +
         (stage.empty() ? "" : "'storage': '" + stage + "'") + "}}";
}

TEST(Growth, is_due_where_the_resizer_waits_for_the_node) {
  const Quantity here = amount("1Gi");
  for (const char* stage : {"NodeResizePending", "NodeResizeInProgress"}) {
    const auto growth = growth_of(claim_of(followed("1Gi", stage)), volume_of("2Gi"), here);
    ASSERT_TRUE(growth) << stage;
    EXPECT_EQ(growth->size, amount("2Gi"));
    EXPECT_TRUE(growth->followed);
    EXPECT_FALSE(growth->told);
  }
  for (const char* stage :
       {"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInfeasible", ""}) {
    EXPECT_FALSE(growth_of(claim_of(followed("1Gi", stage)), volume_of("2Gi"), here)) << stage;
  }
}

TEST(Growth, is_due_by_the_sizes_alone_with_a_resizer_of_old) {
  const Value claim = claim_of("{'capacity': {'storage': '1Gi'}}");
  const auto growth = growth_of(claim, volume_of("2Gi"), size_of_claim(claim));
  ASSERT_TRUE(growth);
  EXPECT_FALSE(growth->followed);
  EXPECT_FALSE(growth->told);
  EXPECT_FALSE(growth_of(claim, volume_of("1024Mi"), size_of_claim(claim)));
  EXPECT_FALSE(growth_of(claim, volume_of("2Gi"), amount("2Gi")));
}

TEST(Growth, of_a_volume_of_many_nodes_is_due_on_each) {
  const Quantity here = amount("1Gi");
  const std::string done = followed("2Gi", "");
  const auto growth = growth_of(claim_of(done, "ReadWriteMany"), volume_of("2Gi"), here);
  ASSERT_TRUE(growth);
  EXPECT_TRUE(growth->told);
  EXPECT_FALSE(growth_of(claim_of(done), volume_of("2Gi"), here));
  EXPECT_FALSE(growth_of(
      claim_of(done, "ReadWriteMany",
               ", 'annotations': {'volume.kubernetes.io/node-expansion-not-required': 'true'}"),
      volume_of("2Gi"), here));
}

TEST(Growth, is_none_of_what_cannot_be_read) {
  const Value claim = claim_of("{}");
  EXPECT_FALSE(growth_of(claim, volume_of("2Gi"), size_of_claim(claim)));
  EXPECT_FALSE(
      growth_of(claim_of("{'capacity': {'storage': '1Gi'}}"), volume_of("big"), amount("1Gi")));
  EXPECT_FALSE(growth_of(Value(), Value(), Quantity()));
}

TEST(Growth, writes_what_it_has_done_and_leaves_the_rest) {
  const Value claim = claim_of(
      "{'capacity': {'storage': '1Gi'}, 'allocatedResourceStatuses': {'storage': "
      "'NodeResizeInProgress', 'example.com/x': 'NodeResizePending'}, 'conditions': [{'type': "
      "'Resizing'}, {'type': 'Mine'}, {'type': 'NodeResizeError'}]}");
  EXPECT_EQ(growth_done(claim, amount("2Gi")),
            from_text("{'metadata': {'resourceVersion': '7'}, 'status': {'capacity': {'storage': "
                      "'2Gi'}, 'conditions': [{'type': 'Mine'}], 'allocatedResourceStatuses': "
                      "{'storage': null}}}"));
  EXPECT_EQ(growth_done(claim_of("{'capacity': {'storage': '1Gi'}}"), amount("2Gi"))["status"],
            from_text("{'capacity': {'storage': '2Gi'}, 'conditions': null}"));
  EXPECT_EQ(growth_begun(claim)["status"],
            from_text("{'allocatedResourceStatuses': {'storage': 'NodeResizeInProgress'}}"));
}

TEST(Growth, that_failed_says_since_when) {
  const Time now = Time() + std::chrono::hours(24);
  const Value claim = claim_of("{'conditions': [{'type': 'Mine'}]}");
  const Value failed = growth_failed(claim, "no luck", false, now);
  EXPECT_EQ(failed["status"]["conditions"][1],
            from_text("{'type': 'NodeResizeError', 'status': 'True', 'lastTransitionTime': "
                      "'1970-01-02T00:00:00Z', 'message': 'failed to expand pvc with no luck'}"));
  EXPECT_FALSE(failed["status"].contains("allocatedResourceStatuses"));

  Value again = claim;
  again.mut("status").set("conditions", failed["status"]["conditions"]);
  const Value hopeless = growth_failed(again, "never", true, now + std::chrono::hours(1));
  EXPECT_EQ(hopeless["status"]["conditions"].size(), 2U);
  EXPECT_EQ(hopeless["status"]["conditions"][1]["lastTransitionTime"].as_string(),
            "1970-01-02T00:00:00Z");
  EXPECT_EQ(hopeless["status"]["allocatedResourceStatuses"]["storage"].as_string(),
            "NodeResizeInfeasible");

  // Who asks for another size meanwhile is not kept waiting for this one.
  EXPECT_FALSE(is_outdated(claim, {amount("3Gi"), true, false}));
  EXPECT_TRUE(is_outdated(again, {amount("3Gi"), true, false}));
  EXPECT_FALSE(is_outdated(again, {amount("2Gi"), true, false}));
}

}  // namespace
}  // namespace dibs::node
