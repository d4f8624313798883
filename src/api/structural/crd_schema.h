#pragma once
// What must hold of an openAPIV3Schema in a definition: that it is structural, that its keywords go
// together, that its defaults are values of it.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

/// A schema whose x-kubernetes-validations are to be compiled.
struct CelCheck {
  const json::Value& schema;
  const Path& path;
  /// What is wrong with the schema otherwise. Rules that have such a fault at or below them are
  /// left alone.
  const FieldErrors& faults;
  /// The schema is stored already: that single rules cost too much is forgiven.
  bool is_stored = false;
};

/// A default and the schema whose it is.
struct CelDefault {
  const json::Value& schema;
  const Path& path;  // of the default
  bool is_resource = false;
  /// Work left for all defaults of a definition; negative when it is spent.
  std::int64_t& budget;
};

/// Whoever knows CEL; both may be empty.
struct CelChecker {
  /// Tells what is wrong with the rules of a structural schema.
  std::function<void(const CelCheck& check, FieldErrors& errors)> rules;
  /// Judges a default by the rules at and below it, which may be ones that do not compile.
  std::function<void(const CelDefault& made, FieldErrors& errors)> defaults;
};

/// `path`: of the schema's parent, "spec.validation" or "spec.versions[0].schema". `has_status`:
/// the version has a status sub-resource, which narrows what may stand at the root. `is_stored`:
/// the schema is that of the definition that is replaced.
void validate_definition_schema(const json::Value& schema, const Path& path, bool has_status,
                                bool is_stored, const CelChecker& cel, FieldErrors& errors);

/// The schema that a JSON path of simple members (".spec.a", with `brackets` also ".spec['a']")
/// leads to. `normalized` becomes the path as messages show it: "spec.a", "map[key]". Errors:
/// invalid, with upstream's words.
Result<const json::Value*> schema_at_path(std::string_view path, const json::Value& schema,
                                          bool brackets, std::string* normalized = nullptr);

/// Calls `visit` with the schema and all schemas inside it, in the order of the document.
void for_each_schema(const json::Value& schema,
                     const std::function<void(const json::Value&)>& visit);

}  // namespace dibs::api
