#include "api/schema/features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::api {
namespace {

using ::testing::HasSubstr;

struct DefaultCase {
  const char* release;
  const char* gate;
  bool on;
};

class Defaults : public ::testing::TestWithParam<DefaultCase> {};

TEST_P(Defaults, AreThoseOfTheRelease) {
  auto features = Features::parse(GetParam().release);
  ASSERT_TRUE(features.ok()) << features.error().message();
  EXPECT_EQ(features->on(GetParam().gate), GetParam().on);
}

INSTANTIATE_TEST_SUITE_P(
    Gates, Defaults,
    ::testing::Values(DefaultCase{"1.27", "DynamicResourceAllocation", true},
                      DefaultCase{"1.30", "DynamicResourceAllocation", true},
                      DefaultCase{"1.32", "DynamicResourceAllocation", true},
                      DefaultCase{"1.32", "DRAAdminAccess", false},
                      DefaultCase{"1.32", "DRAResourceClaimDeviceStatus", false},
                      DefaultCase{"1.34", "DRAAdminAccess", true},
                      DefaultCase{"1.34", "DRAResourceClaimDeviceStatus", true},
                      DefaultCase{"1.34", "DRADeviceTaints", false},
                      DefaultCase{"1.36", "DRADeviceTaints", true},
                      DefaultCase{"1.36", "DRADeviceTaintRules", false},
                      DefaultCase{"1.37", "DRADeviceTaintRules", true},
                      DefaultCase{"1.37", "DRAConsumableCapacity", true},
                      DefaultCase{"1.37", "DRAListTypeAttributes", false},
                      DefaultCase{"1.37", "DRAWorkloadResourceClaims", false},
                      DefaultCase{"1.37", "DRAFractionalCapacityRange", false},
                      DefaultCase{"1.30", "DRAListTypeAttributes", false}));

TEST(Features, ChangesWin) {
  auto features = Features::parse("1.36", "DRADeviceTaints=false, DRAListTypeAttributes=True");
  ASSERT_TRUE(features.ok());
  EXPECT_FALSE(features->on("DRADeviceTaints"));
  EXPECT_TRUE(features->on("DRAListTypeAttributes"));
  EXPECT_EQ(features->minor(), 36);
}

TEST(Features, NamedGatesWinOverAllOfAStage) {
  auto features = Features::parse(
      "1.37", "DRADerivedAttributes=false,AllAlpha=true,AllBeta=false,DRAConsumableCapacity=true");
  ASSERT_TRUE(features.ok());
  EXPECT_TRUE(features->on("DRAListTypeAttributes"));
  EXPECT_FALSE(features->on("DRADerivedAttributes"));
  EXPECT_FALSE(features->on("DRAPartitionableDevices"));
  EXPECT_TRUE(features->on("DRAConsumableCapacity"));
  EXPECT_TRUE(features->on("DRADeviceTaints")) << "is stable";
}

TEST(Features, WhatAGateNeedsTakesItAlong) {
  auto features = Features::parse("1.37", "DRADeviceTaints=false");
  ASSERT_TRUE(features.ok());
  EXPECT_FALSE(features->on("DRADeviceTaintRules"));
}

TEST(Features, AllOfAStageLeavesOutWhatWouldDoNothing) {
  auto alone = Features::parse("1.37", "AllAlpha=true");
  ASSERT_TRUE(alone.ok());
  EXPECT_FALSE(alone->on("PodGroupPreemptionPolicy")) << "GenericWorkload is off";

  auto both = Features::parse("1.37", "AllAlpha=true,AllBeta=true");
  ASSERT_TRUE(both.ok());
  EXPECT_TRUE(both->on("TopologyAwareWorkloadScheduling"));
  EXPECT_TRUE(both->on("CompositePodGroup"));

  auto some = Features::parse("1.37", "AllAlpha=true,GenericWorkload=true");
  ASSERT_TRUE(some.ok());
  EXPECT_TRUE(some->on("CompositePodGroup")) << "all that it needs is on";
}

struct BadCase {
  const char* release;
  const char* changes;
  const char* says;
};

class Refused : public ::testing::TestWithParam<BadCase> {};

TEST_P(Refused, SaysWhatIsKnown) {
  auto features = Features::parse(GetParam().release, GetParam().changes);
  ASSERT_FALSE(features.ok());
  EXPECT_THAT(features.error().message(), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Gates, Refused,
    ::testing::Values(
        BadCase{"1.26", "", "release \"1.26\" is not known; known are 1.27, 1.28"},
        BadCase{"1.30", "Nope=true", "unrecognized feature gate: Nope; release 1.30 has AllAlpha"},
        BadCase{"1.30", "DRAAdminAccess=true", "unrecognized feature gate: DRAAdminAccess"},
        BadCase{"1.37", "DRAControlPlaneController=true", "unrecognized feature gate"},
        BadCase{"1.37", "DRADeviceTaints", "missing bool value for DRADeviceTaints"},
        BadCase{"1.37", "DRADeviceTaints=yes", "invalid value \"yes\""},
        BadCase{"1.37", "DRAWorkloadResourceClaims=true",
                "DRAWorkloadResourceClaims is enabled, but depends on features that are disabled: "
                "[GenericWorkload]"},
        BadCase{"1.37", "DRADeviceTaints=false,DRADeviceTaintRules=true",
                "DRADeviceTaintRules is enabled, but depends on features that are disabled: "
                "[DRADeviceTaints]"},
        BadCase{"1.37", "DRAPartitionableDevices=false,DRADeviceCompatibilityGroups=true",
                "disabled: [DRAPartitionableDevices]"},
        BadCase{"1.37", "DRAConsumableCapacity=false,DRAFractionalCapacityRange=true",
                "disabled: [DRAConsumableCapacity]"},
        BadCase{"1.37", "AllAlpha=false,AllBeta=false,DRAPartitionableDevicesType=true",
                "disabled: [DRAPartitionableDevices DRAResourcePoolStatus]"},
        BadCase{"1.36", "DRAResourceClaimDeviceStatus=false,DRADeviceBindingConditions=true",
                "disabled: [DRAResourceClaimDeviceStatus]"},
        BadCase{"1.36",
                "DRAResourceClaimDeviceStatus=false,"
                "DRAResourceClaimGranularStatusAuthorization=true",
                "disabled: [DRAResourceClaimDeviceStatus]"},
        BadCase{"1.37", "CoordinatedLeaderElection=true", "unrecognized feature gate"},
        BadCase{"1.36", "DRANodeAllocatableResources=true", "unrecognized feature gate"},
        BadCase{"1.34", "PodCertificateRequest=true", "unrecognized feature gate"},
        BadCase{"1.37", "CompositePodGroup=true",
                "disabled: [GenericWorkload TopologyAwareWorkloadScheduling]"},
        BadCase{"1.37", "GenericWorkload=true,CompositePodGroup=true",
                "CompositePodGroup is enabled, but depends on features that are disabled: "
                "[TopologyAwareWorkloadScheduling]"},
        BadCase{"1.36", "GenericWorkload=true,CompositePodGroup=true",
                "unrecognized feature gate: CompositePodGroup"},
        BadCase{"1.37", "DynamicResourceAllocation=false",
                "cannot set feature gate DynamicResourceAllocation to false, feature is locked to "
                "true"}));

}  // namespace
}  // namespace dibs::api
