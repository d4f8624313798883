// The more of a pod's prioritized requests get an early alternative, the better.

#include <algorithm>

#include "scheduler/scores/score.h"

namespace dibs::scheduler {
namespace {

void add(const ScoreRun& run, std::int64_t weight) {
  std::int64_t most = 0;
  for (const Candidate& candidate : run.candidates) most = std::max(most, candidate.preference);
  if (most == 0) return;
  for (Candidate& candidate : run.candidates) {
    candidate.score += weight * (candidate.preference * kMostScore / most);
  }
}

}  // namespace

extern const Score kDynamicResources;
constinit const Score kDynamicResources = {"DynamicResources", 2, add, true};

}  // namespace dibs::scheduler
