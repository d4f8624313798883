#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/strings.h"
#include "server/auth/auth_for_test.h"
#include "server/auth/bootstrap_roles.h"
#include "server/auth/escalation.h"

namespace dibs::server::auth {
namespace {

using test::parsed;
using test::user;
using test::wants;
using testing::ElementsAre;
using testing::HasSubstr;

Value role(std::string_view kind, std::string_view space, std::string_view name,
           std::string_view rules) {
  Value object = Value::object({{"kind", kind}});
  object.mut("metadata").set("name", name);
  if (!space.empty()) object.mut("metadata").set("namespace", space);
  object.set("rules", parsed(rules));
  return object;
}

Value binding(std::string_view space, std::string_view name, std::string_view role_kind,
              std::string_view role_name, std::string_view subjects) {
  Value object = Value::object({{"kind", space.empty() ? "ClusterRoleBinding" : "RoleBinding"}});
  object.mut("metadata").set("name", name);
  if (!space.empty()) object.mut("metadata").set("namespace", space);
  object.set("roleRef", Value::object({{"kind", role_kind}, {"name", role_name}}));
  object.set("subjects", parsed(subjects));
  return object;
}

// --- rules ---

TEST(PolicyRule, matches_as_the_api_does) {
  struct Case {
    const char* rule;
    const char* verb;
    const char* resource;
    const char* subresource;
    const char* name;
    bool matches;
  };
  for (const Case& c : std::initializer_list<Case>{
           {R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})", "get", "pods", "", "",
            true},
           {R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})", "get", "pods", "log", "",
            false},
           {R"({"verbs":["*"],"apiGroups":["*"],"resources":["*"]})", "x", "pods", "log", "n",
            true},
           {R"({"verbs":["get"],"apiGroups":["apps"],"resources":["pods"]})", "get", "pods", "", "",
            false},
           {R"({"verbs":["get"],"apiGroups":[""],"resources":["*/log"]})", "get", "pods", "log", "",
            true},
           {R"({"verbs":["get"],"apiGroups":[""],"resources":["*/log"]})", "get", "log", "", "",
            false},
           {R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]})",
            "get", "pods", "", "a", true},
           {R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]})",
            "get", "pods", "", "", false}}) {
    RequestAttributes what = wants({}, c.verb, c.resource, "", c.name);
    what.subresource = c.subresource;
    EXPECT_EQ(matches(rule_of(parsed(c.rule)), what), c.matches) << c.rule << c.subresource;
  }
}

