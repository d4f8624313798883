#pragma once
// How a definition's versions are converted into each other.

#include "api/schema/field_error.h"
#include "json/value.h"

namespace dibs::api {

/// `conversion` is spec.conversion, `old` that of the object it replaces or null. A bundle of
/// certificates is looked at only when the definition is established: before that an operator may
/// still have to fill it in.
void validate_conversion(const json::Value& conversion, const json::Value* old, bool established,
                         const Path& path, FieldErrors& errors);

}  // namespace dibs::api
