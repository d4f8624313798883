#include "client/claim_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::client {
namespace {

json::Value claim(const std::string& text) { return json::parse(text).value(); }

TEST(ClaimsCreated, count_by_result_and_owner) {
  metrics::Registry registry;
  ClaimsCreated created(registry);
  const auto of_pod = claim(
      R"({"metadata":{"ownerReferences":[{"apiVersion":"x/v1","kind":"X"},{"apiVersion":"v1","kind":"Pod","controller":true}]},
          "spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c"}}]}}})");
  const auto of_group = claim(
      R"({"metadata":{"ownerReferences":[{"apiVersion":"scheduling.k8s.io/v1beta1","kind":"PodGroup","controller":true}]},
          "spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c","adminAccess":true}}]}}})");
  created.count(of_pod, true);
  created.count(of_pod, true);
  created.count(of_pod, false);
  created.count(of_group, true);
  const std::string name = "dynamic_resource_allocation_resourceclaim_creates_total";
  const std::string text = registry.expose();
  EXPECT_THAT(
      text,
      testing::HasSubstr(
          name +
          R"({status="success",admin_access="false",owner_api_group="",owner_api_kind="Pod"} 2)"));
  EXPECT_THAT(
      text,
      testing::HasSubstr(
          name +
          R"({status="failure",admin_access="false",owner_api_group="",owner_api_kind="Pod"} 1)"));
  EXPECT_THAT(
      text,
      testing::HasSubstr(
          name +
          R"({status="success",admin_access="true",owner_api_group="scheduling.k8s.io",owner_api_kind="PodGroup"} 1)"));
}

}  // namespace
}  // namespace dibs::client
