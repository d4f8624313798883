#include "controllers/cluster_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using test::TestCluster;
using testing::Contains;
using testing::Not;

const Gvr kClusterRoles = {"rbac.authorization.k8s.io", "v1", "clusterroles"};

Value rule(const std::string& verb) {
  return from_text(cat("{'verbs':['", verb, "'],'apiGroups':['example.com'],'resources':['x']}"));
}

Value part(const std::string& name, const std::string& label, const std::string& verb) {
  Value role = Value::object(
      {{"metadata", Value::object({{"name", name}})}, {"rules", Value::array({rule(verb)})}});
  role.mut("metadata").mut("labels").set(label, "yes");
  return role;
}

TEST(ClusterRoles, rules_come_by_selector_and_name_each_once) {
  const Value sum = from_text(
      "{'metadata':{'name':'sum','labels':{'one':'yes'}},'rules':[{'verbs':['own']}],"
      "'aggregationRule':{'clusterRoleSelectors':[{'matchLabels':{'two':'yes'}},{'matchLabels':{"
      "'one':'yes'}}]}}");

  const Value rules = aggregated_rules(
      sum, {part("b", "one", "get"), part("a", "one", "list"), part("c", "two", "watch"),
            part("d", "two", "get"), part("e", "three", "patch"), sum});

  EXPECT_EQ(rules, Value::array({rule("watch"), rule("get"), rule("list")}));
}

struct ClusterRolesTest : testing::Test {
  TestCluster cluster;

  std::vector<std::string> verbs(const std::string& name) {
    std::vector<std::string> out;
    for (const Value& rule : cluster.get(kClusterRoles, "", name)["rules"].items())
      if (rule["apiGroups"][0].as_string() == "example.com") out.push_back(rule["verbs"][0].str());
    return out;
  }
  void add(const std::string& name, const std::string& label, const std::string& verb) {
    cluster.create_object(kClusterRoles, "", part(name, label, verb));
    cluster.settle();
  }
};

TEST_F(ClusterRolesTest, default_roles_hold_their_parts) {
  for (const char* name : {"admin", "edit", "view"}) {
    const Value role = cluster.get(kClusterRoles, "", name);
    EXPECT_FALSE(role["rules"].empty()) << name;
    std::vector<std::string> managers;
    for (const Value& entry : role["metadata"]["managedFields"].items())
      managers.push_back(cat(entry["manager"].as_string(), " ", entry["operation"].as_string()));
    EXPECT_THAT(managers, Contains("clusterrole-aggregation-controller Apply")) << name;
  }
  const auto admin = cluster.get(kClusterRoles, "", "admin")["rules"];
  const auto view = cluster.get(kClusterRoles, "", "view")["rules"];
  for (const Value& rule : view.items())
    EXPECT_NE(std::find(admin.items().begin(), admin.items().end(), rule), admin.items().end());
}

TEST_F(ClusterRolesTest, parts_come_change_and_go) {
  cluster.create(kClusterRoles, "",
                 "{'metadata':{'name':'sum'},'aggregationRule':{'clusterRoleSelectors':[{"
                 "'matchLabels':{'to-sum':'yes'}}]}}");
  add("one", "to-sum", "get");
  add("two", "to-sum", "list");
  EXPECT_THAT(verbs("sum"), testing::ElementsAre("get", "list"));

  cluster.patch(kClusterRoles, "", "one",
                "{'rules':[{'verbs':['watch'],'apiGroups':['example.com'],'resources':['x']}]}");
  cluster.settle();
  EXPECT_THAT(verbs("sum"), testing::ElementsAre("watch", "list"));

  cluster.remove(kClusterRoles, "", "two");
  cluster.settle();
  EXPECT_THAT(verbs("sum"), testing::ElementsAre("watch"));

  cluster.remove(kClusterRoles, "", "one");
  cluster.settle();
  EXPECT_THAT(verbs("sum"), testing::IsEmpty());
}

TEST_F(ClusterRolesTest, what_others_write_is_undone) {
  add("more-view", "rbac.authorization.k8s.io/aggregate-to-view", "get");
  EXPECT_THAT(verbs("view"), Not(Contains("get"))) << "the label must be true";
  cluster.patch(kClusterRoles, "", "more-view",
                "{'metadata':{'labels':{'rbac.authorization.k8s.io/aggregate-to-view':'true'}}}");
  cluster.settle();
  for (const char* name : {"view", "edit", "admin"}) EXPECT_THAT(verbs(name), Contains("get"));

  cluster.patch(kClusterRoles, "", "view", "{'rules':[]}");
  cluster.settle();
  EXPECT_THAT(verbs("view"), Contains("get"));
}

}  // namespace
}  // namespace dibs::controllers
