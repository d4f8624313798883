#include "api/kinds/cluster/quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Time kNow = Time::from_seconds(1577836800);

Value parsed(std::string_view text) { return json::parse(text).value(); }

Value pod(std::string_view resources) {
  return parsed(cat(R"({"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","resources":)",
                    resources, "}]}}"));
}

const char* const kRange = R"({"spec":{"limits":[
    {"type":"Container","default":{"cpu":"500m","memory":"1Gi"},
     "defaultRequest":{"cpu":"100m","memory":"1Gi"},"max":{"cpu":"1","memory":"1Gi"},
     "min":{"cpu":"50m"},"maxLimitRequestRatio":{"cpu":"10"}},
    {"type":"Pod","max":{"cpu":"2"}},
    {"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"5Gi"}}]}})";

TEST(LimitRange, puts_defaults_into_containers_and_says_so) {
  Value object = pod("{}");
  apply_limit_range_defaults(object, parsed(kRange));
  EXPECT_EQ(object["spec"]["containers"][0]["resources"],
            parsed(R"({"limits":{"cpu":"500m","memory":"1Gi"},
                "requests":{"cpu":"100m","memory":"1Gi"}})"));
  EXPECT_EQ(object["metadata"]["annotations"]["kubernetes.io/limit-ranger"].as_string(),
            "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for "
            "container c");
}

TEST(LimitRange, refuses_what_is_out_of_bounds) {
  struct Case {
    const char* resources;
    const char* text;
  };
  const Case cases[] = {
      {R"({"limits":{"cpu":"2"},"requests":{"cpu":"2"}})",
       "maximum cpu usage per Container is 1, but limit is 2"},
      {R"({"requests":{"cpu":"10m"}})",
       "[minimum cpu usage per Container is 50m, but request is 10m, cpu max limit to request "
       "ratio "
       "per Container is 10, but provided ratio is 50.000000]"},
      {R"({"requests":{"cpu":"50m"},"limits":{"cpu":"1"}})",
       "cpu max limit to request ratio per Container is 10, but provided ratio is 20.000000"},
      {R"({"limits":{"memory":"2Gi"},"requests":{"memory":"2Gi"}})",
       "maximum memory usage per Container is 1Gi, but limit is 2Gi"},
  };
  for (const Case& c : cases) {
    Value object = pod(c.resources);
    apply_limit_range_defaults(object, parsed(kRange));
    EXPECT_EQ(joined_faults(limit_range_faults("pods", object, parsed(kRange))), c.text);
  }
  EXPECT_THAT(limit_range_faults("persistentvolumeclaims",
                                 parsed(R"({"spec":{"resources":{"requests":{"storage":"1Mi"}}}})"),
                                 parsed(kRange)),
              ElementsAre("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is "
                          "1Mi"));
}

TEST(LimitRange, adds_up_the_containers_of_a_pod) {
  Value object = parsed(R"({"spec":{"containers":[
      {"name":"c","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}},
      {"name":"d","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}},{"name":"e"}]}})");
  apply_limit_range_defaults(object, parsed(kRange));
  EXPECT_THAT(limit_range_faults("pods", object, parsed(kRange)),
              ElementsAre("maximum cpu usage per Pod is 2, but limit is 2500m"));
}

TEST(QuotaUsage, of_pods) {
  Value object = pod(R"({"requests":{"cpu":"1","example.com/gpu":"2"},
      "limits":{"cpu":"2","example.com/gpu":"2"}})");
  EXPECT_EQ(to_value(quota_usage("", "pods", object, kNow)),
            parsed(R"({"count/pods":"1","pods":"1","cpu":"1","requests.cpu":"1","limits.cpu":"2",
                "requests.example.com/gpu":"2"})"));
  object.mut("status").set("phase", "Succeeded");
  EXPECT_EQ(to_value(quota_usage("", "pods", object, kNow)), parsed(R"({"count/pods":"1"})"));
}

TEST(QuotaUsage, of_other_objects) {
  EXPECT_EQ(to_value(quota_usage("apps", "deployments", parsed("{}"), kNow)),
            parsed(R"({"count/deployments.apps":"1"})"));
  EXPECT_EQ(to_value(quota_usage("", "services",
                                 parsed(R"({"spec":{"type":"NodePort","ports":[{},{}]}})"), kNow)),
            parsed(R"({"count/services":"1","services":"1","services.nodeports":"2",
                "services.loadbalancers":"0"})"));
  EXPECT_EQ(to_value(quota_usage("", "persistentvolumeclaims",
                                 parsed(R"({"spec":{"storageClassName":"fast",
                                     "resources":{"requests":{"storage":"1Gi"}}}})"),
                                 kNow)),
            parsed(R"({"count/persistentvolumeclaims":"1","persistentvolumeclaims":"1",
                "requests.storage":"1Gi","fast.storageclass.storage.k8s.io/requests.storage":"1Gi",
                "fast.storageclass.storage.k8s.io/persistentvolumeclaims":"1"})"));
}

