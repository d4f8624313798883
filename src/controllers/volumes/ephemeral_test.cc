// The claims of generic ephemeral volumes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/test_cluster.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

using testing::ElementsAre;

constexpr const char* kPod =
    "{'metadata': {'name': 'p'}, 'spec': {'volumes': [{'name': 'scratch', 'ephemeral': "
    "{'volumeClaimTemplate': {'metadata': {'labels': {'for': 'p'}}, 'spec': {'accessModes': "
    "['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}}}], 'containers': "
    "[{'name': 'm', 'image': 'x'}]}}";

TEST(EphemeralVolumes, have_a_claim_that_lives_as_long_as_the_pod) {
  test::TestCluster cluster;
  const Value pod = cluster.create(kPods, "default", kPod);
  cluster.settle();

  const Value claim = cluster.get(kVolumeClaims, "default", "p-scratch");
  EXPECT_EQ(controller_of(claim)["uid"], pod["metadata"]["uid"]);
  EXPECT_EQ(claim["metadata"]["labels"]["for"].str(), "p");
  EXPECT_EQ(claim["spec"]["resources"]["requests"]["storage"].str(), "1Gi");

  // Who deletes it gets it again.
  cluster.remove(kVolumeClaims, "default", "p-scratch");
  cluster.settle();
  const Value next = cluster.get(kVolumeClaims, "default", "p-scratch");
  EXPECT_FALSE(next.is_null());
  EXPECT_NE(next["metadata"]["uid"], claim["metadata"]["uid"]);

  cluster.remove(kPods, "default", "p");
  cluster.settle(std::chrono::seconds(10));
  EXPECT_TRUE(cluster.get(kVolumeClaims, "default", "p-scratch").is_null());
}

TEST(EphemeralVolumes, are_not_a_way_to_the_claim_of_somebody_else) {
  test::TestCluster cluster;
  cluster.create(kVolumeClaims, "default",
                 "{'metadata': {'name': 'p-scratch'}, 'spec': {'accessModes': ['ReadWriteOnce'], "
                 "'resources': {'requests': {'storage': '1Gi'}}}}");
  cluster.create(kPods, "default", kPod);
  cluster.settle();

  EXPECT_TRUE(controller_of(cluster.get(kVolumeClaims, "default", "p-scratch")).is_null());
  EXPECT_THAT(cluster.events("default", "p"),
              ElementsAre("Warning FailedBinding ephemeral volume scratch: PVC default/p-scratch "
                          "was not created for pod default/p (pod is not owner)"));
}

}  // namespace
}  // namespace dibs::controllers
