#pragma once
// Which of the nodes that can take a pod is the best: the scores of Kubernetes with the weights of
// the profile. Every plugin's score lies between 0 and 100 before its weight.

#include <cstdint>
#include <vector>

#include "scheduler/cluster_state.h"
#include "scheduler/profiles.h"

namespace dibs::scheduler {

struct Candidate {
  std::size_t index = 0;  // of the node
  std::int64_t score = 0;
  /// Of prioritized lists: the sum over requests of how early the alternative stands.
  std::int64_t preference = 0;
};

/// Fills in `score` without `preference`.
void score_nodes(ClusterState& state, const Pod& pod, const Profile& profile,
                 std::vector<Candidate>& candidates);
/// Adds what `preference` is worth.
void score_preferences(const Profile& profile, std::vector<Candidate>& candidates);

}  // namespace dibs::scheduler
