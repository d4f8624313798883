// Claims of groups of pods, from template to release, and groups that go after their pods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/pod_claims.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using test::TestCluster;
using testing::ElementsAre;
using testing::IsEmpty;

const Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
const Gvr kTemplates = {"resource.k8s.io", "v1", "resourceclaimtemplates"};
const Gvr kGroups = {"scheduling.k8s.io", "v1beta1", "podgroups"};

server::Options gated() {
  server::Options options;
  options.feature_gates = "GenericWorkload=true,DRAWorkloadResourceClaims=true";
  return options;
}

class GroupClaims : public testing::Test {
 protected:
  void make_template(const std::string& name) {
    cluster.create(kTemplates, "default",
                   cat("{'metadata': {'name': '", name,
                       "'}, 'spec': {'spec': {'devices': {'requests': [{'name': 'd', 'exactly': "
                       "{'deviceClassName': 'c'}}]}}}}"));
  }
  Value make_group(const std::string& claim) {
    return cluster.create(kGroups, "default",
                          cat("{'metadata': {'name': 'g'}, 'spec': {'schedulingPolicy': {'basic': "
                              "{}}, 'resourceClaims': [{'name': 'd', ",
                              claim, "}]}}"));
  }
  void make_pod(const std::string& name, const std::string& claim) {
    cluster.create(kPods, "default",
                   cat("{'metadata': {'name': '", name,
                       "'}, 'spec': {'schedulingGroup': {'podGroupName': 'g'}, 'resourceClaims': "
                       "[{'name': 'd', ",
                       claim, "}], 'containers': [{'name': 'm', 'image': 'x'}]}}"));
  }
  std::string claim_of(const std::string& pod) {
    const auto names = claim_names(cluster.get(kPods, "default", pod));
    return names.empty() ? "" : names[0];
  }

  TestCluster cluster{gated()};
};

constexpr const char* kFromTemplate = "'resourceClaimTemplateName': 'gpu'";

TEST_F(GroupClaims, end_their_pods_when_the_device_is_tainted) {
  cluster.create(kNodes, "", "{'metadata': {'name': 'n'}}");
  make_template("gpu");
  const Value group = make_group(kFromTemplate);
  cluster.create(
      kPods, "default",
      cat("{'metadata': {'name': 'a'}, 'spec': {'nodeName': 'n', "
          "'terminationGracePeriodSeconds': 0, 'schedulingGroup': {'podGroupName': 'g'}, "
          "'resourceClaims': [{'name': 'd', ",
          kFromTemplate, "}], 'containers': [{'name': 'm', 'image': 'x'}]}}"));
  cluster.settle();
  Value claim = cluster.get(kClaims, "default", claim_of("a"));
  ASSERT_FALSE(claim.is_null());
  claim.set("status",
            from_text(cat("{'allocation': {'devices': {'results': [{'request': 'd', 'driver': "
                          "'x.example.com', 'pool': 'p', 'device': 'd'}]}}, 'reservedFor': "
                          "[{'apiGroup': 'scheduling.k8s.io', 'resource': 'podgroups', 'name': "
                          "'g', 'uid': '",
                          uid_of(group), "'}]}")));
  ASSERT_TRUE(cluster.api->update_status(kClaims, "default", claim).ok());
  cluster.create({"resource.k8s.io", "v1", "devicetaintrules"}, "",
                 "{'metadata': {'name': 'out'}, 'spec': {'deviceSelector': {'driver': "
                 "'x.example.com'}, 'taint': {'key': 'k', 'effect': 'NoExecute'}}}");
  cluster.settle();
  EXPECT_TRUE(cluster.get(kPods, "default", "a").is_null());
}

TEST_F(GroupClaims, are_made_once_for_all_pods) {
  make_template("gpu");
  const Value group = make_group(kFromTemplate);
  make_pod("a", kFromTemplate);
  make_pod("b", kFromTemplate);
  cluster.settle();

  const auto names = cluster.names(kClaims, "default");
  ASSERT_EQ(names.size(), 1U);
  EXPECT_EQ(claim_of("a"), names[0]);
  EXPECT_EQ(claim_of("b"), names[0]);
  const Value claim = cluster.get(kClaims, "default", names[0]);
  EXPECT_EQ(claim["metadata"]["generateName"].str(), "g-d-");
  EXPECT_EQ(claim["metadata"]["annotations"][kClaimNameAnnotation].str(), "d");
  EXPECT_TRUE(is_owned_by(claim, group));
  EXPECT_EQ(controller_of(claim)["kind"].str(), "PodGroup");
  EXPECT_THAT(claim_names(cluster.get(kGroups, "default", "g")), ElementsAre(names[0]));
}

TEST_F(GroupClaims, wait_for_the_group_and_leave_other_claims_to_the_pods) {
  make_template("gpu");
  make_template("other");
  make_pod("a", kFromTemplate);
  cluster.settle();
  EXPECT_EQ(claim_of("a"), "") << "the group may have it";

  make_group("'resourceClaimTemplateName': 'other'");
  cluster.settle();
  EXPECT_TRUE(claim_of("a").starts_with("a-d-")) << "the group's is of another template";
  EXPECT_EQ(cluster.names(kClaims, "default").size(), 2U);
}

TEST_F(GroupClaims, are_made_again_when_they_vanish) {
  make_template("gpu");
  make_group(kFromTemplate);
  make_pod("a", kFromTemplate);
  cluster.settle();
  const std::string first = claim_of("a");
  cluster.remove(kClaims, "default", first);
  cluster.settle();
  EXPECT_NE(claim_of("a"), first);
  EXPECT_THAT(cluster.names(kClaims, "default"), ElementsAre(claim_of("a")));
}

TEST_F(GroupClaims, are_held_until_the_group_is_gone) {
  make_template("gpu");
  const Value group = make_group(kFromTemplate);
  make_pod("a", kFromTemplate);
  cluster.settle();
  Value claim = cluster.get(kClaims, "default", claim_of("a"));
  claim.mut("metadata").set("finalizers", Value::array({kClaimFinalizer}));
  claim = *cluster.api->update(kClaims, "default", claim);
  claim.set("status", from_text("{'allocation': {'devices': {'results': [{'request': 'd', "
                                "'driver': 'x.example.com', 'pool': 'p', 'device': 'a'}]}}}"));
  claim.mut("status").set("reservedFor",
                          Value::array({Value::object({{"apiGroup", "scheduling.k8s.io"},
                                                       {"resource", "podgroups"},
                                                       {"name", "g"},
                                                       {"uid", group["metadata"]["uid"]}})}));
  ASSERT_TRUE(cluster.api->update_status(kClaims, "default", claim).ok());
  cluster.settle();
  EXPECT_EQ(cluster.get(kClaims, "default", claim_of("a"))["status"]["reservedFor"].size(), 1U);

  cluster.remove(kGroups, "default", "g");
  cluster.settle();
  EXPECT_FALSE(cluster.get(kGroups, "default", "g").is_null()) << "it has a pod";

  cluster.remove(kPods, "default", "a");
  cluster.settle(std::chrono::seconds(60));
  EXPECT_THAT(cluster.names(kGroups, "default"), IsEmpty());
  EXPECT_THAT(cluster.names(kClaims, "default"), IsEmpty());
}

}  // namespace
}  // namespace dibs::controllers
