#pragma once
// Where a pod may run: node selectors, affinity, spreading, tolerations, gates; and the claims it
// needs.

#include <string>
#include <vector>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// A core/v1 NodeSelector: terms that must not be empty.
void validate_node_selector(const Value& selector, const Path& path, FieldErrors& errors);
/// One term: expressions over labels and over metadata.name.
void validate_node_selector_term(const Value& term, const Path& path, FieldErrors& errors);
/// Also those of RuntimeClasses and claims.
void validate_tolerations(const Value& tolerations, const Path& path, FieldErrors& errors);
/// NoSchedule, PreferNoSchedule or NoExecute.
void validate_taint_effect(const Value& effect, const Path& path, FieldErrors& errors);

void validate_affinity(const Value& affinity, const Path& path, FieldErrors& errors);
void validate_topology_spread(const Value& constraints, const Path& path, FieldErrors& errors);
void validate_scheduling_group(const Value& group, const Path& path, FieldErrors& errors);
void validate_scheduling_gates(const Value& gates, const Path& path, FieldErrors& errors);
void validate_readiness_gates(const Value& gates, const Path& path, FieldErrors& errors);

/// spec.resourceClaims, in the form of today or with `source` as before 1.31. `metadata` is that of
/// the pod.
void validate_pod_claims(const Value& claims, const Value& metadata, const Path& path,
                         FieldErrors& errors);
/// The names in spec.resourceClaims, sorted.
std::vector<std::string> pod_claim_names(const Value& spec);

/// On create: what matchLabelKeys and mismatchLabelKeys select by the pod's own labels becomes part
/// of the label selectors of affinity terms and spread constraints.
void merge_match_label_keys(Value& pod);

}  // namespace dibs::api
