// What somebody with few rights can reach by a detour: creating without the right to create, and
// granting what he does not hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "net/x509.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::from_text;
using test::kConfigMaps;
using test::Reply;
using test::TestServer;
using testing::HasSubstr;

constexpr const char* kRbac = "/apis/rbac.authorization.k8s.io/v1";

class Rights : public testing::Test {
 protected:
  /// Gives ana a role of the cluster with these rules.
  void allow(std::string_view rules) {
    server.post(cat(kRbac, "/clusterroles"),
                from_text(cat("{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'ClusterRole',"
                              "'metadata':{'name':'few'},'rules':",
                              rules, "}")));
    server.post(
        cat(kRbac, "/clusterrolebindings"),
        from_text("{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'ClusterRoleBinding',"
                  "'metadata':{'name':'few'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io',"
                  "'kind':'ClusterRole','name':'few'},'subjects':[{'kind':'User','apiGroup':"
                  "'rbac.authorization.k8s.io','name':'ana'}]}"));
  }
  Reply as_ana(std::string method, std::string target, std::string_view body,
               std::string type = "application/json") {
    net::Request request = test::make_request(std::move(method), std::move(target),
                                              json::write(from_text(body)), std::move(type));
    request.headers.set("Impersonate-User", "ana");
    return server.send(std::move(request));
  }
  Reply apply(const std::string& target, std::string_view body) {
    const char* more = target.find('?') == std::string::npos ? "?" : "&";
    return as_ana("PATCH", cat(target, more, "fieldManager=ana"), body,
                  "application/apply-patch+yaml");
  }

  TestServer server;
};

constexpr const char* kMap = "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'m'}}";
constexpr const char* kLimits =
    "{'apiVersion':'v1','kind':'LimitRange','metadata':{'name':'m'},'spec':{'limits':[]}}";
constexpr const char* kLimitRanges = "/api/v1/namespaces/default/limitranges";

TEST_F(Rights, to_patch_do_not_create) {
  allow("[{'apiGroups':[''],'resources':['configmaps'],'verbs':['patch','get']}]");

  Reply refused = apply(cat(kConfigMaps, "/m"), kMap);
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            R"(configmaps "m" is forbidden: User "ana" cannot create resource "configmaps" in API )"
            R"(group "" in the namespace "default")");
  EXPECT_EQ(apply(cat(kConfigMaps, "/m?dryRun=All"), kMap).status, 403);
  EXPECT_EQ(server.get(cat(kConfigMaps, "/m")).status, 404);

  server.add_config_map("m");
  EXPECT_EQ(apply(cat(kConfigMaps, "/m"), kMap).status, 200);
}

TEST_F(Rights, to_update_do_not_create) {
  allow("[{'apiGroups':[''],'resources':['limitranges'],'verbs':['update']}]");

  Reply refused = as_ana("PUT", cat(kLimitRanges, "/m"), kLimits);
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.message(), HasSubstr(R"(cannot create resource "limitranges")"));
  EXPECT_EQ(server.get(cat(kLimitRanges, "/m")).status, 404);
}

TEST_F(Rights, to_create_and_patch_create_by_apply) {
  allow(
      "[{'apiGroups':[''],'resources':['configmaps'],'verbs':['patch']},"
      "{'apiGroups':[''],'resources':['configmaps'],'resourceNames':['m'],'verbs':['create']}]");

  EXPECT_EQ(apply(cat(kConfigMaps, "/m"), kMap).status, 201);
  EXPECT_EQ(apply(cat(kConfigMaps, "/n"),
                  "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'n'}}")
                .status,
            403);
}

TEST_F(Rights, of_others_are_not_gathered_by_a_label) {
  allow(
      "[{'apiGroups':['rbac.authorization.k8s.io'],'resources':['clusterroles'],"
      "'verbs':['create','patch','update']}]");
  const std::string admin = cat(kRbac, "/clusterroles/cluster-admin");

  Reply labelled =
      as_ana("PATCH", admin,
             "{'metadata':{'labels':{'rbac.authorization.k8s.io/aggregate-to-view':'true'}}}",
             "application/merge-patch+json");
  EXPECT_EQ(labelled.status, 403);
  EXPECT_THAT(labelled.message(), HasSubstr("is attempting to grant RBAC permissions not currently "
                                            "held"));
  EXPECT_TRUE(server.get(admin)
                  .body["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"]
                  .is_null());
  Reply gathering = as_ana("POST", cat(kRbac, "/clusterroles"),
                           "{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'ClusterRole',"
                           "'metadata':{'name':'all'},'aggregationRule':{'clusterRoleSelectors':"
                           "[{'matchLabels':{'a':'b'}}]}}");
  EXPECT_EQ(gathering.status, 403);
  EXPECT_EQ(gathering.message(),
            R"(clusterroles.rbac.authorization.k8s.io "all" is forbidden: must have cluster-admin )"
            "privileges to use the aggregationRule");
}

