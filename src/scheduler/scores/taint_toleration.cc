// The fewer taints of PreferNoSchedule a pod does not tolerate, the better.

#include <algorithm>

#include "scheduler/scores/score.h"

namespace dibs::scheduler {
namespace {

void add(const ScoreRun& run, std::int64_t weight) {
  const bool none = std::none_of(
      run.candidates.begin(), run.candidates.end(),
      [&](const Candidate& candidate) { return run.row(candidate).has(NodeRow::kAvoided); });
  if (none) {
    for (Candidate& candidate : run.candidates) candidate.score += weight * kMostScore;
    return;
  }
  std::vector<std::int64_t> counts;
  counts.reserve(run.candidates.size());
  for (const Candidate& candidate : run.candidates) {
    const std::vector<Taint>& taints = run.node(candidate).taints;
    counts.push_back(std::count_if(taints.begin(), taints.end(), [&](const Taint& taint) {
      return taint.effect == "PreferNoSchedule" && !tolerates(run.pod.shape->tolerations, taint);
    }));
  }
  add_share_of_most(run, counts, true, weight);
}

}  // namespace

extern const Score kTaintToleration;
constinit const Score kTaintToleration = {"TaintToleration", 3, add};

}  // namespace dibs::scheduler
