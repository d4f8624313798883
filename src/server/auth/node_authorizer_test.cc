#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/auth/auth_for_test.h"
#include "server/auth/node_restriction.h"

namespace dibs::server::auth {
namespace {

using test::parsed;
using test::user;
using test::wants;

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

}  // namespace
}  // namespace dibs::server::auth
