#pragma once
// Selectors of resource.k8s.io/v1alpha2, Kubernetes 1.30: instances instead of devices.
//
// Attributes lie in one map per type, each a variable: attributes.int["x"],
// attributes.string["model"]. Everything is typed, there are no domains and no defaults, and only
// what is exactly a boolean is a selector. Neither length nor estimated cost is limited.

#include "api/devices/selector.h"

namespace dibs::api {

/// `stored`: accepted before, so read with all that 1.30 knows.
Selector compile_named_resources(std::string_view expression, bool stored);

void validate_named_resources(std::string_view expression, bool stored, const Path& path,
                              FieldErrors& errors);

}  // namespace dibs::api
