#pragma once
// Values of objects as expressions see them: a JSON tree read in place through its schema.
//
// Objects and maps become maps, with properties under their escaped names; lists compare and add as
// their list type says; formatted strings become timestamps, durations and bytes. A property that
// is null is absent. Data that does not fit its schema is an error value.

#include "api/expressions/schema_types.h"
#include "cel/value.h"
#include "json/value.h"

namespace dibs::api {

/// `tree` and `schema` must outlive the value and everything derived from it.
cel::Value typed_value(const json::Value& tree, const TypedSchema& schema);

}  // namespace dibs::api
