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

TEST(Controllers, discovery_asks_now_and_then_for_who_seeks_what_may_be_new) {
  TestCluster cluster;
  Discovery discovery;
  using std::chrono::seconds;
  ASSERT_TRUE(discovery.refresh_at_times(*cluster.api, seconds(100)).ok());
  cluster.create({"apiextensions.k8s.io", "v1", "customresourcedefinitions"}, "",
                 "{'metadata':{'name':'packs.example.com'},'spec':{'group':'example.com','scope':"
                 "'Namespaced','names':{'plural':'packs','kind':'Pack'},'versions':[{'name':'v1',"
                 "'served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object'}}}]}}");
  cluster.settle();

  ASSERT_TRUE(discovery.refresh_at_times(*cluster.api, seconds(129)).ok());
  EXPECT_FALSE(discovery.find_kind("example.com/v1", "Pack").has_value());
  ASSERT_TRUE(discovery.refresh_at_times(*cluster.api, seconds(130)).ok());
  EXPECT_TRUE(discovery.find_kind("example.com/v1", "Pack").has_value());
}

}  // namespace
}  // namespace dibs::controllers
