#include "api/volumes/volumes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/volumes/matching.h"
#include "base/strings.h"
#include "json/test_text.h"

namespace dibs::api {
namespace {

using json::test::from_text;
using testing::ElementsAre;
using testing::IsEmpty;

Value make_volume(const std::string& name, const std::string& size,
                  const std::string& modes = "'ReadWriteOnce'", const std::string& more = "") {
  return from_text(cat("{'metadata': {'name': '", name,
                       "'}, 'status': {'phase': 'Available'}, "
                       "'spec': {'capacity': {'storage': '",
                       size, "'}, 'accessModes': [", modes, "]", more, "}}"));
}

const Value kClaim = from_text(
    "{'metadata': {'name': 'c', 'namespace': 'ns', 'uid': 'u'}, 'spec': {'accessModes': "
    "['ReadWriteOnce'], 'resources': {'requests': {'storage': '2Gi'}}}}");

std::vector<std::string> names(const std::vector<Value>& objects) {
  std::vector<std::string> out;
  for (const Value& one : objects) out.push_back(one["metadata"]["name"].str());
  return out;
}

TEST(Volumes, serve_a_claim_best_first) {
  const std::vector<Value> free = {
      make_volume("b", "5Gi"),
      make_volume("a", "5Gi"),
      make_volume("two", "3Gi", "'ReadWriteOnce', 'ReadOnlyMany'"),
      make_volume("small", "1Gi"),
      make_volume("exact", "2048Mi"),
      make_volume("other", "9Gi", "'ReadOnlyMany'"),
      make_volume("block", "9Gi", "'ReadWriteOnce'", ", 'volumeMode': 'Block'"),
      make_volume("classy", "9Gi", "'ReadWriteOnce'", ", 'storageClassName': 'x'")};
  EXPECT_THAT(names(serving_volumes(kClaim, {}, free)), ElementsAre("exact", "a", "b", "two"));
  EXPECT_THAT(names(serving_volumes(kClaim, {}, free,
                                    [](const Value& volume) {
                                      return volume["metadata"]["name"].as_string() == "a";
                                    })),
              ElementsAre("exact", "b", "two"));
}

TEST(Volumes, that_are_reserved_come_alone) {
  const Value mine = make_volume("mine", "9Gi", "'ReadWriteOnce'",
                                 ", 'claimRef': {'namespace': 'ns', 'name': 'c'}");
  const Value former = make_volume("former", "9Gi", "'ReadWriteOnce'",
                                   ", 'claimRef': {'namespace': 'ns', 'name': 'c', 'uid': 'old'}");
  const std::vector<Value> free = {make_volume("free", "5Gi")};
  EXPECT_THAT(names(serving_volumes(kClaim, {former, mine}, free)), ElementsAre("mine"));
  EXPECT_THAT(names(serving_volumes(kClaim, {former}, free)), ElementsAre("free"));
}

TEST(Volumes, are_marked_as_the_binders_choice_only_if_they_are) {
  const Value chosen = bound_volume(make_volume("v", "5Gi"), kClaim);
  EXPECT_EQ(chosen["spec"]["claimRef"]["uid"].str(), "u");
  EXPECT_TRUE(has_annotation(chosen, kBoundByController));
  const Value reserved = bound_volume(
      make_volume("v", "5Gi", "'ReadWriteOnce'", ", 'claimRef': {'namespace': 'ns', 'name': 'c'}"),
      kClaim);
  EXPECT_EQ(reserved["spec"]["claimRef"]["uid"].str(), "u");
  EXPECT_FALSE(has_annotation(reserved, kBoundByController));
  EXPECT_EQ(bound_volume(chosen, kClaim), chosen);
}

TEST(Volumes, reach_the_nodes_that_they_name) {
  const Value volume = make_volume(
      "v", "5Gi", "'ReadWriteOnce'",
      ", 'nodeAffinity': {'required': {'nodeSelectorTerms': [{'matchExpressions': [{'key': 'h', "
      "'operator': 'In', 'values': ['a']}]}]}}");
  EXPECT_TRUE(volume_reaches(volume, from_text("{'metadata': {'labels': {'h': 'a'}}}")));
  EXPECT_FALSE(volume_reaches(volume, from_text("{'metadata': {'labels': {'h': 'b'}}}")));
  EXPECT_FALSE(volume_reaches(volume, from_text("{'metadata': {}}")));
  EXPECT_TRUE(volume_reaches(make_volume("w", "5Gi"), from_text("{'metadata': {}}")));
}

TEST(Volumes, of_a_class_go_where_its_topologies_allow) {
  const Value storage_class = from_text(
      "{'allowedTopologies': [{'matchLabelExpressions': [{'key': 'z', 'values': ['1', '2']}, "
      "{'key': 'r', 'values': ['x']}]}, {'matchLabelExpressions': [{'key': 'z', 'values': "
      "['9']}]}]}");
  const auto allows = [&](const char* labels) {
    return topology_allows(storage_class, from_text(cat("{'metadata': {'labels': ", labels, "}}")));
  };
  EXPECT_TRUE(allows("{'z': '2', 'r': 'x'}"));
  EXPECT_FALSE(allows("{'z': '2', 'r': 'y'}"));
  EXPECT_TRUE(allows("{'z': '9'}"));
  EXPECT_TRUE(topology_allows(from_text("{}"), from_text("{}")));
}

TEST(Volumes, have_the_youngest_default_class) {
  const auto make = [](const char* name, const char* time, const char* marked) {
    return from_text(cat("{'metadata': {'name': '", name, "', 'creationTimestamp': '", time,
                         "', 'annotations': {'storageclass.kubernetes.io/is-default-class': '",
                         marked, "'}}}"));
  };
  EXPECT_EQ(default_class({make("old", "2020-01-01T00:00:00Z", "true"),
                           make("b", "2024-01-01T00:00:00Z", "true"),
                           make("a", "2024-01-01T00:00:00Z", "true"),
                           make("new", "2025-01-01T00:00:00Z", "false")})["metadata"]["name"]
                .str(),
            "a");
  EXPECT_TRUE(default_class({}).is_null());
}

TEST(Volumes, of_a_pod_are_its_claims) {
  const Value pod = from_text(
      "{'metadata': {'name': 'p', 'uid': 'pu'}, 'spec': {'volumes': [{'name': 'a', 'emptyDir': "
      "{}}, "
      "{'name': 'b', 'persistentVolumeClaim': {'claimName': 'x', 'readOnly': true}}, {'name': 'c', "
      "'ephemeral': {'volumeClaimTemplate': {}}}]}}");
  const std::vector<PodVolume> found = pod_volumes(pod);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].claim, "x");
  EXPECT_TRUE(found[0].read_only);
  EXPECT_EQ(found[1].claim, "p-c");
  EXPECT_TRUE(found[1].ephemeral);
  EXPECT_TRUE(is_claim_of_pod(
      from_text("{'metadata': {'ownerReferences': [{'controller': true, 'uid': 'pu'}]}}"), pod));
  EXPECT_FALSE(is_claim_of_pod(
      from_text("{'metadata': {'ownerReferences': [{'controller': true, 'uid': 'else'}]}}"), pod));
}

}  // namespace
}  // namespace dibs::api
