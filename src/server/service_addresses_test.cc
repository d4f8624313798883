// Addresses and ports that a whole server gives to Services.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/strings.h"
#include "server/admission_for_test.h"

namespace dibs::server {
namespace {

using json::Value;
using test::from_text;
using test::Reply;
using test::strings_of;
using testing::ElementsAre;
using testing::HasSubstr;

class ServicesPlugin : public AdmissionTest {
 protected:
  static constexpr const char* kServices = "/api/v1/namespaces/default/services";

  static Value service(std::string_view name, std::string_view more = "{}") {
    Value out = from_text("{'apiVersion':'v1','kind':'Service','spec':{'ports':[{'port':80}]}}");
    out.mut("metadata").set("name", name);
    const Value members = from_text(more);
    for (const auto& [key, value] : members.members()) out.mut("spec").set(key, value);
    return out;
  }
};

TEST_F(ServicesPlugin, get_an_address_of_the_range_each) {
  std::set<std::string> given;
  for (int i = 0; i < 20; ++i) {
    Reply made = api.post(kServices, service(cat("s", i)));
    ASSERT_EQ(made.status, 201) << made.text;
    const std::string address = made.body["spec"]["clusterIP"].str();
    EXPECT_THAT(address, testing::StartsWith("10.0.0."));
    EXPECT_THAT(strings_of(made.body["spec"]["clusterIPs"]), ElementsAre(address));
    EXPECT_TRUE(given.insert(address).second) << address << " was given twice";
  }
}

TEST_F(ServicesPlugin, keep_their_address) {
  Reply made = api.post(kServices, service("s"));

  Reply changed = api.patch(cat(kServices, "/s"), "merge", "{'metadata':{'labels':{'a':'b'}}}");

  EXPECT_EQ(changed.status, 200);
  EXPECT_EQ(changed.body["spec"]["clusterIP"], made.body["spec"]["clusterIP"]);
}

TEST_F(ServicesPlugin, may_choose_a_free_address) {
  Reply first = api.post(kServices, service("a", "{'clusterIP':'10.0.0.50'}"));
  Reply second = api.post(kServices, service("b", "{'clusterIP':'10.0.0.50'}"));
  Reply outside = api.post(kServices, service("c", "{'clusterIP':'10.9.0.1'}"));

  EXPECT_EQ(first.status, 201) << first.text;
  EXPECT_EQ(second.status, 422);
  EXPECT_THAT(second.message(),
              HasSubstr("failed to allocate IP 10.0.0.50: provided IP is already allocated"));
  EXPECT_EQ(outside.status, 422);
  EXPECT_THAT(outside.message(),
              HasSubstr("10.9.0.1: the provided network does not match the current range"));
}

TEST_F(ServicesPlugin, without_an_address_get_none) {
  Reply headless = api.post(kServices, service("h", "{'clusterIP':'None'}"));
  Reply external =
      api.post(kServices, service("e", "{'type':'ExternalName','externalName':'x.e.com'}"));

  EXPECT_EQ(headless.body["spec"]["clusterIP"].as_string(), "None");
  EXPECT_EQ(external.status, 201) << external.text;
  EXPECT_FALSE(external.body["spec"].contains("clusterIP"));
}

TEST_F(ServicesPlugin, get_node_ports_of_their_own) {
  Reply first = api.post(
      kServices,
      service("a", "{'type':'NodePort','ports':[{'name':'x','port':80},{'name':'y','port':81}]}"));
  ASSERT_EQ(first.status, 201) << first.text;
  const std::int64_t one = first.body["spec"]["ports"][0]["nodePort"].as_int();
  const std::int64_t two = first.body["spec"]["ports"][1]["nodePort"].as_int();
  EXPECT_GE(one, 30000);
  EXPECT_LE(one, 32767);
  EXPECT_NE(one, two);

  Reply taken =
      api.post(kServices,
               service("b", cat("{'type':'NodePort','ports':[{'port':80,'nodePort':", one, "}]}")));
  Reply outside =
      api.post(kServices, service("c", "{'type':'NodePort','ports':[{'port':80,'nodePort':80}]}"));

  EXPECT_EQ(taken.status, 422);
  EXPECT_THAT(taken.message(), HasSubstr("provided port is already allocated"));
  EXPECT_EQ(outside.status, 422);
  EXPECT_THAT(outside.message(), HasSubstr("The range of valid ports is 30000-32767"));
}

TEST_F(ServicesPlugin, get_a_port_for_health_checks_where_only_local_backends_count) {
  Reply made = api.post(kServices, service("a",
                                           "{'type':'LoadBalancer','externalTrafficPolicy':'Local',"
                                           "'ports':[{'port':80}]}"));
  ASSERT_EQ(made.status, 201) << made.text;
  const std::int64_t port = made.body["spec"]["healthCheckNodePort"].as_int();
  EXPECT_GE(port, 30000);
  EXPECT_LE(port, 32767);
  EXPECT_NE(port, made.body["spec"]["ports"][0]["nodePort"].as_int());
  Reply taken = api.post(
      kServices,
      service("b", cat("{'type':'NodePort','ports':[{'port':80,'nodePort':", port, "}]}")));
  EXPECT_EQ(taken.status, 422);
  Reply anywhere =
      api.post(kServices, service("c", "{'type':'LoadBalancer','ports':[{'port':80}]}"));
  EXPECT_FALSE(anywhere.body["spec"].contains("healthCheckNodePort"));
}

TEST_F(ServicesPlugin, are_refused_families_that_the_cluster_does_not_have) {
  Reply six = api.post(kServices, service("a", "{'ipFamilies':['IPv6'],'ports':[{'port':80}]}"));
  EXPECT_EQ(six.status, 422);
  EXPECT_THAT(six.message(),
              HasSubstr("spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured "
                        "on this cluster"));
  Reply both = api.post(
      kServices, service("b", "{'ipFamilyPolicy':'RequireDualStack','ports':[{'port':80}]}"));
  EXPECT_EQ(both.status, 422);
  EXPECT_THAT(both.message(), HasSubstr("this cluster is not configured for dual-stack services"));
  EXPECT_EQ(api.post(kServices,
                     service("c", "{'ipFamilyPolicy':'PreferDualStack','ports':[{'port':80}]}"))
                .status,
            201);
}

}  // namespace
}  // namespace dibs::server
