#pragma once
// The rules of a PodSpec, wherever it stands: in a pod or in the template of a workload.

#include <string>
#include <vector>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// Defaults of the versioned API that a schema's constants cannot say. In a template some are left
/// to the pod: requests are not filled from limits there.
void set_pod_spec_defaults(Value& spec, bool in_template);
/// Defaults of template["spec"]; what every workload calls for its pod template.
void set_pod_template_defaults(Value& pod_template);

struct PodOptions {
  /// The metadata of the pod or template, for annotations that count.
  const Value* metadata = nullptr;
  /// In a pod template: rules that only pods know are left out.
  bool in_template = false;
  /// The spec as stored, on update: what it already does wrong may stay.
  const Value* old_spec = nullptr;
};

void validate_pod_spec(const Value& spec, const Path& path, const PodOptions& options,
                       FieldErrors& errors);
/// Labels, annotations and spec of a PodTemplateSpec; `old` is the stored template on update, else
/// null.
void validate_pod_template(const Value& pod_template, const Path& path, FieldErrors& errors,
                           const Value* old = nullptr);

/// Texts for Warning headers about a pod template ("spec.template.spec…", path "spec.template") or
/// a pod (empty path); `old` is null on create.
std::vector<std::string> pod_template_warnings(const Value& pod_template, const Path* path,
                                               const Value* old);

}  // namespace dibs::api
