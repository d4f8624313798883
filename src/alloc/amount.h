#pragma once
// Amounts of counters and capacities while devices are being chosen: fixed point, in billionths.
//
// The API's quantities have no bound and arithmetic on them allocates; the search compares and adds
// them at every step. A billionth is the finest a quantity can say. Amounts saturate at about 10^28
// units, far above anything that is counted.

#include <cstdint>

#include "base/quantity.h"

namespace dibs::alloc {

__extension__ using Amount = __int128;

inline constexpr std::int64_t kAmountUnit = 1'000'000'000;

Amount to_amount(const Quantity& quantity);

}  // namespace dibs::alloc
