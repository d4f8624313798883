#pragma once
// Security contexts of pods and containers, and what an operating system rules out.

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// Of a container; `host_users`: the pod shares the users of its node.
void validate_security_context(const Value& context, bool host_users, const Path& path,
                               FieldErrors& errors);
/// spec.securityContext and the host namespaces beside it.
void validate_pod_security_context(const Value& spec, const Path& spec_path, FieldErrors& errors);
/// hostUsers=false goes with no other host namespace.
void validate_host_users(const Value& spec, const Path& spec_path, FieldErrors& errors);
/// spec.os and the fields that the system named there does not know.
void validate_os(const Value& spec, const Path& spec_path, FieldErrors& errors);
/// HostProcess containers: all or none, and only in the network of the node.
void validate_windows_host_process(const Value& spec, const Path& spec_path, FieldErrors& errors);

}  // namespace dibs::api
