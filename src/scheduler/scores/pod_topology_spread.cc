// The fewer pods of its kind a place has, by the constraints that are wishes (ScheduleAnyway), the
// better. Nodes without the labels get nothing; where the wishes are the system's own, such a label
// alone does not count.

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "scheduler/filters.h"
#include "scheduler/scores/score.h"

namespace dibs::scheduler {
namespace {

/// Crowding of the candidates; those that lack a label are left out.
struct Crowds {
  std::vector<double> raw;
  std::vector<bool> left_out;
};

const json::Value* place_of(const ScoreRun& run, std::size_t i, const SpreadConstraint& wish) {
  return run.node(run.candidates[i]).label(wish.topology_key);
}

void count(const ScoreRun& run, const SpreadConstraint& wish, bool lenient, Crowds& crowds) {
  std::unordered_map<std::string, std::int64_t> places;
  for (std::size_t i = 0; i < run.candidates.size(); ++i) {
    if (const json::Value* value = place_of(run, i, wish)) {
      places.try_emplace(value->str(), 0);
    } else if (lenient) {
      places.try_emplace("", 0);
    } else {
      crowds.left_out[i] = true;
    }
  }
  for (const auto& [node, pods] : run.state.selected_by_node(run.pod.name_space, wish.selector)) {
    const json::Value* value = node->label(wish.topology_key);
    if (value == nullptr) continue;
    const auto found = places.find(value->str());
    if (found == places.end()) continue;
    if (wish.honor_affinity && !matches_node(run.pod, *node)) continue;
    found->second += pods;
  }
  // Few large places and many small ones weigh the same.
  const double factor = std::log(static_cast<double>(places.size() + 2));
  for (std::size_t i = 0; i < run.candidates.size(); ++i) {
    const json::Value* place = place_of(run, i, wish);
    if (crowds.left_out[i] || place == nullptr) continue;
    const std::int64_t here = places[place->str()];
    crowds.raw[i] += static_cast<double>(here) * factor + static_cast<double>(wish.max_skew - 1);
  }
}

void add(const ScoreRun& run, std::int64_t weight) {
  std::vector<SpreadConstraint> room;
  const std::vector<SpreadConstraint>& spread =
      run.state.owners().spread_of(run.pod, run.profile, room);
  const bool wishes = std::any_of(spread.begin(), spread.end(),
                                  [](const SpreadConstraint& one) { return !one.required; });
  if (!wishes) return;
  const bool lenient = run.profile.system_spread && run.pod.shape->spread.empty();
  Crowds crowds{std::vector<double>(run.candidates.size(), 0),
                std::vector<bool>(run.candidates.size(), false)};
  for (const SpreadConstraint& one : spread) {
    if (!one.required) count(run, one, lenient, crowds);
  }
  double least = std::numeric_limits<double>::max();
  double most = 0;
  for (std::size_t i = 0; i < crowds.raw.size(); ++i) {
    if (crowds.left_out[i]) continue;
    crowds.raw[i] = std::round(crowds.raw[i]);
    least = std::min(least, crowds.raw[i]);
    most = std::max(most, crowds.raw[i]);
  }
  for (std::size_t i = 0; i < crowds.raw.size(); ++i) {
    if (crowds.left_out[i]) continue;
    const double score =
        most == 0 ? kMostScore : kMostScore * (most + least - crowds.raw[i]) / most;
    run.candidates[i].score += weight * static_cast<std::int64_t>(score);
  }
}

}  // namespace

extern const Score kPodTopologySpread;
constinit const Score kPodTopologySpread = {"PodTopologySpread", 2, add};

}  // namespace dibs::scheduler
