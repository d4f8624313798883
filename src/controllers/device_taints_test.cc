#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

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

server::Options served(const char* release, const char* apis) {
  server::Options options;
  options.release = release;
  if (*apis != '\0') options.runtime_config = apis;
  return options;
}

class DeviceTaints : public testing::Test {
 protected:
  explicit DeviceTaints(const char* release = "", const char* apis = "")
      : cluster(served(release, apis)) {}
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

TEST_F(DeviceTaints, who_is_evicted_is_counted) {
  const auto text = [this] {
    const auto answer = cluster.connect()->send(client::make_request("GET", "/metrics"));
    return answer.ok() ? answer->body : std::string();
  };
  const std::string name = "device_taint_eviction_controller_pod_deletion";
  EXPECT_THAT(text(), testing::HasSubstr(name + "s_total 0\n"));
  run_pod("one", "a");
  make_rule("out", "a", "NoExecute");
  EXPECT_THAT(text(), testing::HasSubstr(name + "s_total 1\n"));
  EXPECT_THAT(text(), testing::HasSubstr(name + "_duration_seconds_count 1\n"));
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

TEST_F(DeviceTaints, a_rule_made_anew_under_its_name_has_done_nothing_yet) {
  run_pod("p", "a");
  make_rule("out", "a", "NoExecute");
  EXPECT_EQ(condition("out"), "False Completed: 1 pod evicted since starting the controller.");

  // Sooner than the controller looks at a rule that is gone.
  cluster.remove(kRules, "", "out");
  make_rule("out", "b", "NoExecute");

  EXPECT_EQ(condition("out"), "False NotStarted: ");

  run_pod("q", "b");
  EXPECT_EQ(condition("out"), "False Completed: 1 pod evicted since starting the controller.");
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

// 1.34 has no gate for rules alone, and that of taints is off unless somebody asks for it.
TEST(DeviceTaintGates, off_take_the_rules_along) {
  for (const auto& [release, gates, rules] :
       {std::tuple{"1.34", "", false}, std::tuple{"1.34", "DRADeviceTaints=true", true},
        std::tuple{"1.35", "DRADeviceTaints=true", false}, std::tuple{"1.36", "", false},
        std::tuple{"1.37", "", true}, std::tuple{"1.37", "DRADeviceTaints=false", false}}) {
    ControllersOptions options;
    follow_gates(*api::Features::parse(release, gates), options);
    EXPECT_EQ(options.taint_rules, rules) << release << ' ' << gates;
  }
}

class OldRelease : public DeviceTaints {
 protected:
  OldRelease() : DeviceTaints("1.34", "resource.k8s.io/v1alpha3=true") {}
};

TEST_F(OldRelease, has_no_evictions_while_its_gate_is_off) {
  run_pod("p", "a");
  cluster.create({"resource.k8s.io", "v1alpha3", "devicetaintrules"}, "",
                 "{'metadata': {'name': 'r'}, 'spec': {'deviceSelector': {'driver': "
                 "'x.example.com', 'device': 'a'}, 'taint': {'key': 'k', 'effect': 'NoExecute'}}}");
  cluster.settle(seconds(30));
  EXPECT_TRUE(runs("p"));
}

}  // namespace
}  // namespace dibs::controllers
