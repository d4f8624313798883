#include "server/bootstrap.h"

#include <gtest/gtest.h>

#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::TestServer;

constexpr const char* kDns = "/api/v1/namespaces/kube-system/services/kube-dns";

TEST(Bootstrap, makes_no_dns_service_where_nobody_serves_names) {
  TestServer api;
  EXPECT_EQ(api.get(kDns).status, 404);
}

TEST(Bootstrap, makes_the_service_of_the_cluster_s_dns) {
  Options options;
  options.cluster_dns = "10.0.0.10";
  TestServer api(options);
  const auto service = api.get(kDns);
  ASSERT_EQ(service.status, 200);
  EXPECT_EQ(service.body["spec"]["clusterIP"].str(), "10.0.0.10");
  EXPECT_EQ(service.body["spec"]["ports"].size(), 2U);
  EXPECT_EQ(service.body["spec"]["ports"][0]["protocol"].str(), "UDP");
  // Its address is taken, as any other's.
  EXPECT_EQ(api.post("/api/v1/namespaces/default/services",
                     test::from_text("{'metadata':{'name':'x'},'spec':{'clusterIP':'10.0.0.10',"
                                     "'ports':[{'port':1}]}}"))
                .status,
            422);
}

TEST(Bootstrap, leaves_an_address_that_another_service_has) {
  TestServer api;
  ASSERT_EQ(api.post("/api/v1/namespaces/default/services",
                     test::from_text("{'metadata':{'name':'x'},'spec':{'clusterIP':'10.0.0.10',"
                                     "'ports':[{'port':1}]}}"))
                .status,
            201);
  api.options.cluster_dns = "10.0.0.10";
  api.restart();
  EXPECT_EQ(api.get(kDns).status, 404);
  EXPECT_EQ(api.get("/api/v1/namespaces/default/services/x").status, 200);
}

}  // namespace
}  // namespace dibs::server
