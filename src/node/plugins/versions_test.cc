#include "node/plugins/versions.h"

#include <gmock/gmock.h>

namespace dibs::node {
namespace {

std::string spoken(const std::vector<std::string>& versions, std::string_view release) {
  const auto out = negotiate(versions, NodeRelease::parse(release));
  if (!out) return out.error().message();
  std::string text;
  switch (out->api) {
    case DraApi::v1:
      text = "v1";
      break;
    case DraApi::v1beta1:
      text = "v1beta1";
      break;
    case DraApi::v1alpha4:
      text = "v1alpha4";
      break;
  }
  switch (out->health) {
    case HealthApi::none:
      break;
    case HealthApi::v1:
      text += " health v1";
      break;
    case HealthApi::v1alpha1:
      text += " health v1alpha1";
      break;
  }
  return text;
}

TEST(Versions, are_negotiated_as_each_release_does) {
  struct Case {
    std::string release;
    std::vector<std::string> versions;
    std::string outcome;
  };
  const std::string none =
      "none of services supported by the plugin ([\"1.0.0\"]) are supported by the kubelet "
      "([\"v1.DRAPlugin\" \"v1beta1.DRAPlugin\"])";
  const std::vector<Case> cases = {
      {"", {"v1.DRAPlugin", "v1beta1.DRAPlugin"}, "v1"},
      {"", {"v1beta1.DRAPlugin", "v1.DRAPlugin"}, "v1beta1"},
      {"", {"v1alpha3.NodeService"}, "v1alpha4"},
      {"", {"1.0.0"}, "v1alpha4"},
      {"",
       {"v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"},
       "v1 health v1"},
      {"1.37", {"v1.DRAPlugin", "v1alpha1.DRAResourceHealth"}, "v1 health v1alpha1"},
      {"1.37", {"1.0.0"}, none},
      {"1.37", {}, "empty list of supported gRPC services (aka supported versions)"},
      {"1.36", {"v1.DRAPlugin"}, "v1 health v1alpha1"},
      {"1.34", {"x", "v1beta1.DRAPlugin"}, "v1beta1 health v1alpha1"},
      {"1.33", {"v1.DRAPlugin", "v1beta1.DRAPlugin"}, "v1beta1"},
      {"1.32", {"v1alpha3.NodeService", "v1beta1.DRAPlugin"}, "v1beta1"},
      {"1.32", {"1.0.0"}, "v1alpha4"},
      {"1.31", {"1.0.0"}, "v1alpha4"},
      {"1.30", {"2.0.0", "1.2.0", "1.10.0"}, "v1alpha4"},
      {"1.30",
       {"v1.DRAPlugin"},
       "none of the supported versions [\"v1.DRAPlugin\"] is usable: must be v1.x"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(spoken(c.versions, c.release), c.outcome) << c.release;
  }
}

TEST(Versions, of_several_semantic_ones_the_highest_counts) {
  EXPECT_EQ(negotiate({"1.2.0", "1.10.0", "x", "2.0.0"}, NodeRelease::parse("1.30"))->semver,
            "1.10.0");
}

}  // namespace
}  // namespace dibs::node