TEST_F(Rights, to_write_policies_read_nothing) {
  allow(
      "[{'apiGroups':['admissionregistration.k8s.io'],'resources':['*'],"
      "'verbs':['create','patch','update']},{'apiGroups':[''],'resources':['configmaps'],"
      "'verbs':['get']}]");
  constexpr const char* kPolicies = "/apis/admissionregistration.k8s.io/v1/";
  const auto policy = [&](std::string_view kind) {
    return as_ana("POST", cat(kPolicies, "validatingadmissionpolicies"),
                  cat("{'apiVersion':'admissionregistration.k8s.io/v1','kind':"
                      "'ValidatingAdmissionPolicy','metadata':{'name':'p-",
                      to_lower(kind), "'},'spec':{'paramKind':{'apiVersion':'v1','kind':'", kind,
                      "'},'matchConstraints':{'resourceRules':[{'apiGroups':[''],'apiVersions':"
                      "['v1'],'operations':['CREATE'],'resources':['pods']}]},'validations':"
                      "[{'expression':'false','messageExpression':'string(params)'}]}}"));
  };
  const auto bound = [&](std::string_view name, std::string_view to) {
    return as_ana("POST", cat(kPolicies, "validatingadmissionpolicybindings"),
                  cat("{'apiVersion':'admissionregistration.k8s.io/v1','kind':"
                      "'ValidatingAdmissionPolicyBinding','metadata':{'name':'",
                      name, "'},'spec':{'policyName':'", to,
                      "','validationActions':['Deny'],'paramRef':{'name':'x','namespace':"
                      "'kube-system','parameterNotFoundAction':'Allow'}}}"));
  };
  Reply refused = policy("Secret");
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.message(),
              HasSubstr("spec.paramKind: Forbidden: user \"ana\" must have \"get\" permission on "
                        "all objects of the referenced paramKind (kind=Secret, apiVersion=v1)"));
  EXPECT_EQ(bound("b", "p-secret").status, 422);
  EXPECT_EQ(policy("ConfigMap").status, 201);
  EXPECT_EQ(bound("c", "p-configmap").status, 201);
}

constexpr const char* kRoles = "/apis/rbac.authorization.k8s.io/v1/clusterroles/";

/// True when a rule of the role is about the resource.
bool names(const Value& role, std::string_view resource) {
  for (const Value& rule : role["rules"].items()) {
    for (const Value& one : rule["resources"].items()) {
      if (one.as_string() == resource) return true;
    }
  }
  return false;
}

TEST(BootstrapRoles, GetWhatAnotherReleaseNeeds) {
  Options options;
  options.release = "1.30";
  TestServer api(options);
  const std::string scheduler = cat(kRoles, "system:kube-scheduler");
  const std::string left_alone = cat(kRoles, "system:controller:resource-claim-controller");
  ASSERT_FALSE(names(api.get(scheduler).body, "deviceclasses"));
  ASSERT_EQ(api.patch(left_alone, "merge",
                      "{'metadata':{'annotations':{"
                      "'rbac.authorization.kubernetes.io/autoupdate':'false'}}}")
                .status,
            200);
  const Value before = api.get(left_alone).body;

  api.options.release = "1.34";
  api.restart();

  const Value after = api.get(scheduler).body;
  EXPECT_TRUE(names(after, "deviceclasses"));
  EXPECT_TRUE(names(after, "podschedulingcontexts")) << "nothing is taken away";
  EXPECT_EQ(api.get(left_alone).body, before);

  api.restart();
  EXPECT_EQ(api.get(scheduler).body, after) << "nothing is added twice";
}

TEST(Tokens, are_good_where_the_issuer_is_called_as_the_old_one) {
  Options options;
  options.issuer = "kubernetes/serviceaccount";
  options.account_key_pem = *net::make_private_key();
  TestServer server(options);
  server.add_account("default", "bot");
  const Reply made = server.post(
      "/api/v1/namespaces/default/serviceaccounts/bot/token",
      from_text("{'apiVersion':'authentication.k8s.io/v1','kind':'TokenRequest','spec':{}}"));
  ASSERT_EQ(made.status, 201) << made.text;

  const Reply review = server.post(
      "/apis/authentication.k8s.io/v1/tokenreviews",
      from_text(cat("{'apiVersion':'authentication.k8s.io/v1','kind':'TokenReview','spec':"
                    "{'token':'",
                    made.body["status"]["token"].as_string(), "'}}")));

  EXPECT_EQ(review.body["status"]["user"]["username"].as_string(),
            "system:serviceaccount:default:bot")
      << review.text;
}

}  // namespace
}  // namespace dibs::server
