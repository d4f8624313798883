#pragma once
// Lists of type set and map have no two equal items.

#include "api/schema/field_error.h"
#include "api/structural/structural.h"
#include "json/value.h"

namespace dibs::api {

/// Tells the first repetition of each item: "spec.set[2]: Duplicate value: "a"".
void validate_list_types(const json::Value& object, const Schema& schema, FieldErrors& errors);

}  // namespace dibs::api
