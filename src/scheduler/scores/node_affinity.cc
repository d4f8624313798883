// The more of the preferred terms of the pod and of its profile hold for the node, by their
// weights, the better.

#include "scheduler/scores/score.h"

namespace dibs::scheduler {
namespace {

void add(const ScoreRun& run, std::int64_t weight) {
  const std::vector<PreferredNodes>& own = run.pod.shape->preferred_nodes;
  const std::vector<PreferredNodes>& added = run.profile.added_preferences;
  if (own.empty() && added.empty()) return;
  std::vector<std::int64_t> sums;
  sums.reserve(run.candidates.size());
  for (const Candidate& candidate : run.candidates) {
    std::int64_t sum = 0;
    for (const auto* list : {&own, &added}) {
      for (const PreferredNodes& preferred : *list) {
        if (preferred.selector.matches(run.node(candidate).place)) sum += preferred.weight;
      }
    }
    sums.push_back(sum);
  }
  add_share_of_most(run, sums, false, weight);
}

}  // namespace

extern const Score kNodeAffinity;
constinit const Score kNodeAffinity = {"NodeAffinity", 2, add};

}  // namespace dibs::scheduler
