#pragma once
// Volumes of a pod: each has one source, and a name that mounts refer to.

#include <map>
#include <string>
#include <string_view>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// The volumes that are in order, by name; mounts may refer to these only.
using Volumes = std::map<std::string, Value, std::less<>>;

/// `metadata` is that of the pod or template.
Volumes validate_volumes(const Value& volumes, const Value& metadata, const Path& path,
                         FieldErrors& errors);

/// "must be a relative path", "must not contain '..'".
void validate_descending_path(const Value& value, const Path& path, FieldErrors& errors);
void validate_no_backsteps(const Value& value, const Path& path, FieldErrors& errors);

/// A reference to a field of the pod, in env and downward API volumes.
void validate_field_ref(const Value& ref, bool in_volume, const Path& path, FieldErrors& errors);
void validate_resource_field_ref(const Value& ref, bool in_volume, const Path& path,
                                 FieldErrors& errors);

}  // namespace dibs::api
