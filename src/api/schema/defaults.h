#pragma once
// Constant defaults of the schema. What depends on other fields is in the rules of a kind.

#include "api/schema/schema.h"
#include "json/value.h"

namespace dibs::api {

/// Sets fields that are absent, or zero and not a pointer, to Field::default_value, in every object
/// there is. The object is in normal form and stays so.
void apply_defaults(json::Value& object, const Schema& schema);

}  // namespace dibs::api
