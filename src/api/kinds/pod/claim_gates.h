#pragma once
// The gates of dynamic resource allocation in pods and in templates of pods.

#include "api/kinds/rule_table.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// resourceClaims and the containers' claims go when DynamicResourceAllocation is off and `old`
/// (null for a new object) has none.
void drop_disabled_pod_claims(Value& spec, const Value* old, const Features& features);
/// Statuses of claims and of the health of devices; `old` is the pod as it was.
void drop_disabled_pod_status(Value& status, const Value& old, const Features& features);

/// Lays them over the rules of all kinds with pods in them, which must be in the table already.
void add_pod_claim_gates(RuleTable& table);

}  // namespace dibs::api
