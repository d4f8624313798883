#pragma once
// The functions and types that every environment has.

#include "cel/environment.h"

namespace dibs::cel {

void add_standard_library(Environment& environment, const StandardOptions& options);
/// Timestamps and durations; part of the above.
void add_time_functions(Environment& environment);
/// duration(1): declared by old implementations, where it then fails.
void add_duration_of_int(Environment& environment);

}  // namespace dibs::cel
