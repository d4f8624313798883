#include "node/plugins/declared_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::node {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DeclaredFeatures, are_what_the_agent_does_and_the_gates_let_it) {
  EXPECT_THAT(*declared_features("", ""),
              ElementsAre("ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling",
                          "InPlacePodVerticalScalingInitContainers"));
  EXPECT_THAT(
      *declared_features("1.37", "DRAOptionalNodeOperations=true,DRANodeAllocatableResources=true"),
      ElementsAre("DRANodeAllocatableResources", "DRAOptionalNodeOperations",
                  "ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling",
                  "InPlacePodVerticalScalingInitContainers"));
  EXPECT_THAT(*declared_features("1.34", ""), IsEmpty());
  EXPECT_THAT(*declared_features("1.36", "NodeDeclaredFeatures=false"), IsEmpty());
  EXPECT_FALSE(declared_features("1.37", "NoSuchGate=true").ok());
}

}  // namespace
}  // namespace dibs::node
