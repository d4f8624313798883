#pragma once
// HorizontalPodAutoscaler: its rules, and its two versions.
//
// autoscaling/v2 is what is stored and judged. autoscaling/v1 knows one target, that of the
// processor; what else an object has is carried in annotations, out and back in, so that neither
// version loses anything of the other. Those annotations are never stored.

#include "api/schema/features.h"
#include "api/schema/kind.h"

namespace dibs::api {

KindRules make_autoscaler_rules(const Features& features);

/// An autoscaling/v1 object, its defaults set, as v2.
Value autoscaler_from_v1(const Value& object);
/// A v2 object as v1 shows it.
Value autoscaler_to_v1(const Value& object);

/// The annotations of v1 that stand for fields of v2 are gone.
void drop_autoscaler_annotations(Value& object);

}  // namespace dibs::api
