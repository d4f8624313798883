#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/strings.h"
#include "json/parse.h"
#include "server/auth/authorizer.h"
#include "server/auth/bootstrap_roles.h"
#include "server/auth/escalation.h"
#include "server/auth/node_restriction.h"
#include "server/auth/tokens.h"

namespace dibs::server::auth {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Value parsed(std::string_view text) {
  Result<Value> value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

RequestAttributes wants(UserInfo user, std::string verb, std::string resource,
                        std::string space = "", std::string name = "") {
  RequestAttributes what;
  what.user = std::move(user);
  what.verb = std::move(verb);
  what.resource = std::move(resource);
  what.name_space = std::move(space);
  what.name = std::move(name);
  return what;
}

UserInfo user(std::string name, std::vector<std::string> groups = {}) {
  return {std::move(name), "", std::move(groups), {}};
}

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

// --- nodes ---

UserInfo node(const std::string& name) { return user(cat("system:node:", name), {"system:nodes"}); }

Decision ask(const NodeAuthorizer& nodes, const std::string& name, const char* verb,
             const char* resource, const char* space, const char* object, const char* group = "") {
  RequestAttributes what = wants(node(name), verb, resource, space, object);
  what.group = group;
  return nodes.authorize(what);
}

TEST(NodeAuthorizer, follows_claims_and_volumes_of_pods) {
  NodeAuthorizer nodes;
  nodes.upsert(
      parsed(R"({"kind":"Pod","metadata":{"name":"p","namespace":"n"},"spec":{"nodeName":"n1",
    "resourceClaims":[{"name":"a","resourceClaimTemplateName":"t"},{"name":"b","resourceClaimName":"direct"}],
    "volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}},{"name":"e","ephemeral":{}}]},
    "status":{"resourceClaimStatuses":[{"name":"a","resourceClaimName":"p-a-1"}],
              "extendedResourceClaimStatus":{"resourceClaimName":"p-ext"}}})"));
  nodes.upsert(parsed(R"({"kind":"PersistentVolume","metadata":{"name":"pv"},"spec":{"claimRef":
    {"namespace":"n","name":"c"},"csi":{"nodeStageSecretRef":{"name":"s","namespace":"x"},
    "controllerPublishSecretRef":{"name":"k","namespace":"x"}}}})"));

  for (const char* claim : {"p-a-1", "direct", "p-ext"}) {
    EXPECT_TRUE(ask(nodes, "n1", "get", "resourceclaims", "n", claim, "resource.k8s.io").allowed);
    EXPECT_FALSE(ask(nodes, "n2", "get", "resourceclaims", "n", claim, "resource.k8s.io").allowed);
  }
  EXPECT_TRUE(ask(nodes, "n1", "get", "persistentvolumeclaims", "n", "p-e").allowed);
  EXPECT_TRUE(ask(nodes, "n1", "get", "persistentvolumes", "", "pv").allowed);
  EXPECT_TRUE(ask(nodes, "n1", "get", "secrets", "x", "s").allowed);
  EXPECT_FALSE(ask(nodes, "n1", "get", "secrets", "x", "k").allowed);
  EXPECT_FALSE(ask(nodes, "n2", "get", "persistentvolumes", "", "pv").allowed);

