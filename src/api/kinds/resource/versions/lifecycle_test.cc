#include "api/kinds/resource/versions/lifecycle.h"

#include <gtest/gtest.h>

namespace dibs::api {
namespace {

struct DeprecationCase {
  const char* version;
  const char* kind;
  int minor;
  const char* text;
};

class Deprecations : public ::testing::TestWithParam<DeprecationCase> {};

TEST_P(Deprecations, AreToldFromTheirRelease) {
  const DeprecationCase& c = GetParam();
  EXPECT_EQ(resource_deprecation(c.version, c.kind, c.minor), c.text);
}

INSTANTIATE_TEST_SUITE_P(
    Versions, Deprecations,
    ::testing::Values(
        DeprecationCase{"v1", "ResourceClaim", 37, ""},
        DeprecationCase{
            "v1beta1", "ResourceClaim", 37,
            "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+"},
        DeprecationCase{"v1beta1", "ResourceClaim", 34, ""},
        DeprecationCase{
            "v1beta2", "DeviceClass", 36,
            "resource.k8s.io/v1beta2 DeviceClass is deprecated in v1.36+, unavailable in v1.39+"},
        DeprecationCase{"v1beta2", "DeviceTaintRule", 37, ""},
        DeprecationCase{"v1alpha3", "DeviceTaintRule", 37,
                        "resource.k8s.io/v1alpha3 DeviceTaintRule is deprecated in v1.36+, "
                        "unavailable in v1.39+"},
        DeprecationCase{"v1alpha3", "ResourcePoolStatusRequest", 37, ""},
        DeprecationCase{"v1alpha3", "ResourceClaim", 32, ""},
        DeprecationCase{"v1alpha2", "ResourceClaim", 37, ""}));

std::vector<std::string> labels(std::string_view version, std::string_view kind, int minor) {
  std::vector<std::string> out;
  for (const auto& field : resource_selectable(version, kind, minor)) out.push_back(field.label);
  return out;
}

TEST(Selectable, DependsOnVersionAndRelease) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels("v1", "ResourceSlice", 37),
            (Labels{"spec.nodeName", "spec.driver", "spec.pool.name"}));
  EXPECT_EQ(labels("v1beta1", "ResourceSlice", 36), (Labels{"spec.nodeName", "spec.driver"}));
  EXPECT_EQ(labels("v1alpha2", "ResourceSlice", 30), (Labels{"nodeName", "driverName"}));
  EXPECT_EQ(labels("v1", "ResourceClaim", 37), Labels{});
}

}  // namespace
}  // namespace dibs::api
