#pragma once
// dibs bench allocator: recorded cases of Kubernetes' allocator put to ours.
//
// For whoever wants to know whether the answers are the same, and what they cost. Files hold cases
// as JSON, an array or one a line, packed with gzip or not.

#include <string>
#include <vector>

namespace dibs::cli {

/// What the command prints, and its exit status: 0 when every case has the recorded answer, 1 when
/// one differs or has none, 2 when a file cannot be read.
struct BenchOutcome {
  int status = 0;
  std::string output = {};
  std::string errors = {};
};

BenchOutcome bench_allocator(const std::vector<std::string>& files);

}  // namespace dibs::cli
