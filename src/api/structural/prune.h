#pragma once
// Unknown fields of custom resources: what a schema does not specify is dropped and told.

#include <string>
#include <vector>

#include "api/structural/structural.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

/// Drops what the schema does not specify, but for apiVersion, kind and metadata of the root and of
/// embedded resources. `unknown`, when not null, gets the paths ("spec.a[0].b"), sorted.
void prune(json::Value& object, const Schema& schema, std::vector<std::string>* unknown = nullptr);

/// The same of a value inside an object: only an embedded resource has metadata of its own.
void prune_value(json::Value& value, const Schema& schema);

/// What decoding into Go's structs does to built-in kinds, for a custom resource: metadata in
/// normal form, unknown fields dropped, nulls dropped that are neither allowed nor replaced by a
/// default. `unknown` gets the paths of what was dropped. Defaults are not set yet. Errors:
/// bad_request with the message of Go's decoder, without the words that name the kind.
Result<json::Value> decode_custom(const json::Value& raw, const Schema& schema,
                                  std::vector<std::string>& unknown);

}  // namespace dibs::api
