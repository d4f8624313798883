#pragma once
// What must hold of an openAPIV3Schema in a definition: that it is structural, that its keywords go
// together, that its defaults are values of it.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

/// Compiles the x-kubernetes-validations of a schema that is right otherwise, and tells what is
/// wrong with them. `path` is that of the schema.
using CelChecker =
    std::function<void(const json::Value& schema, const Path& path, FieldErrors& errors)>;

/// `path`: of the schema's parent, "spec.validation" or "spec.versions[0].schema". `has_status`:
/// the version has a status sub-resource, which narrows what may stand at the root.
void validate_definition_schema(const json::Value& schema, const Path& path, bool has_status,
                                const CelChecker& cel, FieldErrors& errors);

/// The schema that a JSON path of simple members (".spec.a", with `brackets` also ".spec['a']")
/// leads to. Errors: invalid, with upstream's words.
Result<const json::Value*> schema_at_path(std::string_view path, const json::Value& schema,
                                          bool brackets);

/// Calls `visit` with the schema and all schemas inside it, in the order of the document.
void for_each_schema(const json::Value& schema,
                     const std::function<void(const json::Value&)>& visit);

}  // namespace dibs::api
