#pragma once
// The parts of a definition that can be judged alone: names, the scale subresource, columns,
// selectable fields, a word of deprecation. They stand in a version, or beside all of them
// (crd_rules.cc).

#include "api/schema/field_error.h"
#include "json/value.h"

namespace dibs::api {

void check_definition_label(const json::Value& value, const Path& path, FieldErrors& errors);
/// Those that are asked for, or those that were accepted.
void validate_definition_names(const json::Value& names, const Path& path, FieldErrors& errors);
void validate_scale(const json::Value& scale, const Path& path, FieldErrors& errors);
void validate_columns(const json::Value& columns, const Path& path, FieldErrors& errors);
/// `schema`: the one that has the fields.
void validate_selectable(const json::Value& fields, const json::Value& schema, const Path& path,
                         FieldErrors& errors);
void check_deprecation(const json::Value& version, const Path& path, FieldErrors& errors);

}  // namespace dibs::api
