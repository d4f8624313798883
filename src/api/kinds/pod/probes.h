#pragma once
// Probes and lifecycle hooks of containers: each has one handler.

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// livenessProbe, readinessProbe and startupProbe of a container.
void validate_probes(const Value& container, std::int64_t grace_seconds, const Path& path,
                     FieldErrors& errors);
void validate_lifecycle(const Value& lifecycle, const Value& os, std::int64_t grace_seconds,
                        const Path& path, FieldErrors& errors);
/// A port by number or name.
void validate_port_reference(const Value& port, const Path& path, FieldErrors& errors);

}  // namespace dibs::api
