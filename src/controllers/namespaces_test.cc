#include "controllers/namespaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using test::kAccounts;
using test::kConfigMaps;
using test::TestCluster;
using testing::ElementsAre;
using testing::IsEmpty;

const Value& condition(const Value& object, std::string_view type) {
  return find_condition(object, type);
}

TEST(NamespaceConditions, name_what_is_left) {
  NamespaceContents contents;
  contents.remaining = {{"resourceclaims.resource.k8s.io", 1}, {"configmaps.", 2}};
  contents.finalizers = {{"example.com/keep", 1}};
  const Value object = with_conditions(Value::object(), contents, Time::from_seconds(0));
  ASSERT_EQ(object["status"]["conditions"].size(), 5U);
  EXPECT_EQ(condition(object, "NamespaceContentRemaining")["message"].str(),
            "Some resources are remaining: configmaps. has 2 resource instances, "
            "resourceclaims.resource.k8s.io has 1 resource instances");
  EXPECT_EQ(condition(object, "NamespaceFinalizersRemaining")["message"].str(),
            "Some content in the namespace has finalizers remaining: example.com/keep in 1 "
            "resource instances");
  EXPECT_EQ(condition(object, "NamespaceDeletionContentFailure")["status"].str(), "False");
  // Later, nothing is left: only what changed gets a new time.
  const Value later = with_conditions(object, {}, Time::from_seconds(60));
  EXPECT_EQ(condition(later, "NamespaceContentRemaining")["reason"].str(), "ContentRemoved");
  EXPECT_EQ(condition(later, "NamespaceContentRemaining")["lastTransitionTime"].str(),
            "1970-01-01T00:01:00Z");
  EXPECT_EQ(condition(later, "NamespaceDeletionContentFailure")["lastTransitionTime"].str(),
            "1970-01-01T00:00:00Z");
}

TEST(Namespaces, an_empty_one_goes_at_once) {
  TestCluster cluster;
  cluster.add_namespace("a");
  cluster.remove(kNamespaces, "", "a");
  cluster.settle();
  EXPECT_TRUE(cluster.get(kNamespaces, "", "a").is_null());
}

TEST(Namespaces, takes_its_contents_along_custom_ones_too) {
  TestCluster cluster;
  cluster.add_namespace("a");
  cluster.create({"apiextensions.k8s.io", "v1", "customresourcedefinitions"}, "",
                 R"({'metadata': {'name': 'toys.example.com'}, 'spec': {'group': 'example.com',
                     'scope': 'Namespaced', 'names': {'plural': 'toys', 'kind': 'Toy'},
                     'versions': [{'name': 'v1', 'served': true, 'storage': true,
                       'schema': {'openAPIV3Schema': {'type': 'object'}}}]}})");
  cluster.settle();
  const Gvr toys = {"example.com", "v1", "toys"};
  cluster.create(toys, "a",
                 R"({'apiVersion': 'example.com/v1', 'kind': 'Toy', 'metadata': {'name': 't'}})");
  cluster.create(kConfigMaps, "a", R"({'metadata': {'name': 'c'}})");
  cluster.remove(kNamespaces, "", "a");
  cluster.settle();
  EXPECT_TRUE(cluster.get(kNamespaces, "", "a").is_null());
  EXPECT_THAT(cluster.names(toys, ""), IsEmpty());
}

TEST(Namespaces, waits_for_finalizers_and_says_so) {
  TestCluster cluster;
  cluster.add_namespace("a");
  cluster.create(kConfigMaps, "a",
                 R"({'metadata': {'name': 'c', 'finalizers': ['example.com/keep']}})");
  cluster.remove(kNamespaces, "", "a");
  cluster.settle();
  const Value object = cluster.get(kNamespaces, "", "a");
  EXPECT_EQ(condition(object, "NamespaceFinalizersRemaining")["status"].str(), "True");
  EXPECT_EQ(condition(object, "NamespaceContentRemaining")["message"].str(),
            "Some resources are remaining: configmaps. has 1 resource instances");
  cluster.patch(kConfigMaps, "a", "c", R"({'metadata': {'finalizers': []}})");
  cluster.settle(std::chrono::seconds(6));
  EXPECT_TRUE(cluster.get(kNamespaces, "", "a").is_null());
}

TEST(Namespaces, pods_go_before_all_else) {
  TestCluster cluster;
  cluster.add_namespace("a");
  cluster.create(kPods, "a",
                 R"({'metadata': {'name': 'p', 'finalizers': ['example.com/keep']},
                     'spec': {'containers': [{'name': 'c', 'image': 'x'}]}})");
  cluster.create(kConfigMaps, "a", R"({'metadata': {'name': 'c'}})");
  cluster.remove(kNamespaces, "", "a");
  cluster.settle();
  EXPECT_THAT(cluster.names(kConfigMaps, "a"), ElementsAre("c", "kube-root-ca.crt"));
  cluster.patch(kPods, "a", "p", R"({'metadata': {'finalizers': []}})");
  cluster.settle(std::chrono::seconds(6));
  EXPECT_TRUE(cluster.get(kNamespaces, "", "a").is_null());
}

TEST(ServiceAccounts, come_with_the_namespace_and_come_back) {
  TestCluster cluster;
  cluster.add_namespace("a");
  EXPECT_THAT(cluster.names(kAccounts, "a"), ElementsAre("default"));
  EXPECT_THAT(cluster.names(kConfigMaps, "a"), ElementsAre("kube-root-ca.crt"));
  const Value before = cluster.get(kAccounts, "a", "default");
  cluster.remove(kAccounts, "a", "default");
  cluster.remove(kConfigMaps, "a", "kube-root-ca.crt");
  cluster.settle();
  const Value after = cluster.get(kAccounts, "a", "default");
  EXPECT_NE(uid_of(before), uid_of(after));
  EXPECT_EQ(cluster.get(kConfigMaps, "a", "kube-root-ca.crt")["data"]["ca.crt"].str(), "CA");
  cluster.patch(kConfigMaps, "a", "kube-root-ca.crt", R"({'data': {'ca.crt': 'wrong'}})");
  cluster.settle();
  EXPECT_EQ(cluster.get(kConfigMaps, "a", "kube-root-ca.crt")["data"]["ca.crt"].str(), "CA");
}

}  // namespace
}  // namespace dibs::controllers
