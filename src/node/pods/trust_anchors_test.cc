#include "node/pods/trust_anchors.h"

#include <gtest/gtest.h>

#include "json/yaml.h"

namespace dibs::node {
namespace {

json::Value yaml(const std::string& text) { return *json::parse_yaml(text); }

TEST(TrustAnchors, are_each_there_once_without_what_stands_around_them) {
  const auto pem = [](const std::string& bytes) {
    return "-----BEGIN CERTIFICATE-----\n" + bytes + "\n-----END CERTIFICATE-----";
  };
  EXPECT_EQ(merged_certificates({"words\n" + pem("b") + "\n" + pem("a"), pem("b") + "\nmore"}),
            pem("a") + "\n" + pem("b") + "\n");
  EXPECT_EQ(merged_certificates({"-----BEGIN CERTIFICATE-----\nbroken"}), "");
}

TEST(TrustAnchors, are_asked_for_by_the_selector_of_their_source) {
  EXPECT_EQ(selector_query(yaml("{}")), "");
  EXPECT_EQ(selector_query(yaml("{matchLabels: {a: b}, matchExpressions: [{key: c, operator: In, "
                                "values: [x, w]}, {key: d, operator: NotIn, values: [z]}, {key: e, "
                                "operator: Exists}, {key: f, operator: DoesNotExist}]}")),
            "a=b,c in (x,w),d notin (z),e,!f");
}

TEST(TrustAnchors, are_wanted_by_pods_that_project_them) {
  EXPECT_TRUE(wants_trust_anchors(
      yaml("{spec: {volumes: [{projected: {sources: [{clusterTrustBundle: {path: a}}]}}]}}")));
  EXPECT_FALSE(wants_trust_anchors(
      yaml("{spec: {volumes: [{projected: {sources: [{configMap: {name: a}}]}}]}}")));
}

}  // namespace
}  // namespace dibs::node
