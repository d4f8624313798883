#pragma once
// What releases and models do differently with claims: who takes an allocation back, who may still
// be added to a reservation, and how a pod that was put on a node by hand gets its claims
// allocated. Pure functions; resource_claims.cc carries out what they say.
//
// A classic claim (resource.k8s.io/v1alpha2) is allocated by a controller of its driver, which is
// asked to take it back, or, where it carries the finalizer of its model, by the scheduler; then
// the allocation is simply cleared, as that of a structured claim.

#include <string>
#include <string_view>

#include "json/value.h"

namespace dibs::controllers {

/// Up to 1.27 a claim from a template is called "<pod>-<entry>" and no pod is told so; a
/// reservation ends with the pod itself, and nothing happens to the allocation then.
constexpr bool is_early(int release) { return release <= 27; }

/// The finalizer that the allocator of a claim of this model sets.
std::string_view claim_finalizer(const json::Value& claim);
bool has_claim_finalizer(const json::Value& claim);

/// Nobody uses the claim any more: its allocation goes, or its driver is asked to take it back, or,
/// where it was allocated before anybody used it, it stays.
void end_allocation(json::Value& claim);

/// The claim is allocated, and one more pod may use it.
bool takes_another_pod(const json::Value& claim);

/// A claim that is allocated for the node of its first pod, once a PodSchedulingContext names that.
bool waits_for_node(const json::Value& claim);
/// For a pod that has its node already: there is nothing left to negotiate.
json::Value context_for(const json::Value& pod);

}  // namespace dibs::controllers
