#pragma once
// The language of selectors: what an expression may say about a device, release by release.
//
// A release reads stored expressions with everything it knows; new ones get the library of the
// release before it, so that a cluster can go back, and the parts of the device whose gates are on.

#include "api/devices/selector.h"
#include "cel/cost/cost_estimate.h"
#include "cel/environment.h"

namespace dibs::api {

/// Made once for each language and kept for good: programs refer to it.
const cel::Environment& selector_language(const SelectorEnvironment& environment);

/// How large the parts of a device can be, for the estimate of costs.
std::optional<std::uint64_t> device_size_bound(const cel::ValuePath& path, int release);

/// Whether the attributes may be lists, so that their static type is dyn rather than any.
bool attributes_are_dyn(const SelectorEnvironment& environment);

/// Whether a selector may have this static type.
bool is_selector_type(const cel::Type& type, const SelectorEnvironment& environment);

}  // namespace dibs::api
