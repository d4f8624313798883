#pragma once
// Which keywords a schema in a definition may have, and which of them go together.

#include "api/schema/field_error.h"
#include "json/value.h"

namespace dibs::api {

void validate_openapi(const json::Value& schema, const Path& path, FieldErrors& errors);

}  // namespace dibs::api
