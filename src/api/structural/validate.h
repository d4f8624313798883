#pragma once
// Judges values by the keywords of their schema, fault by fault as kube-openapi's validator finds
// them.
//
// Ratcheting: on update a fault in a part that is equal to its old value is forgiven, so that
// objects written before a schema became stricter can still be changed elsewhere. Parts are matched
// by property name and, in lists of type map, by key; other lists are one part.

#include "api/schema/field_error.h"
#include "api/structural/structural.h"
#include "json/value.h"

namespace dibs::api {

/// `path` is where the value stands in the object: a default Path for the object itself.
void validate_value(const json::Value& value, const Schema& schema, const Path& path,
                    FieldErrors& errors);

/// The same for a value that replaces `old`.
void validate_changed_value(const json::Value& value, const json::Value& old, const Schema& schema,
                            const Path& path, FieldErrors& errors);

}  // namespace dibs::api
