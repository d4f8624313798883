// Claims that pods use, and volumes that are bound, stay until that has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/test_cluster.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

class Protection : public testing::Test {
 protected:
  Value add_claim(const std::string& name, const std::string& name_space = "default",
                  const std::string& more = "") {
    return cluster.create(kVolumeClaims, name_space,
                          cat("{'metadata': {'name': '", name, "'", more,
                              "}, 'spec': {'accessModes': ['ReadWriteOnce'], 'resources': "
                              "{'requests': {'storage': '1Gi'}}}}"));
  }
  Value add_pod(const std::string& name, const std::string& node, const std::string& volume) {
    return cluster.create(kPods, "default",
                          cat("{'metadata': {'name': '", name, "'}, 'spec': {",
                              node.empty() ? std::string() : cat("'nodeName': '", node, "', "),
                              "'terminationGracePeriodSeconds': 0, 'volumes': [{'name': 'v', ",
                              volume, "}], 'containers': [{'name': 'm', 'image': 'x'}]}}"));
  }
  bool there(const std::string& claim, const std::string& name_space = "default") {
    return !cluster.get(kVolumeClaims, name_space, claim).is_null();
  }
  void end(const std::string& pod) {
    client::DeleteOptions now;
    now.grace_period_seconds = 0;
    ASSERT_TRUE(cluster.api->remove(kPods, "default", pod, now).ok());
    cluster.settle();
  }

  test::TestCluster cluster;
};

TEST_F(Protection, lets_go_a_claim_that_nobody_uses) {
  add_claim("a");
  cluster.settle();

  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();

  EXPECT_FALSE(there("a"));
}

TEST_F(Protection, keeps_a_claim_while_a_pod_on_a_node_has_it) {
  add_claim("a");
  add_pod("p", "n", "'persistentVolumeClaim': {'claimName': 'a'}");
  cluster.settle();

  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();
  EXPECT_TRUE(there("a"));

  end("p");
  EXPECT_FALSE(there("a"));
}

TEST_F(Protection, does_not_wait_for_a_pod_without_a_node) {
  add_claim("a");
  add_pod("p", "", "'persistentVolumeClaim': {'claimName': 'a'}");
  cluster.settle();

  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();

  EXPECT_FALSE(there("a"));
}

TEST_F(Protection, knows_an_ephemeral_claim_by_its_owner) {
  const Value pod =
      add_pod("p", "n",
              "'ephemeral': {'volumeClaimTemplate': {'spec': {'accessModes': ['ReadWriteOnce'], "
              "'resources': {'requests': {'storage': '1Gi'}}}}}");
  cluster.settle();
  const std::string owner =
      cat(", 'ownerReferences': [{'apiVersion': 'v1', 'kind': 'Pod', 'name': 'p', 'controller': "
          "true, 'uid': '",
          uid_of(pod), "'}]");
  if (!there("p-v")) add_claim("p-v", "default", owner);
  cluster.settle();

  cluster.remove(kVolumeClaims, "default", "p-v");
  cluster.settle();
  EXPECT_TRUE(there("p-v"));

  end("p");
  EXPECT_FALSE(there("p-v"));
}

TEST_F(Protection, lets_a_namespace_with_claims_go) {
  cluster.add_namespace("gone");
  for (const char* name : {"a", "b", "c"}) add_claim(name, "gone");
  cluster.settle();

  cluster.remove(kNamespaces, "", "gone");
  cluster.settle(std::chrono::seconds(30));

  EXPECT_TRUE(cluster.get(kNamespaces, "", "gone").is_null());
}

TEST_F(Protection, protects_what_came_without_a_finalizer) {
  add_claim("a");
  cluster.patch(kVolumeClaims, "default", "a", "{'metadata': {'finalizers': null}}");
  cluster.settle();

  EXPECT_EQ(cluster.get(kVolumeClaims, "default", "a")["metadata"]["finalizers"][0].str(),
            "kubernetes.io/pvc-protection");
}

TEST_F(Protection, keeps_a_volume_while_it_is_bound) {
  cluster.create(kVolumes, "",
                 "{'metadata': {'name': 'v'}, 'spec': {'capacity': {'storage': '1Gi'}, "
                 "'accessModes': ['ReadWriteOnce'], 'hostPath': {'path': '/x'}}}");
  cluster.settle();
  add_claim("a");
  cluster.settle();
  ASSERT_EQ(cluster.get(kVolumes, "", "v")["status"]["phase"].str(), "Bound");

  cluster.remove(kVolumes, "", "v");
  cluster.settle();
  EXPECT_FALSE(cluster.get(kVolumes, "", "v").is_null());

  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();
  EXPECT_TRUE(cluster.get(kVolumes, "", "v").is_null());
}

}  // namespace
}  // namespace dibs::controllers
