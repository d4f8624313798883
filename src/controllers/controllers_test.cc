#include "controllers/controllers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using std::chrono::seconds;
using test::kAccounts;
using test::kConfigMaps;
using test::TestCluster;

TEST(Controllers, stop_and_go_on_where_they_stopped) {
  TestCluster cluster;
  EXPECT_TRUE(cluster.controllers->ready());
  cluster.add_namespace("a");
  cluster.controllers->stop();
  EXPECT_FALSE(cluster.controllers->ready());
  cluster.create(kNamespaces, "", "{'metadata': {'name': 'b'}}");
  cluster.remove(kNamespaces, "", "a");
  cluster.settle(seconds(60));
  EXPECT_FALSE(cluster.get(kNamespaces, "", "a").is_null());
  EXPECT_TRUE(cluster.get(kAccounts, "b", "default").is_null());
  cluster.controllers->start();
  cluster.settle();
  EXPECT_TRUE(cluster.get(kNamespaces, "", "a").is_null());
  EXPECT_FALSE(cluster.get(kAccounts, "b", "default").is_null());
}

TEST(Controllers, discovery_knows_versions_and_kinds) {
  TestCluster cluster;
  Discovery discovery;
  ASSERT_TRUE(discovery.refresh(*cluster.api).ok());
  EXPECT_TRUE(discovery.serves("", "pods"));
  ASSERT_TRUE(discovery.find_kind("apps/v1", "Deployment").has_value());
  EXPECT_EQ(discovery.find_kind("apps/v1", "Deployment")->gvr.resource, "deployments");
  EXPECT_TRUE(discovery.find("", "nodes")->can("watch"));
  EXPECT_FALSE(discovery.find_kind("v1", "Nothing").has_value());
}

}  // namespace
}  // namespace dibs::controllers