  nodes.remove("Pod", "n", "p");
  EXPECT_FALSE(ask(nodes, "n1", "get", "persistentvolumes", "", "pv").allowed);
  EXPECT_FALSE(ask(nodes, "n1", "get", "secrets", "x", "s").allowed);
}

TEST(NodeAuthorizer, lets_a_node_see_its_own_slices_of_the_classic_model) {
  NodeAuthorizer nodes;
  nodes.upsert(parsed(R"({"apiVersion":"resource.k8s.io/v1alpha2","kind":"ResourceSlice",
    "metadata":{"name":"s"},"nodeName":"n1","driverName":"d"})"));
  for (const char* verb : {"get", "update", "delete"}) {
    EXPECT_TRUE(ask(nodes, "n1", verb, "resourceslices", "", "s", "resource.k8s.io").allowed);
    EXPECT_FALSE(ask(nodes, "n2", verb, "resourceslices", "", "s", "resource.k8s.io").allowed);
  }
  RequestAttributes list = wants(node("n1"), "list", "resourceslices", "", "");
  list.group = "resource.k8s.io";
  list.version = "v1alpha2";
  list.field_selector = "nodeName=n1";
  EXPECT_TRUE(nodes.authorize(list).allowed);
  list.field_selector = "nodeName=n2";
  EXPECT_FALSE(nodes.authorize(list).allowed);
  // Another version's label selects nothing here.
  list.field_selector = "spec.nodeName=n1";
  EXPECT_FALSE(nodes.authorize(list).allowed);
}

TEST(NodeAuthorizer, keeps_what_another_pod_still_needs) {
  NodeAuthorizer nodes;
  auto pod = [](const char* name) {
    Value object = parsed(R"({"kind":"Pod","metadata":{"namespace":"n"},"spec":{"nodeName":"n1",
      "containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"s"}}}]}]}})");
    object.mut("metadata").set("name", name);
    return object;
  };
  nodes.upsert(pod("a"));
  nodes.upsert(pod("b"));
  nodes.upsert(pod("b"));

  nodes.remove("Pod", "n", "a");
  EXPECT_TRUE(ask(nodes, "n1", "get", "secrets", "n", "s").allowed);
  nodes.remove("Pod", "n", "b");
  EXPECT_FALSE(ask(nodes, "n1", "get", "secrets", "n", "s").allowed);
}

TEST(NodeAuthorizer, tells_apart_the_nodes_that_need_one_object) {
  NodeAuthorizer nodes;
  auto pod = [](const std::string& name, const std::string& node) {
    Value object = parsed(R"({"kind":"Pod","metadata":{"namespace":"n"},"spec":{
      "containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"s"}}}]}]}})");
    object.mut("metadata").set("name", name);
    object.mut("spec").set("nodeName", node);
    return object;
  };
  auto allowed = [&] {
    std::string out;
    for (const char* name : {"n1", "n2", "n3"}) {
      if (ask(nodes, name, "get", "secrets", "n", "s").allowed) out += name;
    }
    return out;
  };
  nodes.upsert(pod("a", "n1"));
  nodes.upsert(pod("b", "n2"));
  nodes.upsert(pod("c", "n2"));
  nodes.upsert(pod("d", "n3"));
  EXPECT_EQ(allowed(), "n1n2n3");
  nodes.remove("Pod", "n", "a");
  EXPECT_EQ(allowed(), "n2n3");
  nodes.remove("Pod", "n", "b");
  EXPECT_EQ(allowed(), "n2n3");
  nodes.upsert(pod("c", "n1"));
  EXPECT_EQ(allowed(), "n1n3");
  nodes.remove("Pod", "n", "d");
  nodes.remove("Pod", "n", "c");
  EXPECT_EQ(allowed(), "");
}

TEST(NodeAuthorizer, opens_nothing_to_mirror_pods) {
  NodeAuthorizer nodes;
  nodes.upsert(parsed(R"({"kind":"Pod","metadata":{"name":"p","namespace":"n","annotations":
    {"kubernetes.io/config.mirror":"h"}},"spec":{"nodeName":"n1","volumes":[{"secret":{"secretName":"s"}}]}})"));

  EXPECT_TRUE(ask(nodes, "n1", "get", "pods", "n", "p").allowed);
  EXPECT_FALSE(ask(nodes, "n1", "get", "secrets", "n", "s").allowed);
}

TEST(NodeRestriction, lets_claim_statuses_alone) {
  Value old = parsed(R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"},"status":{}})");
  Value pod = old;
  pod.mut("status").set("resourceClaimStatuses",
                        parsed(R"([{"name":"a","resourceClaimName":"b"}])"));
  UserInfo n1 = node("n1");

  Result<> result =
      check_node_write({n1, NodeOperation::update, "", "pods", "status", "n", "p", &pod, &old}, {});

  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message(),
            R"(pods "p" is forbidden: node "n1" cannot update resource claim statues)");
}

