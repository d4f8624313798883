#pragma once
// What of a pod may change, and how it is bound to a node.

#include "api/schema/field_error.h"
#include "api/schema/kind.h"
#include "base/result.h"
#include "base/time.h"

namespace dibs::api {

/// What a binding says, whatever the pod is like. `name` is that of the URL of pods/NAME/binding,
/// or "". Errors: bad_request for another name, plain for a wrong target.
Result<> check_binding(const Value& binding, std::string_view name);
/// The pod on its node, by a binding that has been checked. Its uid and resourceVersion are
/// preconditions for the caller to check. Errors: conflict for a pod that is bound, being deleted
/// or gated.
Result<Value> bind_pod(const Value& pod, const Value& binding, Time now);

/// A new pod, as a whole.
void validate_pod(const Value& pod, FieldErrors& errors);
/// Metadata apart: everything that must hold of a pod at any time.
void validate_pod_at_any_time(const Value& pod, FieldErrors& errors);

void validate_pod_update(const Value& pod, const Value& old, FieldErrors& errors);
void validate_pod_status_update(const Value& pod, const Value& old, FieldErrors& errors);

/// PUT and PATCH of pods/NAME/ephemeralcontainers: only these are taken.
void prepare_ephemeral_containers(Value& pod, const Value& old);
void validate_ephemeral_containers_update(const Value& pod, const Value& old, FieldErrors& errors);

/// PUT and PATCH of pods/NAME/resize: only resources and resize policies are taken.
void prepare_resize(Value& pod, const Value& old);
void validate_resize(const Value& pod, const Value& old, FieldErrors& errors);

/// What the server makes of a new pod: status, merged selectors. Requests must be final: call after
/// mutating admission, since the QoS class follows from them.
void prepare_pod(Value& pod, Time now);

/// spec fields that differ, "spec.x, spec.y".
std::string changed_fields(const Value& spec, const Value& old);

}  // namespace dibs::api
