#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/owner_graph.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using test::kConfigMaps;
using test::TestCluster;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

OwnedObject object(const std::string& uid, std::vector<Owner> owners = {}) {
  OwnedObject out;
  out.kind = "ConfigMap";
  out.name = uid;
  out.uid = uid;
  out.owners = std::move(owners);
  return out;
}

Owner owner(const std::string& uid, bool blocks = false) {
  return {"v1", "ConfigMap", uid, uid, blocks};
}

TEST(OwnerGraph, looks_at_an_object_whose_owner_is_unknown) {
  OwnerGraph graph;
  EXPECT_THAT(graph.put(object("child", {owner("boss")})).check, ElementsAre("child"));
  EXPECT_THAT(graph.put(object("boss")).check, IsEmpty());
  EXPECT_THAT(graph.put(object("second", {owner("boss")})).check, IsEmpty());
  EXPECT_THAT(graph.remove("boss").check, UnorderedElementsAre("child", "second"));
}

TEST(OwnerGraph, a_foreground_deletion_concerns_all_dependents) {
  OwnerGraph graph;
  graph.put(object("boss"));
  graph.put(object("blocking", {owner("boss", true)}));
  graph.put(object("free", {owner("boss")}));
  OwnedObject boss = object("boss");
  boss.deleting = true;
  boss.foreground = true;
  EXPECT_THAT(graph.put(boss).check, UnorderedElementsAre("blocking", "free", "boss"));
  ASSERT_EQ(graph.blocking("boss").size(), 1U);
  EXPECT_EQ(graph.blocking("boss")[0].uid, "blocking");
  // No longer in the way.
  EXPECT_THAT(graph.put(object("blocking", {})).check, ElementsAre("boss"));
}

class Collector : public testing::Test {
 protected:
  Value make(const std::string& name, const std::vector<Value>& owners = {}, bool blocks = false,
             bool held = false) {
    Value references = Value::array();
    for (const Value& boss : owners) {
      references.push(Value::object({{"apiVersion", "v1"},
                                     {"kind", "ConfigMap"},
                                     {"name", boss["metadata"]["name"]},
                                     {"uid", boss["metadata"]["uid"]},
                                     {"blockOwnerDeletion", blocks}}));
    }
    Value metadata = Value::object({{"name", name}, {"ownerReferences", references}});
    if (held) metadata.set("finalizers", Value::array({"example.com/held"}));
    return cluster.create_object(kConfigMaps, "default", Value::object({{"metadata", metadata}}));
  }
  bool there(const std::string& name) {
    return !cluster.get(kConfigMaps, "default", name).is_null();
  }

  TestCluster cluster;
};

TEST_F(Collector, background_takes_dependents_after_the_owner) {
  const Value boss = make("boss");
  const Value child = make("child", {boss});
  make("grandchild", {child});
  cluster.settle();
  cluster.remove(kConfigMaps, "default", "boss");
  cluster.settle();
  EXPECT_FALSE(there("child"));
  EXPECT_FALSE(there("grandchild"));
}

TEST_F(Collector, an_object_with_another_owner_stays_and_forgets_the_first) {
  const Value one = make("one");
  const Value two = make("two");
  make("child", {one, two});
  cluster.settle();
  cluster.remove(kConfigMaps, "default", "one");
  cluster.settle();
  EXPECT_TRUE(there("child"));
  cluster.remove(kConfigMaps, "default", "two");
  cluster.settle();
  EXPECT_FALSE(there("child"));
}

TEST_F(Collector, foreground_keeps_the_owner_until_dependents_are_gone) {
  const Value boss = make("boss");
  make("held", {boss}, true, true);
  make("free", {boss}, true);
  cluster.settle();
  cluster.remove(kConfigMaps, "default", "boss", "Foreground");
  cluster.settle();
  EXPECT_TRUE(there("boss"));
  EXPECT_TRUE(is_deleting(cluster.get(kConfigMaps, "default", "held")));
  EXPECT_FALSE(there("free"));
  cluster.patch(kConfigMaps, "default", "held", R"({'metadata': {'finalizers': []}})");
  cluster.settle();
  EXPECT_FALSE(there("held"));
  EXPECT_FALSE(there("boss"));
}

TEST_F(Collector, orphan_leaves_dependents_without_the_owner) {
  const Value boss = make("boss");
  make("child", {boss});
  cluster.settle();
  cluster.remove(kConfigMaps, "default", "boss", "Orphan");
  cluster.settle();
  EXPECT_FALSE(there("boss"));
  const Value child = cluster.get(kConfigMaps, "default", "child");
  EXPECT_FALSE(child.is_null());
  EXPECT_TRUE(child["metadata"]["ownerReferences"].is_null());
}

TEST_F(Collector, an_owner_that_never_was_or_is_another_object) {
  Value ghost = make("ghost");
  ghost.mut("metadata").set("uid", "00000000-0000-0000-0000-000000000001");
  make("lost", {ghost});
  cluster.settle();
  EXPECT_FALSE(there("lost"));
  EXPECT_TRUE(there("ghost"));
}

TEST_F(Collector, an_owner_of_a_kind_nobody_serves_is_left_alone) {
  cluster.create(
      kConfigMaps, "default",
      R"({'metadata': {'name': 'child', 'ownerReferences': [{'apiVersion': 'no.example.com/v1',
                     'kind': 'Nothing', 'name': 'x', 'uid': 'u'}]}})");
  cluster.settle();
  EXPECT_TRUE(there("child"));
}

TEST_F(Collector, an_owner_in_another_namespace_does_not_count) {
  cluster.add_namespace("other");
  const Value boss = cluster.create(kConfigMaps, "other", R"({'metadata': {'name': 'boss'}})");
  make("child", {boss});
  cluster.settle();
  EXPECT_FALSE(there("child"));
}

TEST_F(Collector, custom_resources_own_and_are_owned) {
  cluster.create({"apiextensions.k8s.io", "v1", "customresourcedefinitions"}, "",
                 R"({'metadata': {'name': 'toys.example.com'}, 'spec': {'group': 'example.com',
                     'scope': 'Namespaced', 'names': {'plural': 'toys', 'kind': 'Toy'},
                     'versions': [{'name': 'v1', 'served': true, 'storage': true,
                       'schema': {'openAPIV3Schema': {'type': 'object'}}},
                       {'name': 'v1beta1', 'served': true, 'storage': false,
                       'schema': {'openAPIV3Schema': {'type': 'object'}}}]}})");
  cluster.settle();
  const Gvr toys = {"example.com", "v1", "toys"};
  const Value toy = cluster.create(
      toys, "default",
      R"({'apiVersion': 'example.com/v1', 'kind': 'Toy', 'metadata': {'name': 't'}})");
  // Named by the other version: the same owner.
  cluster.create(kConfigMaps, "default",
                 cat("{'metadata': {'name': 'child', 'ownerReferences': [{'apiVersion': "
                     "'example.com/v1beta1', 'kind': 'Toy', 'name': 't', 'uid': '",
                     uid_of(toy), "'}]}}"));
  cluster.settle();
  EXPECT_TRUE(there("child"));
  cluster.remove(toys, "default", "t");
  cluster.settle();
  EXPECT_FALSE(there("child"));
}

}  // namespace
}  // namespace dibs::controllers
