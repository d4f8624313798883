#pragma once
// What the expression of a mutation came to, made to an object.
//
// A configuration (Object{…}) is laid over the object as server-side apply would lay it, but owns
// nothing. It must not touch what is atomic: who names one field of an atomic structure would take
// all others away without knowing. Operations are those of a JSON patch.
//
// Errors are bad_request, in words for the user.

#include "api/schema/schema.h"
#include "base/result.h"
#include "cel/value.h"
#include "json/value.h"

namespace dibs::api {

enum class PatchForm : std::uint8_t { configuration, operations };

/// `configuration` is of type Object. The result is raw.
Result<json::Value> lay_configuration(const json::Value& object, const cel::Value& configuration,
                                      const Schema& schema);
/// `operations` is a list of JSONPatch. Where a test among them fails, nothing changes.
Result<json::Value> apply_operations(const json::Value& object, const cel::Value& operations);

}  // namespace dibs::api
