#pragma once
// What depends on version and release without being the shape of an object: deprecations and field
// selectors of resource.k8s.io.

#include <string>
#include <string_view>
#include <vector>

#include "api/schema/kind.h"

namespace dibs::api {

/// The text of the Warning that every answer carries, or "". `minor` is the release answered as.
std::string resource_deprecation(std::string_view version, std::string_view kind, int minor);

/// The fields that a field selector may name beside metadata.name (and metadata.namespace), on
/// objects as the version shows them.
std::vector<SelectableField> resource_selectable(std::string_view version, std::string_view kind,
                                                 int minor);

}  // namespace dibs::api
