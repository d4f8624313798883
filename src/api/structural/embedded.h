#pragma once
// Objects inside of custom resources (x-kubernetes-embedded-resource): their apiVersion, kind and
// metadata are decoded and judged as those of any object.

#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "api/structural/structural.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

/// Metadata in normal form. Unknown fields go to `unknown` as "<path>.field". Errors: bad_request
/// in Go's words.
Result<json::Value> decode_metadata(const json::Value& raw, std::string_view path,
                                    std::vector<std::string>& unknown);

/// Brings the metadata of all embedded resources in the object, but not the object's own, to normal
/// form.
Result<> decode_embedded(json::Value& object, const Schema& schema,
                         std::vector<std::string>& unknown);

/// Judges all embedded resources in the object, but not the object itself.
void validate_embedded(const json::Value& object, const Schema& schema, FieldErrors& errors);
/// The same of a value at `path` that may be an embedded resource itself.
void validate_embedded_value(const json::Value& value, const Schema& schema, const Path& path,
                             FieldErrors& errors);

}  // namespace dibs::api
