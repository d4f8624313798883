#include "api/kinds/resource/versions/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kinds/resource/versions/conversion.h"
#include "api/kinds/resource/versions/test_support.h"

namespace dibs::api {
namespace {

using ::testing::HasSubstr;

const char* const kClassicClaim = R"({"kind":"ResourceClaim",
  "apiVersion":"resource.k8s.io/v1alpha2","metadata":{"name":"c","namespace":"n"},
  "spec":{"resourceClassName":"gpu","allocationMode":"Immediate",
          "parametersRef":{"kind":"Card","name":"big"}},
  "status":{"driverName":"d.example.com","deallocationRequested":true,
    "allocation":{"resourceHandles":[{"driverName":"d.example.com","data":"x"}],
      "availableOnNodes":{"nodeSelectorTerms":[{"matchFields":[]}]},"shareable":true},
    "reservedFor":[{"resource":"pods","name":"p","uid":"1"}]}})";

const char* const kStructuredClaim = R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1",
  "metadata":{"name":"c","namespace":"n"},
  "spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"gpu"}}]}},
  "status":{"allocation":{"devices":{"results":[{"request":"a","driver":"d.example.com",
      "pool":"p","device":"x"}]},"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[]}]}},
    "reservedFor":[{"resource":"pods","name":"p","uid":"1"}],
    "devices":[{"driver":"d.example.com","pool":"p","device":"x","conditions":null}]}})";

struct ShownCase {
  const char* name;
  const char* kind;
  const char* version;
  const char* stored;
  const char* shown;
};

class Shown : public ::testing::TestWithParam<ShownCase> {};

TEST_P(Shown, AsFarAsTheVersionHasWords) {
  const ShownCase& c = GetParam();
  Value shown = Conversion(c.kind, c.version).show(parsed(c.stored));
  EXPECT_TRUE(same(shown, parsed(c.shown)));
}

INSTANTIATE_TEST_SUITE_P(
    Models, Shown,
    ::testing::Values(
        ShownCase{"classic_claim_in_v1", "ResourceClaim", "v1", kClassicClaim,
                  R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1",
                     "metadata":{"name":"c","namespace":"n"},"spec":{"devices":{"requests":null}},
                     "status":{"allocation":{"devices":{},
                       "nodeSelector":{"nodeSelectorTerms":[{"matchFields":[]}]}},
                       "reservedFor":[{"resource":"pods","name":"p","uid":"1"}]}})"},
        ShownCase{"structured_claim_in_v1alpha2", "ResourceClaim", "v1alpha2", kStructuredClaim,
                  R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1alpha2",
                     "metadata":{"name":"c","namespace":"n"},
                     "spec":{"resourceClassName":"","allocationMode":"WaitForFirstConsumer"},
                     "status":{"driverName":"d.example.com","allocation":{
                       "availableOnNodes":{"nodeSelectorTerms":[{"matchFields":[]}]},
                       "shareable":true},
                       "reservedFor":[{"resource":"pods","name":"p","uid":"1"}]}})"},
        ShownCase{"pending_claim_in_v1beta1", "ResourceClaim", "v1beta1",
                  R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1alpha2",
                     "metadata":{"name":"c"},"spec":{"resourceClassName":"x"},"status":{}})",
                  R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1beta1",
                     "metadata":{"name":"c"},"spec":{"devices":{"requests":null}},"status":{}})"},
        ShownCase{"classic_template_in_v1", "ResourceClaimTemplate", "v1",
                  R"({"kind":"ResourceClaimTemplate","apiVersion":"resource.k8s.io/v1alpha2",
                     "metadata":{"name":"t"},"spec":{"metadata":{"labels":{"a":"b"}},
                     "spec":{"resourceClassName":"x"}}})",
                  R"({"kind":"ResourceClaimTemplate","apiVersion":"resource.k8s.io/v1",
                     "metadata":{"name":"t"},"spec":{"metadata":{"labels":{"a":"b"}},
                     "spec":{"devices":{"requests":null}}}})"},
        ShownCase{"classic_slice_in_v1beta1", "ResourceSlice", "v1beta1",
                  R"({"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1alpha2",
                     "metadata":{"name":"s"},"driverName":"d","nodeName":"n",
                     "namedResources":{"instances":[{"name":"i"}]}})",
                  R"({"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1beta1",
                     "metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"n",
                     "pool":{"name":"s","generation":0,"resourceSliceCount":1}}})"},
        ShownCase{"structured_slice_in_v1alpha2", "ResourceSlice", "v1alpha2",
                  R"({"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1",
                     "metadata":{"name":"s"},"spec":{"driver":"d","allNodes":true,
                     "pool":{"name":"p","generation":3,"resourceSliceCount":2},
                     "devices":[{"name":"x"}]}})",
                  R"({"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1alpha2",
                     "metadata":{"name":"s"},"driverName":"d",
                     "namedResources":{"instances":null}})"}),
    [](const auto& info) { return info.param.name; });

