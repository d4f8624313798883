#pragma once
// Containers of a pod: regular, init (with sidecars among them) and ephemeral ones.

#include <string>
#include <vector>

#include "api/kinds/pod/volumes.h"
#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// What containers are judged against.
struct ContainerScope {
  const Value& spec;
  const Volumes& volumes;
  /// Names in spec.resourceClaims, sorted.
  const std::vector<std::string>& claim_names;
  std::int64_t grace_seconds = 0;
  bool host_users = true;
};

/// `path` is that of the pod spec.
void validate_containers(const ContainerScope& scope, const Path& path, FieldErrors& errors);
void validate_init_containers(const ContainerScope& scope, const Path& path, FieldErrors& errors);
void validate_ephemeral_containers(const ContainerScope& scope, const Path& path,
                                   FieldErrors& errors);

/// Only of pods, not of templates: an image has no blanks around it.
void validate_image_blanks(const Value& containers, const Path& path, FieldErrors& errors);

}  // namespace dibs::api
