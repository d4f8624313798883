#pragma once
// The search for hard cases: the plain walk with what provably leads nowhere cut off.
//
// Of a class of equal devices only the lowest free one is tried; of equal bins in equal states only
// the first. Dead ends are remembered by what of them matters to the rest (how many of each class
// are taken, what constraints hold, what is left of counters and capacities), so that another way
// to the same state ends at once. Bounds end what cannot be served any more.

#include <cstdint>

#include "alloc/attempt.h"
#include "alloc/search.h"
#include "alloc/walk.h"

namespace dibs::alloc {

/// Requires Attempt::prepare() and nothing taken. As walk().
End deep_search(Attempt& attempt, std::uint64_t most_steps, SearchStats& stats);

}  // namespace dibs::alloc
