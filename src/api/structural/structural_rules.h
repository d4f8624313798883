#pragma once
// When a schema is structural: every value it speaks about has one known type, found without
// looking into allOf, anyOf, oneOf and not.

#include "api/schema/field_error.h"
#include "json/value.h"

namespace dibs::api {

/// Faults come sorted by their text, as upstream does it.
void validate_structural(const json::Value& schema, const Path& path, FieldErrors& errors);

}  // namespace dibs::api
