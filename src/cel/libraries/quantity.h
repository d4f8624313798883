#pragma once
// Quantities as values, for hosts that bind them to variables.

#include "base/quantity.h"
#include "base/semver.h"
#include "cel/value.h"

namespace dibs::cel {

/// From the text, which decides whether it can be an integer; an error value when it is not one.
Value quantity_value(std::string_view text);
/// Requires a value of type kubernetes.Quantity.
const Quantity& quantity_of(const Value& value);

Value semver_value(SemanticVersion version);
/// Requires a value of type kubernetes.Semver.
const SemanticVersion& semver_of(const Value& value);

}  // namespace dibs::cel
