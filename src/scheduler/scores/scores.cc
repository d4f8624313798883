#include "scheduler/scores/scores.h"

#include <algorithm>
#include <array>

namespace dibs::scheduler {

extern const Score kTaintToleration;
extern const Score kNodeAffinity;
extern const Score kNodeResourcesFit;
extern const Score kVolumeBinding;
extern const Score kPodTopologySpread;
extern const Score kInterPodAffinity;
extern const Score kDynamicResources;
extern const Score kNodeResourcesBalancedAllocation;
extern const Score kImageLocality;

namespace {

constexpr std::array kAll = {
    &kTaintToleration,   &kNodeAffinity,     &kNodeResourcesFit, &kVolumeBinding,
    &kPodTopologySpread, &kInterPodAffinity, &kDynamicResources, &kNodeResourcesBalancedAllocation,
    &kImageLocality,
};

void add_scores(const ScoreRun& run, bool of_devices) {
  for (const auto& [score, weight] : run.profile.scores) {
    if (score->of_devices == of_devices) score->add(run, weight);
  }
}

}  // namespace

const Score* find_score(std::string_view name) {
  const auto found = std::find_if(kAll.begin(), kAll.end(),
                                  [&](const Score* score) { return score->name == name; });
  return found != kAll.end() ? *found : nullptr;
}

void score_nodes(ClusterState& state, const Pod& pod, const Profile& profile,
                 std::vector<Candidate>& candidates) {
  // The only one needs no rank.
  if (candidates.size() < 2) return;
  add_scores({state, pod, profile, candidates}, false);
}

void score_devices(ClusterState& state, const Pod& pod, const Profile& profile,
                   std::vector<Candidate>& candidates) {
  add_scores({state, pod, profile, candidates}, true);
}

void add_share_of_most(const ScoreRun& run, const std::vector<std::int64_t>& values, bool reverse,
                       std::int64_t weight) {
  const std::int64_t most = *std::max_element(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t share = most > 0 ? values[i] * kMostScore / most : 0;
    run.candidates[i].score += weight * (reverse ? kMostScore - share : share);
  }
}

}  // namespace dibs::scheduler