TEST(NodeRestriction, lets_slices_of_others_alone) {
  Value own = parsed(R"({"spec":{"nodeName":"n1"}})");
  Value other = parsed(R"({"spec":{"nodeName":"n2"}})");
  UserInfo n1 = node("n1");
  auto write = [&](NodeOperation operation, const Value* object, const Value* old) {
    return check_node_write(
        {n1, operation, "resource.k8s.io", "resourceslices", "", "", "s", object, old}, {});
  };

  EXPECT_TRUE(write(NodeOperation::create, &own, nullptr).ok());
  EXPECT_FALSE(write(NodeOperation::create, &other, nullptr).ok());
  // As release 1.30 has them.
  Value classic = parsed(R"({"nodeName":"n1","driverName":"d"})");
  Value classic_other = parsed(R"({"nodeName":"n2","driverName":"d","spec":{"nodeName":"n1"}})");
  EXPECT_TRUE(write(NodeOperation::create, &classic, nullptr).ok());
  EXPECT_FALSE(write(NodeOperation::create, &classic_other, nullptr).ok());
  EXPECT_FALSE(write(NodeOperation::remove, nullptr, &classic_other).ok());
  EXPECT_TRUE(write(NodeOperation::remove, nullptr, &own).ok());
  Result<> removed = write(NodeOperation::remove, nullptr, &other);
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(
      removed.error().message(),
      R"(resourceslices.resource.k8s.io "s" is forbidden: can only delete ResourceSlice with )"
      "the same NodeName as the requesting node");
}

// --- tokens ---

struct World {
  std::map<std::string, Value> objects;
  TokenLookup lookup() const {
    return [this](std::string_view resource, std::string_view space,
                  std::string_view name) -> Result<Value> {
      auto found = objects.find(cat(resource, "/", space, "/", name));
      if (found == objects.end()) {
        return Error::not_found(cat(resource, " ", quoted(name), " not found"));
      }
      return found->second;
    };
  }
};

World small_world() {
  World world;
  world.objects["serviceaccounts/n/bot"] =
      parsed(R"({"metadata":{"name":"bot","namespace":"n","uid":"sa-1"}})");
  world.objects["pods/n/p"] = parsed(R"({"metadata":{"name":"p","namespace":"n","uid":"pod-1"},
    "spec":{"serviceAccountName":"bot","nodeName":"n1"}})");
  world.objects["nodes//n1"] = parsed(R"({"metadata":{"name":"n1","uid":"node-1"}})");
  return world;
}

TokenOptions token_options() {
  TokenOptions options;
  options.issuer = "https://kubernetes.default.svc";
  return options;
}

TEST(Tokens, bound_to_a_pod_say_where_it_runs) {
  World world = small_world();
  Time now = Time::from_seconds(1'000'000);
  Result<PreparedToken> token = prepare_token(
      world.objects["serviceaccounts/n/bot"],
      parsed(
          R"({"spec":{"expirationSeconds":3607,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p"}}})"),
      token_options(), world.lookup(), now, "id-1");
  ASSERT_TRUE(token.ok()) << token.error().message();
  EXPECT_EQ(token->claims["exp"].as_int(), 1'000'000 + 365 * 24 * 3600);
  EXPECT_EQ(token->claims["kubernetes.io"]["warnafter"].as_int(), 1'000'000 + 3607);
  EXPECT_TRUE(token->answer["spec"].contains("boundObjectRef"));

  Result<VerifiedToken> verified =
      verify_claims(token->claims, {}, token_options(), world.lookup(), now);

  ASSERT_TRUE(verified.ok()) << verified.error().message();
  EXPECT_EQ(verified->user.name, "system:serviceaccount:n:bot");
  EXPECT_EQ(verified->user.uid, "sa-1");
  EXPECT_THAT(verified->user.groups,
              ElementsAre("system:serviceaccounts", "system:serviceaccounts:n"));
  EXPECT_THAT(verified->user.extra["authentication.kubernetes.io/node-name"], ElementsAre("n1"));
  EXPECT_THAT(verified->user.extra["authentication.kubernetes.io/pod-uid"], ElementsAre("pod-1"));
  EXPECT_THAT(verified->user.extra["authentication.kubernetes.io/credential-id"],
              ElementsAre("JTI=id-1"));
}

