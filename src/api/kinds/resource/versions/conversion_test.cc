#include "api/kinds/resource/versions/conversion.h"

#include <gtest/gtest.h>

#include "api/kinds/resource/versions/test_support.h"

namespace dibs::api {
namespace {

/// One object in two forms; converted both ways.
struct FormCase {
  const char* name;
  const char* kind;
  const char* version;
  const char* served;
  const char* stored;
  int release = 0;
};

class Forms : public ::testing::TestWithParam<FormCase> {};

TEST_P(Forms, AreShownAndStored) {
  const FormCase& c = GetParam();
  Conversion conversion(c.kind, c.version, c.release);
  Value served = parsed(c.served);
  Value stored = parsed(c.stored);
  EXPECT_TRUE(same(conversion.show(stored), served));
  auto back = conversion.store(served, nullptr);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_TRUE(same(*back, stored));
}

INSTANTIATE_TEST_SUITE_P(
    Versions, Forms,
    ::testing::Values(
        FormCase{"claim_v1beta2", "ResourceClaim", "v1beta2",
                 R"({"apiVersion":"resource.k8s.io/v1beta2","spec":{"devices":{"requests":[
                    {"name":"a","exactly":{"deviceClassName":"c"}}]}}})",
                 R"({"apiVersion":"resource.k8s.io/v1","spec":{"devices":{"requests":[
                    {"name":"a","exactly":{"deviceClassName":"c"}}]}}})"},
        FormCase{"claim_exactly", "ResourceClaim", "v1beta1",
                 R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"devices":{"requests":[
                    {"name":"a","deviceClassName":"c","count":2,"adminAccess":false,
                     "tolerations":[{"key":"k"}]}]}},"status":{}})",
                 R"({"apiVersion":"resource.k8s.io/v1","spec":{"devices":{"requests":[
                    {"name":"a","exactly":{"deviceClassName":"c","count":2,"adminAccess":false,
                     "tolerations":[{"key":"k"}]}}]}},"status":{}})"},
        FormCase{"claim_first_available", "ResourceClaim", "v1beta1",
                 R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"devices":{"requests":[
                    {"name":"a","deviceClassName":"","firstAvailable":[{"name":"x"}]}]}}})",
                 R"({"apiVersion":"resource.k8s.io/v1","spec":{"devices":{"requests":[
                    {"name":"a","firstAvailable":[{"name":"x"}]}]}}})"},
        FormCase{"claim_both", "ResourceClaim", "v1beta1",
                 R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"devices":{"requests":[
                    {"name":"a","deviceClassName":"c","firstAvailable":[{"name":"x"}]}]}}})",
                 R"({"apiVersion":"resource.k8s.io/v1","spec":{"devices":{"requests":[
                    {"name":"a","exactly":{"deviceClassName":"c"},
                     "firstAvailable":[{"name":"x"}]}]}}})"},
        FormCase{"claim_no_class", "ResourceClaim", "v1beta1",
                 R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"devices":{"requests":[
                    {"name":"a","deviceClassName":"","allocationMode":"All"}]}}})",
                 R"({"apiVersion":"resource.k8s.io/v1","spec":{"devices":{"requests":[
                    {"name":"a","exactly":{"deviceClassName":"","allocationMode":"All"}}]}}})"},
        FormCase{"claim_no_requests", "ResourceClaim", "v1beta1",
                 R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"devices":{"requests":null}}})",
                 R"({"apiVersion":"resource.k8s.io/v1","spec":{"devices":{"requests":null}}})"},
        FormCase{"template", "ResourceClaimTemplate", "v1beta1",
                 R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"metadata":{},"spec":{
                    "devices":{"requests":[{"name":"a","deviceClassName":"c"}]}}}})",
                 R"({"apiVersion":"resource.k8s.io/v1","spec":{"metadata":{},"spec":{
                    "devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c"}}]}}}})"},
        FormCase{"slice", "ResourceSlice", "v1beta1",
                 R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"driver":"d","nodeName":"n",
                    "devices":[{"name":"a","basic":{"attributes":{"m":{"int":1}},
                    "capacity":{"c":{"value":"1"}}}},{"name":"b","basic":{}}]}})",
                 R"({"apiVersion":"resource.k8s.io/v1","spec":{"driver":"d","nodeName":"n",
                    "devices":[{"name":"a","attributes":{"m":{"int":1}},
                    "capacity":{"c":{"value":"1"}}},{"name":"b"}]}})"},
        FormCase{"class", "DeviceClass", "v1beta1",
                 R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"selectors":[]}})",
                 R"({"apiVersion":"resource.k8s.io/v1","spec":{"selectors":[]}})"},
        FormCase{"rule", "DeviceTaintRule", "v1alpha3",
                 R"({"apiVersion":"resource.k8s.io/v1alpha3","spec":{"taint":{"key":"k"}}})",
                 R"({"apiVersion":"resource.k8s.io/v1","spec":{"taint":{"key":"k"}}})"},
        FormCase{"pool_request", "ResourcePoolStatusRequest", "v1alpha3",
                 R"({"apiVersion":"resource.k8s.io/v1alpha3","spec":{"driver":"d"}})",
                 R"({"apiVersion":"resource.k8s.io/v1alpha3","spec":{"driver":"d"}})"},
        FormCase{"classic_class", "ResourceClass", "v1alpha2",
                 R"({"apiVersion":"resource.k8s.io/v1alpha2","driverName":"d"})",
                 R"({"apiVersion":"resource.k8s.io/v1alpha2","driverName":"d"})"},
        FormCase{"classic_claim", "ResourceClaim", "v1alpha2",
                 R"({"apiVersion":"resource.k8s.io/v1alpha2","spec":{"resourceClassName":"c"}})",
                 R"({"apiVersion":"resource.k8s.io/v1alpha2","spec":{"resourceClassName":"c"}})"}),
    [](const auto& info) { return info.param.name; });

