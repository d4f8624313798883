#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using test::TestCluster;

const Gvr kPolicies = {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"};
const Gvr kDefinitions = {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};

struct PolicyStatusTest : testing::Test {
  TestCluster cluster;

  void add(std::string_view group, std::string_view resource, std::string_view expression) {
    Value policy = from_text(cat(
        "{'metadata':{'name':'p'},'spec':{'matchConstraints':{"
        "'resourceRules':[{'apiGroups':['",
        group, "'],'apiVersions':['v1'],'operations':['*'],'resources':['", resource, "']}]}}}"));
    policy.mut("spec").mut("validations").push(Value::object({{"expression", expression}}));
    cluster.create_object(kPolicies, "", policy);
    cluster.settle();
  }
  Value status() { return cluster.get(kPolicies, "", "p")["status"]; }
  std::string warning() {
    return status()["typeChecking"]["expressionWarnings"][std::size_t{0}]["warning"].str();
  }
};

TEST_F(PolicyStatusTest, tells_that_there_is_nothing_to_tell) {
  add("apps", "deployments", "object.spec.replicas > 1");
  EXPECT_EQ(status()["observedGeneration"].as_int(), 1);
  ASSERT_TRUE(status().contains("typeChecking"));
  EXPECT_TRUE(status()["typeChecking"]["expressionWarnings"].empty());
}

TEST_F(PolicyStatusTest, warns_of_types_that_do_not_fit_a_built_in_kind) {
  add("apps", "deployments", "object.spec.replicas > '1'");
  EXPECT_EQ(warning(),
            "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' "
            "applied to '(int, string)'\n | object.spec.replicas > '1'\n | "
            ".....................^\n");
}

TEST_F(PolicyStatusTest, looks_again_when_the_policy_changes) {
  add("apps", "deployments", "object.spec.nope == 1");
  EXPECT_THAT(warning(), testing::HasSubstr("undefined field 'nope'"));
  cluster.patch(kPolicies, "", "p",
                "{'spec':{'validations':[{'expression':'object.spec.paused == true'}]}}");
  cluster.settle();
  EXPECT_EQ(status()["observedGeneration"].as_int(), 2);
  EXPECT_EQ(warning(), "");
}

TEST_F(PolicyStatusTest, knows_custom_kinds) {
  cluster.create(kDefinitions, "",
                 "{'metadata':{'name':'shops.example.com'},'spec':{'group':'example.com','scope':"
                 "'Namespaced','names':{'plural':'shops','singular':'shop','kind':'Shop',"
                 "'listKind':'ShopList'},'versions':[{'name':'v1','served':true,'storage':true,"
                 "'schema':{'openAPIV3Schema':{'type':'object','properties':{'spec':{'type':"
                 "'object','properties':{'size':{'type':'integer'}}}}}}}]}}");
  cluster.settle();
  add("example.com", "shops", "object.spec.size == 'big' && object.metadata.labels['a'] == 'b'");
  EXPECT_THAT(warning(), testing::HasSubstr("example.com/v1, Kind=Shop: ERROR: <input>:1:18: found "
                                            "no matching overload for '_==_' applied to '(int, "
                                            "string)'"));
  EXPECT_EQ(status()["typeChecking"]["expressionWarnings"].size(), 1u);
}

}  // namespace
}  // namespace dibs::controllers
