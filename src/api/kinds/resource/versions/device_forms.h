#pragma once
// The shapes of requests and devices in the versions of the structured model.
//
// v1 and v1beta2: a request is `exactly` one thing or a list `firstAvailable`; a device is flat.
// v1beta1: what is in `exactly` stands in the request itself; a device has a `basic` part. v1alpha3
// of 1.31 to 1.33: as v1beta1, but capacities are quantities without `{value: …}` around them.

#include "json/value.h"

namespace dibs::api {

using json::Value;

/// A DeviceClaim (`spec.devices`) from v1beta1's form to v1's and back.
Value claim_from_flat(const Value& devices);
Value claim_to_flat(const Value& devices);

/// A ResourceSliceSpec from v1beta1's form to v1's and back; `plain_quantities`: of v1alpha3.
Value slice_from_flat(const Value& spec, bool plain_quantities);
Value slice_to_flat(const Value& spec, bool plain_quantities);

}  // namespace dibs::api
