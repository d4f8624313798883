#pragma once
// The plain walk: what Kubernetes does, device after device, for as long as it is cheap.

#include <cstdint>

#include "alloc/attempt.h"
#include "alloc/search.h"

namespace dibs::alloc {

/// How a walk, or a part of it, ended.
enum class End : std::uint8_t {
  found,
  nothing,
  too_many,  // more results than a claim may have; other alternatives may need fewer
  fault,     // Attempt::error() says what
  gave_up,   // too many steps
};

/// Requires Attempt::prepare(). On End::found the attempt holds the devices. On End::gave_up it
/// holds nothing.
End walk(Attempt& attempt, std::uint64_t most_steps, SearchStats& stats);

}  // namespace dibs::alloc