TEST(Models, AWriteThroughTheOtherModelKeepsTheRest) {
  for (const auto& [text, version] :
       {std::pair(kClassicClaim, "v1"), std::pair(kClassicClaim, "v1beta1"),
        std::pair(kStructuredClaim, "v1alpha2")}) {
    Value stored = parsed(text);
    Conversion conversion("ResourceClaim", version);
    Value served = conversion.show(stored);
    served.mut("metadata").set("labels", Value::object({{"a", "b"}}));
    auto changed = conversion.store(served, &stored);
    ASSERT_TRUE(changed.ok()) << changed.error().message();
    Value expected = stored;
    expected.mut("metadata").set("labels", Value::object({{"a", "b"}}));
    EXPECT_TRUE(same(*changed, expected)) << version;
  }
}

TEST(Models, StatusThroughTheOtherModelReservesAndFrees) {
  Value stored = parsed(kClassicClaim);
  Conversion conversion("ResourceClaim", "v1");
  Value served = conversion.show(stored);
  served.mut("status").erase("reservedFor");
  auto freed = conversion.store(served, &stored, true);
  ASSERT_TRUE(freed.ok());
  EXPECT_FALSE((*freed)["status"].contains("reservedFor"));
  EXPECT_EQ((*freed)["status"]["allocation"], stored["status"]["allocation"]);
  EXPECT_TRUE((*freed)["status"]["deallocationRequested"].as_bool());

  served.mut("status").erase("allocation");
  auto deallocated = conversion.store(served, &stored, true);
  ASSERT_TRUE(deallocated.ok());
  EXPECT_EQ(json::write((*deallocated)["status"]), R"({"driverName":"d.example.com"})");
  EXPECT_EQ((*deallocated)["spec"], stored["spec"]);
}

struct RefusedCase {
  const char* name;
  const char* kind;
  const char* version;
  const char* stored;
  const char* change;  // a merge patch of one level on the served object
  bool status_write;
  const char* says;
};

class RefusedChange : public ::testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedChange, NamesTheVersionToUse) {
  const RefusedCase& c = GetParam();
  Value stored = parsed(c.stored);
  Conversion conversion(c.kind, c.version);
  Value served = conversion.show(stored);
  Value change = parsed(c.change);
  for (const auto& [key, value] : change.members()) served.set(key, value);
  auto result = conversion.store(served, &stored, c.status_write);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr(c.says));
}

INSTANTIATE_TEST_SUITE_P(
    Models, RefusedChange,
    ::testing::Values(
        RefusedCase{"spec", "ResourceClaim", "v1", kClassicClaim,
                    R"({"spec":{"devices":{"requests":[{"name":"a"}]}}})", false,
                    "spec: Forbidden: was written in resource.k8s.io/v1alpha2 and can only be "
                    "changed there"},
        RefusedCase{"class", "ResourceClaim", "v1alpha2", kStructuredClaim,
                    R"({"spec":{"resourceClassName":"x"}})", false,
                    "spec: Forbidden: was written in resource.k8s.io/v1 and"},
        RefusedCase{"allocation", "ResourceClaim", "v1",
                    R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1alpha2",
                       "metadata":{"name":"c"},"spec":{"resourceClassName":"x"},"status":{}})",
                    R"({"status":{"allocation":{"devices":{}}}})", true,
                    "status.allocation: Forbidden: was written in resource.k8s.io/v1alpha2"},
        RefusedCase{"devices_of_status", "ResourceClaim", "v1", kClassicClaim,
                    R"({"status":{"devices":[]}})", true, "status.devices: Forbidden"},
        RefusedCase{"instances", "ResourceSlice", "v1alpha2",
                    R"({"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1",
                       "metadata":{"name":"s"},"spec":{"driver":"d","pool":{}}})",
                    R"({"namedResources":{"instances":[{"name":"i"}]}})", false,
                    "spec: Forbidden: was written in resource.k8s.io/v1 and"},
        RefusedCase{"devices", "ResourceSlice", "v1",
                    R"({"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1alpha2",
                       "metadata":{"name":"s"},"driverName":"d"})",
                    R"({"spec":{"driver":"d","devices":[{"name":"i"}]}})", false,
                    "namedResources: Forbidden: was written in resource.k8s.io/v1alpha2 and"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace dibs::api