TEST(PolicyRule, matches_paths_by_prefix) {
  PolicyRule rule = rule_of(parsed(R"({"verbs":["get"],"nonResourceURLs":["/api/*","/healthz"]})"));
  RequestAttributes what;
  what.is_resource = false;
  what.verb = "get";
  for (auto [path, is_matched] :
       {std::pair("/api/v1", true), {"/api", false}, {"/healthz", true}, {"/healthz/x", false}}) {
    what.path = path;
    EXPECT_EQ(matches(rule, what), is_matched) << path;
  }
}

TEST(PolicyRule, tells_missing_rights_by_verb) {
  auto held =
      std::vector{rule_of(parsed(R"({"verbs":["get"],"apiGroups":[""],"resources":["a"]})"))};
  auto asked = std::vector{
      rule_of(parsed(R"({"verbs":["get","list"],"apiGroups":[""],"resources":["a","b"]})"))};

  std::vector<std::string> texts;
  for (const PolicyRule& rule : missing_rights(held, asked)) texts.push_back(rule_text(rule));

  EXPECT_THAT(texts, ElementsAre(R"({APIGroups:[""], Resources:["a"], Verbs:["list"]})",
                                 R"({APIGroups:[""], Resources:["b"], Verbs:["get" "list"]})"));
}

// --- roles ---

TEST(Rbac, forgets_what_is_removed_and_replaced) {
  Rbac rbac;
  rbac.upsert(role("ClusterRole", "", "reader",
                   R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])"));
  rbac.upsert(binding("", "b", "ClusterRole", "reader", R"([{"kind":"User","name":"ana"}])"));
  RequestAttributes what = wants(user("ana"), "get", "pods", "n");
  EXPECT_EQ(rbac.authorize(what).reason,
            R"(RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to User "ana")");

  rbac.upsert(binding("", "b", "ClusterRole", "reader", R"([{"kind":"User","name":"bob"}])"));
  EXPECT_FALSE(rbac.authorize(what).allowed);
  EXPECT_TRUE(rbac.authorize(wants(user("bob"), "get", "pods")).allowed);

  rbac.remove("ClusterRole", "", "reader");
  Decision gone = rbac.authorize(wants(user("bob"), "get", "pods"));
  EXPECT_FALSE(gone.allowed);
  EXPECT_EQ(gone.reason, R"(RBAC: clusterrole.rbac.authorization.k8s.io "reader" not found)");

  rbac.remove("ClusterRoleBinding", "", "b");
  EXPECT_EQ(rbac.authorize(wants(user("bob"), "get", "pods")).reason, "");
}

TEST(Rbac, remembers_only_what_holds_for_every_name_and_namespace) {
  Rbac rbac;
  rbac.upsert(role("ClusterRole", "", "one", R"([{"verbs":["get"],"apiGroups":[""],
      "resources":["secrets"],"resourceNames":["mine"]}])"));
  rbac.upsert(role("ClusterRole", "", "all", R"([{"verbs":["get"],"apiGroups":[""],
      "resources":["pods"]}])"));
  rbac.upsert(binding("", "one", "ClusterRole", "one", R"([{"kind":"User","name":"ann"}])"));
  rbac.upsert(binding("", "all", "ClusterRole", "all", R"([{"kind":"Group","name":"g"}])"));
  rbac.upsert(binding("here", "all", "ClusterRole", "all", R"([{"kind":"User","name":"bob"}])"));
  // Each twice: the second time out of memory, if at all.
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(rbac.authorize(wants(user("ann"), "get", "secrets", "x", "mine")).allowed);
    EXPECT_FALSE(rbac.authorize(wants(user("ann"), "get", "secrets", "x", "yours")).allowed);
    EXPECT_TRUE(rbac.authorize(wants(user("ann", {"g"}), "get", "pods", "x", "a")).allowed);
    EXPECT_TRUE(rbac.authorize(wants(user("ann", {"g"}), "get", "pods", "y", "b")).allowed);
    EXPECT_FALSE(rbac.authorize(wants(user("ann"), "get", "pods", "x", "a")).allowed);
    EXPECT_FALSE(rbac.authorize(wants(user("ann", {"g"}), "list", "pods", "x")).allowed);
    EXPECT_TRUE(rbac.authorize(wants(user("bob"), "get", "pods", "here", "a")).allowed);
    EXPECT_FALSE(rbac.authorize(wants(user("bob"), "get", "pods", "there", "a")).allowed);
  }
  // Parts that run into each other are other questions.
  EXPECT_FALSE(rbac.authorize(wants(user("ann", {"g1:x"}), "get", "pods", "x")).allowed);
  RequestAttributes odd = wants(user("ann", {"g"}), "get", "pods0:3:ann1:g", "x");
  EXPECT_FALSE(rbac.authorize(odd).allowed);

  rbac.remove("ClusterRoleBinding", "", "all");
  EXPECT_FALSE(rbac.authorize(wants(user("ann", {"g"}), "get", "pods", "x", "a")).allowed);
}

TEST(BootstrapRoles, of_drivers_are_for_their_own_devices) {
  Rbac rbac;
  for (const Value& object : driver_roles("dibs-driver-gpu", "gpu.example.com"))
    rbac.upsert(object);
  auto driver = user("system:serviceaccount:kube-system:dibs-driver-gpu");
  auto may = [&](std::string verb, std::string resource, std::string sub, std::string name) {
    RequestAttributes what = wants(driver, std::move(verb), std::move(resource), "", name);
    what.group = what.resource == "nodes" || what.resource == "secrets" ? "" : "resource.k8s.io";
    what.subresource = std::move(sub);
    return rbac.authorize(what).allowed;
  };
  EXPECT_TRUE(may("create", "resourceslices", "", ""));
  EXPECT_TRUE(may("update", "resourceclaims", "status", "c"));
  EXPECT_TRUE(may("associated-node:update", "resourceclaims", "driver", "gpu.example.com"));
  EXPECT_TRUE(may("get", "nodes", "", "n"));
  EXPECT_FALSE(may("associated-node:update", "resourceclaims", "driver", "net.example.com"));
  EXPECT_FALSE(may("arbitrary-node:update", "resourceclaims", "driver", "gpu.example.com"));
  EXPECT_FALSE(may("update", "resourceclaims", "binding", "c"));
  EXPECT_FALSE(may("update", "resourceclaims", "", "c"));
  EXPECT_FALSE(may("delete", "nodes", "", "n"));
  EXPECT_FALSE(may("get", "secrets", "", "s"));
}

TEST(Rbac, gives_an_account_of_the_bindings_namespace_its_rights) {
  Rbac rbac;
  rbac.upsert(
      role("Role", "n", "r", R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])"));
  rbac.upsert(binding("n", "b", "Role", "r", R"([{"kind":"ServiceAccount","name":"bot"}])"));

  Decision decision =
      rbac.authorize(wants(user("system:serviceaccount:n:bot"), "get", "pods", "n"));

  EXPECT_EQ(decision.reason,
            R"(RBAC: allowed by RoleBinding "b/n" of Role "r" to ServiceAccount "bot/n")");
  EXPECT_FALSE(
      rbac.authorize(wants(user("system:serviceaccount:n:bot"), "get", "pods", "m")).allowed);
  EXPECT_FALSE(
      rbac.authorize(wants(user("system:serviceaccount:m:bot"), "get", "pods", "n")).allowed);
}

TEST(Rbac, aggregates_roles_of_aggregated_roles) {
  Rbac rbac;
  for (const Value& object : bootstrap_roles()) rbac.upsert(object);
  rbac.upsert(binding("n", "b", "ClusterRole", "admin", R"([{"kind":"User","name":"ana"}])"));
  RequestAttributes claim = wants(user("ana"), "list", "resourceclaims", "n");
  claim.group = "resource.k8s.io";

  EXPECT_TRUE(rbac.authorize(wants(user("ana"), "list", "pods", "n")).allowed);
  EXPECT_TRUE(rbac.authorize(claim).allowed);
  EXPECT_FALSE(rbac.authorize(wants(user("ana"), "list", "nodes")).allowed);

  Value more = role("ClusterRole", "", "more",
                    R"([{"verbs":["list"],"apiGroups":["x.io"],"resources":["things"]}])");
  more.mut("metadata").mut("labels").set("rbac.authorization.k8s.io/aggregate-to-view", "true");
  rbac.upsert(more);
  RequestAttributes thing = wants(user("ana"), "list", "things", "n");
  thing.group = "x.io";
  EXPECT_TRUE(rbac.authorize(thing).allowed);
}

TEST(Rbac, may_be_asked_while_it_changes) {
  Rbac rbac;
  for (const Value& object : bootstrap_roles()) rbac.upsert(object);
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        wrong += !rbac.authorize(wants(user("system:kube-scheduler"), "list", "nodes")).allowed;
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    rbac.upsert(role("ClusterRole", "", cat("r", i % 3), "[]"));
    rbac.upsert(binding("", cat("b", i % 3), "ClusterRole", cat("r", i % 3),
                        R"([{"kind":"Group","name":"g"}])"));
    rbac.remove("ClusterRoleBinding", "", cat("b", i % 2));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

TEST(BootstrapRoles, are_whole) {
  std::map<std::string, int> kinds;
  for (const Value& object : bootstrap_roles()) {
    ++kinds[object["kind"].str()];
    EXPECT_EQ(object["metadata"]["labels"]["kubernetes.io/bootstrapping"].str(), "rbac-defaults");
    for (const Value& rule : object["rules"].items()) {
      EXPECT_FALSE(rule["verbs"].empty()) << object["metadata"]["name"].str();
      EXPECT_TRUE(rule.contains("resources") != rule.contains("nonResourceURLs"));
    }
  }
  EXPECT_GT(kinds["ClusterRole"], 60);
  EXPECT_GT(kinds["ClusterRoleBinding"], 45);
  EXPECT_GT(kinds["Role"], 5);
  EXPECT_GT(kinds["RoleBinding"], 5);
}

TEST(BootstrapRoles, speak_of_groups_that_the_server_has) {
  const auto may_write_status = [](GroupKinds groups, const char* resource) {
    Rbac rbac;
    for (const Value& object : bootstrap_roles(DeviceModels::structured, groups)) {
      rbac.upsert(object);
    }
    RequestAttributes status = wants(user("system:kube-scheduler"), "patch", resource, "n");
    status.group = "scheduling.k8s.io";
    status.subresource = "status";
    return rbac.authorize(status).allowed;
  };
  EXPECT_FALSE(may_write_status(GroupKinds::none, "podgroups"));
  EXPECT_TRUE(may_write_status(GroupKinds::pods, "podgroups"));
  EXPECT_FALSE(may_write_status(GroupKinds::pods, "compositepodgroups"));
  EXPECT_TRUE(may_write_status(GroupKinds::groups, "podgroups"));
  EXPECT_TRUE(may_write_status(GroupKinds::groups, "compositepodgroups"));
}

TEST(BootstrapRoles, let_everybody_discover) {
  Rbac rbac;
  NodeAuthorizer nodes;
  for (const Value& object : bootstrap_roles()) rbac.upsert(object);
  Authorizer authorizer(nodes, rbac);

  Value rules = authorizer.rules_for(user("ana", {std::string(kAuthenticated)}), "default");

  EXPECT_FALSE(rules["incomplete"].as_bool());
  EXPECT_GT(rules["resourceRules"].size(), 0u);
  EXPECT_GT(rules["nonResourceRules"].size(), 0u);
  RequestAttributes discovery;
  discovery.user = user("ana", {std::string(kAuthenticated)});
  discovery.is_resource = false;
  discovery.verb = "get";
  discovery.path = "/apis/apps/v1";
  EXPECT_EQ(authorizer.authorize(discovery).reason,
            R"(RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole )"
            R"("system:discovery" to Group "system:authenticated")");
}

// --- escalation ---

TEST(Escalation, of_an_aggregating_role_needs_everything) {
  Rbac rbac;
  UserInfo ana = user("ana");
  Value object = role("ClusterRole", "", "agg", "[]");
  object.set("aggregationRule", parsed(R"({"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]})"));

  Result<> result = check_role_write(rbac, {ana, "clusterroles", "", "", object, nullptr},
                                     [](const RequestAttributes&) { return Decision{}; });

  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(),
              HasSubstr("must have cluster-admin privileges to use the aggregationRule"));
}

Decision denied(const RequestAttributes&) { return {}; }

constexpr const char* kEverything = R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}])";

TEST(Escalation, by_a_label_that_aggregates_is_refused) {
  Rbac rbac;
  UserInfo ana = user("ana");
  Value old = role("ClusterRole", "", "r", kEverything);
  Value object = old;
  object.mut("metadata").mut("labels").set("rbac.authorization.k8s.io/aggregate-to-view", "true");

  Result<> result = check_role_write(rbac, {ana, "clusterroles", "", "r", object, &old}, denied);

  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("permissions not currently held"));
}

TEST(Escalation, is_asked_of_an_aggregate_whose_selectors_go) {
  Rbac rbac;
  UserInfo ana = user("ana");
  Value object = role("ClusterRole", "", "agg", "[]");
  Value old = object;
  old.set("aggregationRule", parsed(R"({"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]})"));

  EXPECT_FALSE(check_role_write(rbac, {ana, "clusterroles", "", "agg", object, &old}, denied).ok());
}

TEST(Escalation, is_not_asked_of_what_garbage_collection_changes) {
  Rbac rbac;
  UserInfo ana = user("ana");
  Value old = role("Role", "n", "r", kEverything);
  Value object = old;
  object.mut("metadata").set("finalizers", parsed(R"(["example.com/f"])"));

  EXPECT_TRUE(check_role_write(rbac, {ana, "roles", "n", "r", object, &old}, denied).ok());
}

TEST(Escalation, by_a_subject_added_to_a_binding_is_refused) {
  Rbac rbac;
  rbac.upsert(role("ClusterRole", "", "all", kEverything));
  UserInfo ana = user("ana");
  Value old = binding("n", "b", "ClusterRole", "all", R"([{"kind":"User","name":"root"}])");
  Value object = binding("n", "b", "ClusterRole", "all", R"([{"kind":"User","name":"ana"}])");

  EXPECT_FALSE(check_role_write(rbac, {ana, "rolebindings", "n", "b", object, &old}, denied).ok());
}

}  // namespace
}  // namespace dibs::server::auth
