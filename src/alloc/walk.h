#pragma once
// The plain walk: what Kubernetes does, device after device, for as long as it is cheap.

#include <cstdint>

#include "alloc/attempt.h"
#include "alloc/order.h"
#include "alloc/search.h"

namespace dibs::alloc {

/// Requires Attempt::prepare(). On End::found the attempt holds the devices. On End::gave_up it
/// holds nothing.
End walk(Attempt& attempt, std::uint64_t most_steps, SearchStats& stats);

}  // namespace dibs::alloc
