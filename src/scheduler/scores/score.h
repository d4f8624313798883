#pragma once
// The plug point of scores: what speaks for one of the nodes that can take a pod.
//
// A score is a file in this folder with a Score in it, and a line in scores.cc. It is asked once
// per batch of candidates, never about one, so that it can look up what is the same for all of them
// once and return at once when it has nothing to say: most pods prefer nothing. Candidates are a
// hundred or more per attempt; what the rows have (node_row.h) costs nothing, a NodeInfo a cache
// miss.
//
// Owner: that of the state.

#include <cstdint>
#include <vector>

#include "scheduler/cluster_state.h"
#include "scheduler/profiles.h"

namespace dibs::scheduler {

/// What the best node gets before the weight.
inline constexpr std::int64_t kMostScore = 100;

struct Candidate {
  std::size_t index = 0;  // of the node
  std::int64_t score = 0;
  /// Of prioritized lists: the sum over requests of how early the alternative stands.
  std::int64_t preference = 0;
};

/// What there is to judge.
struct ScoreRun {
  ClusterState& state;
  const Pod& pod;
  const Profile& profile;
  std::vector<Candidate>& candidates;

  const NodeRow& row(const Candidate& candidate) const { return state.rows()[candidate.index]; }
  const NodeInfo& node(const Candidate& candidate) const { return *state.nodes()[candidate.index]; }
};

struct Score {
  const char* name;     // of the plugin
  std::int64_t weight;  // in a profile that does not name it
  /// Adds to each candidate `weight` times what it is worth, 0 to kMostScore.
  void (*add)(const ScoreRun& run, std::int64_t weight);
  /// It judges the devices that were found, and so is asked after the others.
  bool of_devices = false;
};

/// Adds `weight` times the share of the highest value; `reverse`: the lowest is the best.
void add_share_of_most(const ScoreRun& run, const std::vector<std::int64_t>& values, bool reverse,
                       std::int64_t weight);

}  // namespace dibs::scheduler
