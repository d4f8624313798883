#pragma once
// The functions and types that every environment has.

#include "cel/environment.h"

namespace dibs::cel {

void add_standard_library(Environment& environment, bool mixed_order);
/// Timestamps and durations; part of the above.
void add_time_functions(Environment& environment);

}  // namespace dibs::cel
