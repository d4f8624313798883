#pragma once
// The two models of resource.k8s.io that live under the same resource names.
//
// A structured object (v1) asks for devices and lists devices. A classic one (v1alpha2) names a
// ResourceClass; a driver's controller, or the scheduler by named resources, decides what that
// means. Claims, templates and slices exist in both models under the same keys; the apiVersion they
// are stored with tells them apart.

#include <string_view>

#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

using json::Value;

inline constexpr std::string_view kStructuredVersion = "resource.k8s.io/v1";
inline constexpr std::string_view kClassicVersion = "resource.k8s.io/v1alpha2";

/// Of a stored object.
bool is_classic(const Value& stored);

/// True for kinds that objects of both models have: ResourceClaim, ResourceClaimTemplate,
/// ResourceSlice.
bool has_two_models(std::string_view kind);

/// A stored object in the other model's stored form, as far as that has words for it. A slice shows
/// no devices: what one model's allocator may give away must not be offered by the other's.
Value in_other_model(std::string_view kind, const Value& stored);

/// `existing` with what a client of the other model changed: metadata, reservations, the end of an
/// allocation. `shown` is what he saw, `wanted` what he sent, both in the other model's stored
/// form. Errors: invalid, when he changed anything else.
Result<Value> changed_by_other_model(std::string_view kind, const Value& existing,
                                     const Value& shown, const Value& wanted, bool status_write);

}  // namespace dibs::api