TEST(Tokens, end_with_what_they_are_bound_to) {
  World world = small_world();
  Time now = Time::from_seconds(1'000'000);
  Result<PreparedToken> token = prepare_token(
      world.objects["serviceaccounts/n/bot"],
      parsed(
          R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"pod-1"}}})"),
      token_options(), world.lookup(), now, "id");
  ASSERT_TRUE(token.ok());
  auto fault = [&](Time at) {
    Result<VerifiedToken> verified =
        verify_claims(token->claims, {}, token_options(), world.lookup(), at);
    return verified.ok() ? std::string("fine") : verified.error().message();
  };

  EXPECT_EQ(fault(now), "fine");
  EXPECT_EQ(fault(Time::from_seconds(1'000'000 + 3600 + 61)), "service account token has expired");
  world.objects["pods/n/p"].mut("metadata").set("uid", "pod-2");
  EXPECT_EQ(fault(now), "pod UID (pod-2) does not match service account pod ref claim (pod-1)");
  world.objects.erase("pods/n/p");
  EXPECT_EQ(fault(now), "service account token has been invalidated");
  world.objects.erase("serviceaccounts/n/bot");
  EXPECT_EQ(fault(now), "serviceaccounts \"bot\" not found");
}

TEST(Tokens, refuse_requests_in_the_words_of_the_api) {
  World world = small_world();
  world.objects["pods/n/q"] = parsed(
      R"({"metadata":{"name":"q","namespace":"n","uid":"u"},"spec":{"serviceAccountName":"x"}})");
  struct Case {
    const char* request;
    int code;
    const char* message;
  };
  for (const Case& c : std::initializer_list<Case>{
           {R"({"spec":{"expirationSeconds":599}})", 422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid "
            "value: "
            "599: may not specify a duration less than 10 minutes"},
           {R"({"metadata":{"name":"other"},"spec":{}})", 422,
            "TokenRequest.authentication.k8s.io \"bot\" is invalid: metadata.name: Invalid value: "
            "\"other\": must match the service account name if specified"},
           {R"({"spec":{"boundObjectRef":{"kind":"ConfigMap","apiVersion":"v1","name":"c"}}})", 400,
            "cannot bind token to object of type /v1, Kind=ConfigMap"},
           {R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"q"}}})", 400,
            "cannot bind token for serviceaccount \"bot\" to pod running with different "
            "serviceaccount name."},
           {R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"nope"}}})", 404,
            "pods \"nope\" not found"},
           {R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"z"}}})",
            409,
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (z) "
            "does "
            "not match the UID in record. The object might have been deleted and then "
            "recreated"}}) {
    Result<PreparedToken> token =
        prepare_token(world.objects["serviceaccounts/n/bot"], parsed(c.request), token_options(),
                      world.lookup(), Time{}, "id");
    ASSERT_FALSE(token.ok()) << c.request;
    EXPECT_EQ(token.error().message(), c.message);
    EXPECT_EQ(http_status(token.error().code()), c.code);
  }
}

TEST(Tokens, are_reviewed_for_an_audience) {
  World world = small_world();
  Result<PreparedToken> token =
      prepare_token(world.objects["serviceaccounts/n/bot"],
                    parsed(R"({"spec":{"audiences":["https://kubernetes.default.svc","vault"]}})"),
                    token_options(), world.lookup(), Time{}, "id");
  ASSERT_TRUE(token.ok());
  auto review = [&](std::vector<std::string> audiences) {
    return token_review_status(
        verify_claims(token->claims, audiences, token_options(), world.lookup(), Time{}));
  };

  EXPECT_EQ(review({})["audiences"], parsed(R"(["https://kubernetes.default.svc"])"));
  EXPECT_EQ(review({"vault", "x"})["audiences"], parsed(R"(["vault"])"));
  EXPECT_EQ(
      review({"vault"})["user"]["groups"],
      parsed(R"(["system:serviceaccounts","system:serviceaccounts:n","system:authenticated"])"));
  EXPECT_EQ(
      review({"x"}),
      parsed(
          R"({"user":{},"error":"[invalid bearer token, token audiences [\"https://kubernetes.default.svc\" \"vault\"] is invalid for the target audiences [\"x\"]]"})"));
  EXPECT_EQ(token_review_status(Error(Code::unauthorized, "")),
            parsed(R"({"user":{},"error":"invalid bearer token"})"));
}

TEST(Tokens, are_read_from_a_file) {
  auto tokens = parse_static_tokens("t1,ana,u1,\"dev,ops\"\n\nt2,bob,u2\n");
  ASSERT_TRUE(tokens.ok());
  EXPECT_THAT(tokens->at("t1").groups, ElementsAre("dev", "ops"));
  EXPECT_EQ(tokens->at("t2").uid, "u2");
  EXPECT_FALSE(parse_static_tokens("a,b").ok());
}

}  // namespace
}  // namespace dibs::server::auth
