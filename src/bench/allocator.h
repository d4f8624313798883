#pragma once
// dibs bench allocator: recorded cases of Kubernetes' allocator put to ours.
//
// For whoever wants to know whether the answers are the same, and what they cost. Files hold cases
// as JSON, an array or one a line, packed with gzip or not.

#include <string>
#include <vector>

#include "bench/outcome.h"

namespace dibs::bench {

/// The status is 0 when every case has the recorded answer, 1 when one differs or has none, 2 when
/// a file cannot be read.
Outcome bench_allocator(const std::vector<std::string>& files);

}  // namespace dibs::bench
