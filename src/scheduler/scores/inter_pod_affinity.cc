// Where pods are that this one prefers to be with, or that prefer to be with it; and where those
// are that would rather not.

#include <algorithm>
#include <unordered_map>

#include "scheduler/scores/score.h"

namespace dibs::scheduler {
namespace {

/// What a place is worth, by label key and value.
using Worth = std::unordered_map<std::string, std::unordered_map<std::string, std::int64_t>>;

Worth worth_of_places(const ScoreRun& run) {
  Worth worth;
  const bool prefers = !run.pod.shape->preferred_affinity.empty();
  if (run.profile.ignore_preferred_terms && !prefers) return worth;
  for (const PodTerm& term : run.pod.shape->preferred_affinity) {
    for (const auto& [value, count] : run.state.selected_by(term)) {
      worth[term.topology_key][value] += term.weight * count;
    }
  }
  for (const auto& [id, carried] : run.state.carried_terms()) {
    if (carried.kind == TermKind::required_anti_affinity) continue;
    if (!run.state.selects(carried.term, run.pod)) continue;
    const std::int64_t each = carried.kind == TermKind::required_affinity
                                  ? run.profile.hard_affinity_weight
                                  : carried.term.weight;
    for (const auto& [value, count] : carried.carriers) {
      worth[carried.term.topology_key][value] += each * count;
    }
  }
  return worth;
}

void add(const ScoreRun& run, std::int64_t weight) {
  const Worth worth = worth_of_places(run);
  if (worth.empty()) return;
  std::vector<std::int64_t> sums;
  sums.reserve(run.candidates.size());
  for (const Candidate& candidate : run.candidates) {
    std::int64_t sum = 0;
    for (const auto& [key, values] : worth) {
      const json::Value* value = run.node(candidate).label(key);
      if (value == nullptr) continue;
      const auto found = values.find(value->str());
      if (found != values.end()) sum += found->second;
    }
    sums.push_back(sum);
  }
  const auto [least, most] = std::minmax_element(sums.begin(), sums.end());
  if (*least == *most) return;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    run.candidates[i].score += weight * ((sums[i] - *least) * kMostScore / (*most - *least));
  }
}

}  // namespace

extern const Score kInterPodAffinity;
constinit const Score kInterPodAffinity = {"InterPodAffinity", 2, add};

}  // namespace dibs::scheduler
