#pragma once
// Annotations of pods that the API itself gives a meaning to.

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

inline constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";
inline constexpr std::string_view kAppArmorPrefix =
    "container.apparmor.security.beta.kubernetes.io/";

void validate_pod_annotations(const Value& annotations, const Value& spec, const Path& path,
                              FieldErrors& errors);
/// Those that fix what runs may not change.
void validate_pod_annotations_update(const Value& annotations, const Value& old, const Path& path,
                                     FieldErrors& errors);
/// Profiles named in annotations become those of the containers, where these name none.
void apply_app_armor_annotations(Value& pod);

}  // namespace dibs::api
