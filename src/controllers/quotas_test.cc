#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using test::kConfigMaps;
using test::TestCluster;

const Gvr kQuotas = {"", "v1", "resourcequotas"};

TEST(Quotas, count_what_is_there_and_what_has_gone) {
  TestCluster cluster;
  cluster.create(kConfigMaps, "default", "{'metadata': {'name': 'a'}}");
  cluster.create(kQuotas, "default",
                 "{'metadata': {'name': 'q'}, 'spec': {'hard': {'configmaps': '3', "
                 "'count/deployments.apps': '2', 'pods': '5'}}}");
  cluster.settle();
  const auto used = [&](const char* what) {
    return cluster.get(kQuotas, "default", "q")["status"]["used"][what].str();
  };
  EXPECT_EQ(used("configmaps"), "2");  // and kube-root-ca.crt
  EXPECT_EQ(used("pods"), "0");
  EXPECT_EQ(used("count/deployments.apps"), "0");
  EXPECT_EQ(cluster.get(kQuotas, "default", "q")["status"]["hard"]["configmaps"].str(), "3");
  cluster.create(kConfigMaps, "default", "{'metadata': {'name': 'b'}}");
  EXPECT_EQ(used("configmaps"), "3");
  cluster.remove(kConfigMaps, "default", "a");
  cluster.settle();
  EXPECT_EQ(used("configmaps"), "2");
}

TEST(Quotas, a_charge_without_an_object_is_taken_back) {
  TestCluster cluster;
  cluster.create(kQuotas, "default",
                 "{'metadata': {'name': 'q'}, 'spec': {'hard': {'configmaps': '3'}}}");
  cluster.settle();
  // As kube-apiserver leaves it, killed between the charge and the object.
  Value quota = cluster.get(kQuotas, "default", "q");
  quota.mut("status").mut("used").set("configmaps", "3");
  ASSERT_TRUE(cluster.api->update_status(kQuotas, "default", quota).ok());
  cluster.settle(std::chrono::seconds(5));
  EXPECT_EQ(cluster.get(kQuotas, "default", "q")["status"]["used"]["configmaps"].str(), "1");
}

TEST(Quotas, a_changed_limit_is_taken_over) {
  TestCluster cluster;
  cluster.create(kQuotas, "default",
                 "{'metadata': {'name': 'q'}, 'spec': {'hard': {'pods': '5'}}}");
  cluster.settle();
  cluster.patch(kQuotas, "default", "q", "{'spec': {'hard': {'pods': null, 'secrets': '1'}}}");
  cluster.settle();
  const Value status = cluster.get(kQuotas, "default", "q")["status"];
  EXPECT_EQ(status["hard"], test::from_text("{'secrets': '1'}"));
  EXPECT_EQ(status["used"], test::from_text("{'secrets': '0'}"));
}

}  // namespace
}  // namespace dibs::controllers