TEST(Conversion, OlderReleasesShowTheFieldsTheyKnow) {
  Value stored = parsed(R"({"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1",
    "metadata":{"name":"s","creationTimestamp":"2026-01-01T00:00:00Z"},
    "spec":{"driver":"d","pool":{"name":"p","generation":1,"resourceSliceCount":1},"nodeName":"n",
      "devices":[{"name":"a","capacity":{"m":{"value":"1Gi","requestPolicy":{"default":"1"}}},
                  "taints":[{"key":"k","effect":"NoSchedule"}]}]}})");
  Value flat = Conversion("ResourceSlice", "v1beta1", 32).show(stored);
  EXPECT_EQ(json::write(flat["spec"]["devices"]),
            R"([{"name":"a","basic":{"capacity":{"m":{"value":"1Gi"}}}}])");
  Value quantity = Conversion("ResourceSlice", "v1alpha3", 32).show(stored);
  EXPECT_EQ(json::write(quantity["spec"]["devices"]),
            R"([{"name":"a","basic":{"capacity":{"m":"1Gi"}}}])");
}

TEST(Conversion, OlderReleasesWriteEmptyValuesAsTheyDid) {
  Value stored = parsed(R"({"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1",
    "metadata":{"name":"s"},"spec":{"driver":"d","pool":{"name":"p","generation":1,
    "resourceSliceCount":1},"allNodes":true}})");
  Value shown = Conversion("ResourceSlice", "v1beta1", 32).show(stored);
  ASSERT_TRUE(shown["spec"].contains("devices"));
  EXPECT_TRUE(shown["spec"]["devices"].is_null());
  auto back = Conversion("ResourceSlice", "v1beta1", 32).store(shown, nullptr);
  ASSERT_TRUE(back.ok());
  EXPECT_FALSE((*back)["spec"].contains("devices"));
}

TEST(Conversion, HiddenFieldsSurviveAWrite) {
  Value stored = parsed(R"({"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1",
    "metadata":{"name":"s","creationTimestamp":"2026-01-01T00:00:00Z"},
    "spec":{"driver":"d","pool":{"name":"p","generation":1,"resourceSliceCount":1},"nodeName":"n",
      "sharedCounters":[{"name":"x","counters":{}}],
      "devices":[{"name":"a","capacity":{"m":{"value":"1Gi","requestPolicy":{"default":"1"}}}},
                 {"name":"b","taints":[{"key":"k","effect":"NoSchedule"}]}]}})");
  Conversion conversion("ResourceSlice", "v1alpha3", 32);
  Value served = conversion.show(stored);
  auto untouched = conversion.store(served, &stored);
  ASSERT_TRUE(untouched.ok());
  EXPECT_TRUE(same(*untouched, stored));

  // Another capacity, the devices in another order, and one more.
  Value b = served["spec"]["devices"][1];
  Value a = served["spec"]["devices"][0];
  a.mut("basic").mut("capacity").set("n", "5");
  served.mut("spec").set("devices", Value::array({b, a, parsed(R"({"name":"c","basic":{}})")}));
  auto changed = conversion.store(served, &stored);
  ASSERT_TRUE(changed.ok());
  EXPECT_TRUE(same((*changed)["spec"], parsed(R"({"driver":"d","pool":{"name":"p","generation":1,
      "resourceSliceCount":1},"nodeName":"n","sharedCounters":[{"name":"x","counters":{}}],
      "devices":[{"name":"b","taints":[{"key":"k","effect":"NoSchedule"}]},
        {"name":"a","capacity":{"m":{"value":"1Gi","requestPolicy":{"default":"1"}},
                                "n":{"value":"5"}}},{"name":"c"}]})")));
}

TEST(Conversion, SaysWhatGoesOutAsStored) {
  EXPECT_EQ(Conversion("ResourceClaim", "v1").shown_as_stored(), "resource.k8s.io/v1");
  EXPECT_EQ(Conversion("ResourceClaim", "v1alpha2").shown_as_stored(), "resource.k8s.io/v1alpha2");
  EXPECT_EQ(Conversion("ResourceClaim", "v1beta2").shown_as_stored(), "");
  EXPECT_EQ(Conversion("ResourceClaim", "v1", 37).shown_as_stored(), "resource.k8s.io/v1");
  EXPECT_EQ(Conversion("ResourceClaim", "v1", 34).shown_as_stored(), "");
}

}  // namespace
}  // namespace dibs::api
