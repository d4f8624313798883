#pragma once
// The scale of a workload: the sub-resource through which only the number of replicas is seen and
// set.
//
// Pure functions between an object and its autoscaling/v1 Scale. Deployments, ReplicaSets,
// StatefulSets and ReplicationControllers keep their numbers at fixed places; a custom resource
// names the places in its definition.

#include <string>
#include <string_view>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"
#include "base/result.h"

namespace dibs::api {

/// The Scale of a built-in workload.
Value scale_of(const Value& object);

/// The object with the replicas of the Scale. It takes the Scale's resourceVersion and uid as its
/// own, so that the write that follows is conditional exactly if the Scale said so. Errors:
/// invalid, naming the Scale.
Result<Value> apply_scale(const Value& object, const Value& scale);

/// Where a custom resource keeps its numbers: ".spec.replicas". `label_selector` may be empty.
struct ScalePaths {
  std::string spec_replicas;
  std::string status_replicas;
  std::string label_selector;
};

/// The Scale of a custom resource. For an object without spec replicas: error internal on read;
/// while writing (`for_update`) a Scale without spec.replicas.
Result<Value> scale_of_custom(const Value& object, const ScalePaths& paths,
                              bool for_update = false);
/// Notes on the Scale of an object without spec replicas that it has none: what a patch leaves like
/// that is refused by apply_scale_custom().
void mark_without_replicas(Value& scale, const Value& object, const ScalePaths& paths);
/// As apply_scale(); whether the number is allowed is said by the kind's validation.
Result<Value> apply_scale_custom(const Value& object, const Value& scale, const ScalePaths& paths);

}  // namespace dibs::api
