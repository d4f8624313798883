#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using std::chrono::seconds;
using test::from_text;
using test::TestCluster;
using testing::Contains;

const Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
const Gvr kSlices = {"resource.k8s.io", "v1", "resourceslices"};
const Gvr kRules = {"resource.k8s.io", "v1", "devicetaintrules"};

class DeviceTaints : public testing::Test {
 protected:
  void SetUp() override { cluster.create(kNodes, "", "{'metadata': {'name': 'n'}}"); }

  /// A pod that holds the device, with these tolerations in its allocation.
  void run_pod(const std::string& name, const std::string& device,
               const std::string& tolerations = "[]") {
    cluster.create(kClaims, "default",
                   cat("{'metadata': {'name': '", name,
                       "'}, 'spec': {'devices': {'requests': [{'name': 'd', 'exactly': "
                       "{'deviceClassName': 'c'}}]}}}"));
    const Value pod =
        cluster.create(kPods, "default",
                       cat("{'metadata': {'name': '", name,
                           "'}, 'spec': {'nodeName': 'n', "
                           "'terminationGracePeriodSeconds': 0, 'resourceClaims': [{'name': 'd', "
                           "'resourceClaimName': '",
                           name,
                           "'}], 'containers': [{'name': 'm', 'image': 'x', "
                           "'resources': {'claims': [{'name': 'd'}]}}]}}"));
    Value claim = cluster.get(kClaims, "default", name);
    claim.set("status",
              from_text(cat("{'allocation': {'devices': {'results': [{'request': 'd', 'driver': "
                            "'x.example.com', 'pool': 'p', 'device': '",
                            device, "', 'tolerations': ", tolerations,
                            "}]}}, 'reservedFor': [{'resource': "
                            "'pods', 'name': '",
                            name, "', 'uid': '", uid_of(pod), "'}]}")));
    auto written = cluster.api->update_status(kClaims, "default", claim);
    ASSERT_TRUE(written.ok()) << written.error().message();
    cluster.settle();
  }
  void make_rule(const std::string& name, const std::string& device, const std::string& effect) {
    cluster.create(kRules, "",
                   cat("{'metadata': {'name': '", name,
                       "'}, 'spec': {'deviceSelector': {'driver': "
                       "'x.example.com', 'device': '",
                       device,
                       "'}, 'taint': {'key': 'k', "
                       "'value': 'v', 'effect': '",
                       effect, "'}}}"));
    cluster.settle();
  }
  bool runs(const std::string& pod) { return !cluster.get(kPods, "default", pod).is_null(); }
  std::string condition(const std::string& rule) {
    const Value condition = find_condition(cluster.get(kRules, "", rule), "EvictionInProgress");
    return cat(condition["status"].as_string(), ' ', condition["reason"].as_string(), ": ",
               condition["message"].as_string());
  }

  TestCluster cluster;
};

TEST_F(DeviceTaints, a_rule_evicts_who_has_the_device) {
  run_pod("one", "a");
  run_pod("two", "b");
  make_rule("out", "a", "NoExecute");
  EXPECT_FALSE(runs("one"));
  EXPECT_TRUE(runs("two"));
  EXPECT_THAT(cluster.events("default", "one"),
              Contains("Normal DeviceTaintManagerEviction Marking for deletion"));
  EXPECT_EQ(condition("out"), "False Completed: 1 pod evicted since starting the controller.");
}

TEST_F(DeviceTaints, only_a_toleration_with_the_effect_helps) {
  run_pod("any", "a", "[{'operator': 'Exists'}]");
  run_pod("exact", "b", "[{'operator': 'Exists', 'effect': 'NoExecute'}]");
  make_rule("out-a", "a", "NoExecute");
  make_rule("out-b", "b", "NoExecute");
  EXPECT_FALSE(runs("any"));
  EXPECT_TRUE(runs("exact"));
}

TEST_F(DeviceTaints, a_toleration_may_give_time) {
  run_pod("p", "a", "[{'operator': 'Exists', 'effect': 'NoExecute', 'tolerationSeconds': 60}]");
  make_rule("out", "a", "NoExecute");
  EXPECT_TRUE(runs("p"));
  EXPECT_EQ(condition("out"),
            "True PodsPendingEviction: 1 pod needs to be evicted in 1 namespace.");
  cluster.settle(seconds(70));
  EXPECT_FALSE(runs("p"));
  EXPECT_EQ(condition("out"), "False Completed: 1 pod evicted since starting the controller.");
}

TEST_F(DeviceTaints, a_rule_that_goes_cancels) {
  run_pod("p", "a", "[{'operator': 'Exists', 'effect': 'NoExecute', 'tolerationSeconds': 60}]");
  make_rule("out", "a", "NoExecute");
  cluster.remove(kRules, "", "out");
  cluster.settle(seconds(70));
  EXPECT_TRUE(runs("p"));
  EXPECT_THAT(cluster.events("default", "p"),
              Contains("Normal DeviceTaintManagerEviction Cancelling deletion"));
}

TEST_F(DeviceTaints, other_effects_only_tell) {
  run_pod("p", "a");
  cluster.create(kSlices, "",
                 "{'metadata': {'name': 's'}, 'spec': {'driver': 'x.example.com', 'nodeName': 'n', "
                 "'pool': {'name': 'p', 'generation': 1, 'resourceSliceCount': 1}, 'devices': "
                 "[{'name': 'a'}, {'name': 'b'}]}}");
  make_rule("none", "a", "None");
  make_rule("later", "a", "NoSchedule");
  EXPECT_TRUE(runs("p"));
  EXPECT_EQ(condition("none"),
            "False NoEffect: 1 published device selected. 1 allocated device selected. 1 pod would "
            "be evicted in 1 namespace if the effect was NoExecute. This information will not be "
            "updated again. Recreate the DeviceTaintRule to trigger an update.");
  EXPECT_EQ(condition("later"),
            "False OtherEffect: Eviction only happens for the NoExecute effect.");
}

TEST_F(DeviceTaints, a_slice_taints_too) {
  run_pod("p", "a");
  cluster.create(kSlices, "",
                 "{'metadata': {'name': 's'}, 'spec': {'driver': 'x.example.com', 'nodeName': 'n', "
                 "'pool': {'name': 'p', 'generation': 1, 'resourceSliceCount': 1}, 'devices': "
                 "[{'name': 'a', 'taints': [{'key': 'k', 'effect': 'NoExecute'}]}]}}");
  cluster.settle();
  EXPECT_FALSE(runs("p"));
}

}  // namespace
}  // namespace dibs::controllers
