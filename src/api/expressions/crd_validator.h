#pragma once
// x-kubernetes-validations when an object is written: every rule at every value it stands at.
//
// A rule sees its value as self and, in an update, the value that was there as oldSelf. Items of
// keyed lists are found again by their keys; those of other lists have no past. A rule that fails
// for a value that is as it was only warns, unless it is about the change itself.

#include <cstdint>

#include "api/structural/crd_schema.h"
#include "api/structural/custom_rules.h"

namespace dibs::api {

/// Work that all rules together may spend on one object, and one evaluation alone.
inline constexpr std::int64_t kObjectBudget = 10'000'000;
inline constexpr std::uint64_t kEvaluationLimit = 1'000'000;

/// Empty when the schema has no rules.
CelValidator make_cel_validator(const json::Value& schema);

/// Judges a default twice: as one that was there already, and as one that is new.
void judge_default(const CelDefault& made, FieldErrors& errors);

}  // namespace dibs::api
