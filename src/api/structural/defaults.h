#pragma once
// Defaults of custom resources, and the nulls that stand in their way.

#include "api/structural/structural.h"
#include "json/value.h"

namespace dibs::api {

/// Sets properties that are absent, or null where null is not allowed, to their defaults,
/// everywhere in the value.
void apply_custom_defaults(json::Value& value, const Schema& schema);

/// Drops members that are null where null is neither allowed nor replaced by a default.
void prune_nulls(json::Value& value, const Schema& schema);

}  // namespace dibs::api