TEST(QuotaUsage, of_claims_counts_devices_by_class) {
  EXPECT_EQ(to_value(quota_usage("resource.k8s.io", "resourceclaims",
                                 parsed(R"({"spec":{"devices":{"requests":[
                    {"exactly":{"deviceClassName":"a","count":2}},
                    {"exactly":{"deviceClassName":"b","allocationMode":"All"}},
                    {"firstAvailable":[{"deviceClassName":"a","count":3},
                                       {"deviceClassName":"a","count":1},
                                       {"deviceClassName":"c"}]}]}}})"),
                                 kNow)),
            parsed(R"({"count/resourceclaims.resource.k8s.io":"1",
                "a.deviceclass.resource.k8s.io/devices":"5",
                "b.deviceclass.resource.k8s.io/devices":"32",
                "c.deviceclass.resource.k8s.io/devices":"1"})"));
}

TEST(QuotaUsage, of_claims_made_for_a_pod_leaves_out_what_the_pod_has_counted) {
  Value pod = parsed(R"({"metadata":{"name":"p","uid":"u"},"spec":{"containers":[{"name":"c",
      "resources":{"requests":{"example.com/gpu":"2",
                               "deviceclass.resource.kubernetes.io/a":"1"}}}]}})");
  const auto claim = [](const std::string& name, const std::string& uid) {
    return parsed(cat(R"({"metadata":{"name":")", name, R"(","namespace":"ns",
        "creationTimestamp":"2026-01-01T00:00:0)",
                      name.substr(1), R"(Z",
        "annotations":{"resource.kubernetes.io/extended-resource-claim":"true"},
        "ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","controller":true,
                            "uid":")",
                      uid, R"("}]},
        "spec":{"devices":{"requests":[{"exactly":{"deviceClassName":"a","count":3}}]}}})"));
  };
  QuotaSources sources;
  sources.extended = [](std::string_view) { return std::string("example.com/gpu"); };
  sources.pod = [&](std::string_view, std::string_view) { return pod; };
  sources.claims = [&](std::string_view) {
    return std::vector<Value>{claim("c1", "u"), claim("c2", "u")};
  };
  const auto counted = [&](const Value& object) {
    const Value usage =
        to_value(quota_usage("resource.k8s.io", "resourceclaims", object, kNow, sources));
    return cat(usage["requests.example.com/gpu"].as_string(), " ",
               usage["requests.deviceclass.resource.kubernetes.io/a"].as_string(), " ",
               usage["a.deviceclass.resource.k8s.io/devices"].as_string());
  };

  EXPECT_EQ(counted(claim("c1", "u")), "1 2 3");
  // Anybody may write the annotation: the second of a pod, and one of another, count in full.
  EXPECT_EQ(counted(claim("c2", "u")), "3 3 3");
  EXPECT_EQ(counted(claim("c1", "other")), "3 3 3");
  pod.set("status", parsed(R"({"extendedResourceClaimStatus":{"resourceClaimName":"c2"}})"));
  EXPECT_EQ(counted(claim("c2", "u")), "1 2 3");
  EXPECT_EQ(counted(claim("c1", "u")), "3 3 3");
}

TEST(Quota, charges_until_it_is_exhausted) {
  Value quota = parsed(R"({"metadata":{"name":"q"},"spec":{},"status":{
      "hard":{"pods":"4","requests.cpu":"1","count/configmaps":"2"},
      "used":{"pods":"2","requests.cpu":"300m","count/configmaps":"2"}}})");

  auto fits =
      charge_quotas({quota}, "", "pods", pod(R"({"requests":{"cpu":"700m"}})"), nullptr, kNow);
  ASSERT_TRUE(fits.ok());
  EXPECT_EQ((*fits)[0]["status"]["used"],
            parsed(R"({"count/configmaps":"2","pods":"3","requests.cpu":"1"})"));

  EXPECT_EQ(charge_quotas({quota}, "", "pods", pod(R"({"requests":{"cpu":"800m"}})"), nullptr, kNow)
                .error()
                .message(),
            "exceeded quota: q, requested: requests.cpu=800m, used: requests.cpu=300m, limited: "
            "requests.cpu=1");
  EXPECT_EQ(charge_quotas({quota}, "", "pods", pod("{}"), nullptr, kNow).error().message(),
            "failed quota: q: must specify requests.cpu for: c");
  EXPECT_EQ(charge_quotas({quota}, "", "configmaps", parsed("{}"), nullptr, kNow).error().message(),
            "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=2, limited: "
            "count/configmaps=2");
}

