#include "node/plugins/declared_features.h"

#include "api/schema/features.h"
#include "base/release.h"
#include "base/strings.h"

namespace dibs::node {

Result<std::vector<std::string>> declared_features(std::string_view release,
                                                   std::string_view feature_gates) {
  const std::string newest = cat("1.", kNewestRelease);
  DIBS_TRY(const auto gates,
           api::Features::parse(release.empty() ? newest : release, feature_gates));
  std::vector<std::string> out;
  if (!gates.on("NodeDeclaredFeatures")) return out;
  for (const char* gate : {"DRANodeAllocatableResources", "DRAOptionalNodeOperations"}) {
    if (gates.on(gate)) out.emplace_back(gate);
  }
  // What every agent of ours does.
  constexpr int kFirst = 36;
  if (gates.minor() >= kFirst) {
    out.emplace_back("ExtendWebSocketsToKubelet");
    out.emplace_back("InPlacePodLevelResourcesVerticalScaling");
    out.emplace_back("InPlacePodVerticalScalingInitContainers");
  }
  return out;
}

}  // namespace dibs::node
