#include <gtest/gtest.h>

#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using test::TestCluster;

const Gvr kCidrs = {"networking.k8s.io", "v1", "servicecidrs"};
const Gvr kAddresses = {"networking.k8s.io", "v1", "ipaddresses"};
const Gvr kServices = {"", "v1", "services"};

class ServiceCidrs : public testing::Test {
 protected:
  ServiceCidrs() {
    cluster.create(kCidrs, "",
                   "{'metadata': {'name': 'more'}, 'spec': {'cidrs': ['10.7.0.0/24']}}");
    cluster.settle();
  }
  bool is_there() {
    cluster.settle(std::chrono::seconds(30));
    return !cluster.get(kCidrs, "", "more").is_null();
  }

  TestCluster cluster;
};

TEST_F(ServiceCidrs, stay_while_a_service_has_an_address_of_them) {
  cluster.create(
      kServices, "default",
      "{'metadata': {'name': 'a'}, 'spec': {'clusterIP': '10.7.0.5', 'ports': [{'port': 80}]}}");
  cluster.remove(kCidrs, "", "more");
  EXPECT_TRUE(is_there());

  cluster.remove(kServices, "default", "a");

  EXPECT_FALSE(is_there());
}

TEST_F(ServiceCidrs, go_though_others_have_addresses_of_them) {
  cluster.create(kAddresses, "",
                 "{'metadata': {'name': '10.7.0.9'}, 'spec': {'parentRef': {'group': 'g.io', "
                 "'resource': 'gateways', 'name': 'x'}}}");
  cluster.remove(kCidrs, "", "more");

  EXPECT_FALSE(is_there());
}

}  // namespace
}  // namespace dibs::controllers