TEST(Quota, an_update_is_charged_by_its_difference) {
  Value quota = parsed(R"({"metadata":{"name":"q"},"status":{"hard":{"requests.storage":"3Gi"},
      "used":{"requests.storage":"2Gi"}}})");
  Value old = parsed(R"({"spec":{"resources":{"requests":{"storage":"2Gi"}}}})");
  Value larger = parsed(R"({"spec":{"resources":{"requests":{"storage":"3Gi"}}}})");
  auto charged = charge_quotas({quota}, "", "persistentvolumeclaims", larger, &old, kNow);
  ASSERT_TRUE(charged.ok());
  EXPECT_EQ((*charged)[0]["status"]["used"], parsed(R"({"requests.storage":"3Gi"})"));
  auto same = charge_quotas({quota}, "", "persistentvolumeclaims", old, &old, kNow);
  ASSERT_TRUE(same.ok());
  EXPECT_THAT(*same, IsEmpty());
}

TEST(Quota, without_a_status_binds_nothing) {
  Value quota = parsed(R"({"metadata":{"name":"q"},"spec":{"hard":{"pods":"0"}},"status":{}})");
  auto charged = charge_quotas({quota}, "", "pods", pod("{}"), nullptr, kNow);
  ASSERT_TRUE(charged.ok());
  EXPECT_THAT(*charged, IsEmpty());
}

TEST(Quota, scopes_select_pods) {
  Value best_effort = pod("{}");
  Value burstable = pod(R"({"requests":{"cpu":"1"}})");
  Value quota = parsed(R"({"spec":{"scopes":["BestEffort"]}})");
  EXPECT_TRUE(quota_matches(quota, "", "pods", best_effort));
  EXPECT_FALSE(quota_matches(quota, "", "pods", burstable));
  EXPECT_FALSE(quota_matches(quota, "", "configmaps", parsed("{}")));
  Value by_class = parsed(R"({"spec":{"scopeSelector":{"matchExpressions":[
      {"scopeName":"PriorityClass","operator":"In","values":["high"]}]}}})");
  EXPECT_FALSE(quota_matches(by_class, "", "pods", burstable));
  burstable.mut("spec").set("priorityClassName", "high");
  EXPECT_TRUE(quota_matches(by_class, "", "pods", burstable));
}

TEST(Quota, counts_devices_under_the_names_of_extended_resources) {
  Value claim = *json::parse(
      R"({"metadata":{},"spec":{"devices":{"requests":[{"name":"a","exactly":{
      "deviceClassName":"gpu","allocationMode":"ExactCount","count":2}}]}}})");
  auto name_of = [](std::string_view) { return std::string("example.com/gpu"); };
  auto counts = [&](const ExtendedNameOf& extended) {
    std::string text;
    for (const auto& [name, amount] :
         quota_usage("resource.k8s.io", "resourceclaims", claim, {}, {.extended = extended})) {
      append(text, name, "=", amount.str(), " ");
    }
    return text;
  };
  EXPECT_EQ(counts({}),
            "count/resourceclaims.resource.k8s.io=1 gpu.deviceclass.resource.k8s.io/devices=2 ");
  EXPECT_EQ(counts(name_of),
            "count/resourceclaims.resource.k8s.io=1 gpu.deviceclass.resource.k8s.io/devices=2 "
            "requests.deviceclass.resource.kubernetes.io/gpu=2 requests.example.com/gpu=2 ");
  // Whoever says that it was made for a pod, but names none, is charged.
  const std::string all = counts(name_of);
  claim.mut("metadata")
      .mut("annotations")
      .set("resource.kubernetes.io/extended-resource-claim", "true");
  EXPECT_EQ(counts(name_of), all);
}

}  // namespace
}  // namespace dibs::api
