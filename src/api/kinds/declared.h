#pragma once
// Judges objects by the rules that schema texts declare beside fields (schema/declared.h).
//
// An update is judged with the object that it replaces: what has not changed is not judged again.
// Paths and values in messages are those of the version that the schema is of.

#include <string_view>

#include "api/schema/features.h"
#include "api/schema/field_error.h"
#include "api/schema/schema.h"

namespace dibs::api {

/// `old` is null on create.
void check_declared(const Schema& schema, const json::Value& object, const json::Value* old,
                    const Features& features, FieldErrors& errors);

/// The formats of declared rules, by their names: short-name, long-name, path-segment, caseless,
/// label-key, uuid, pool-name, fully-qualified, extended-resource.
void check_declared_format(std::string_view format, std::string_view text, const Path& path,
                           FieldErrors& errors);

}  // namespace dibs::api
