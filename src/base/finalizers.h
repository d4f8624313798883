#pragma once
// Finalizers that mean something to this program: what must happen before an object goes.

#include <string_view>

namespace dibs {

inline constexpr std::string_view kForegroundFinalizer =
    "foregroundDeletion";                                       // dependents go first
inline constexpr std::string_view kOrphanFinalizer = "orphan";  // dependents forget it first
/// In the spec of a namespace: its content goes first.
inline constexpr std::string_view kNamespaceFinalizer = "kubernetes";
/// Of a definition: its objects go first.
inline constexpr std::string_view kDefinitionFinalizer =
    "customresourcecleanup.apiextensions.k8s.io";
/// Of a claim: it is allocated.
inline constexpr std::string_view kClaimFinalizer = "resource.kubernetes.io/delete-protection";
/// Of a claim of v1alpha2: the scheduler has allocated it, not a controller of its driver.
inline constexpr std::string_view kNamedClaimFinalizer = "dra.k8s.io/delete-protection";
/// Of a pod: its job has not counted it yet.
inline constexpr std::string_view kJobFinalizer = "batch.kubernetes.io/job-tracking";
inline constexpr std::string_view kVolumeClaimFinalizer = "kubernetes.io/pvc-protection";
inline constexpr std::string_view kVolumeFinalizer = "kubernetes.io/pv-protection";

/// Of a group of pods: its pods go first.
inline constexpr std::string_view kPodGroupFinalizer = "scheduling.k8s.io/podgroup-protection";

/// Those that the API knows without a domain.
constexpr bool is_plain_finalizer(std::string_view name) {
  return name == kNamespaceFinalizer || name == kOrphanFinalizer || name == kForegroundFinalizer;
}

}  // namespace dibs
