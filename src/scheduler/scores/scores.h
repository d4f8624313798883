#pragma once
// Which of the nodes that can take a pod is the best: the scores of Kubernetes with the weights of
// the profile.

#include <string_view>
#include <vector>

#include "scheduler/scores/score.h"

namespace dibs::scheduler {

/// Null when there is none of the name.
const Score* find_score(std::string_view name);

/// Fills in `score`, as far as devices have no say.
void score_nodes(ClusterState& state, const Pod& pod, const Profile& profile,
                 std::vector<Candidate>& candidates);
/// Adds what the devices say.
void score_devices(ClusterState& state, const Pod& pod, const Profile& profile,
                   std::vector<Candidate>& candidates);

}  // namespace dibs::scheduler
