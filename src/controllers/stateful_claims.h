#pragma once
// Who owns the claims of a StatefulSet's pods: what spec.persistentVolumeClaimRetentionPolicy says,
// as ownerReferences that the garbage collector acts on.
//
//   whenScaled  whenDeleted   owner of the claim of a pod that is wanted   of one that is scaled
//   away Retain      Retain        nobody                                       nobody Retain
//   Delete        the set                                      the set Delete      Retain nobody
//   the pod Delete      Delete        the set                                      the pod
//
// Pure functions.

#include "json/value.h"

namespace dibs::controllers {

/// The claim as the policy wants it; equal to `claim` where it is so, and where it is left alone
/// because it belongs to a set or pod of that name that is gone.
json::Value retained_claim(const json::Value& set, const json::Value& pod,
                           const json::Value& claim);
/// The policy would own a claim that somebody else controls.
bool has_other_controller(const json::Value& set, const json::Value& pod, const json::Value& claim);
/// It goes with the former pod of that name, so the next one must wait until it is gone.
bool goes_with_former_pod(const json::Value& set, const json::Value& pod, const json::Value& claim);

}  // namespace dibs::controllers
