#include "scheduler/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "scheduler/filters.h"

namespace dibs::scheduler {
namespace {

constexpr std::int64_t kMost = 100;
/// What the required affinity of an assigned pod towards the new one is worth.
constexpr std::int64_t kHardAffinityWeight = 1;

using Scores = std::vector<std::int64_t>;

std::int64_t free_share(std::int64_t wanted, std::int64_t there) {
  if (there <= 0 || wanted > there) return 0;
  return (there - wanted) * kMost / there;
}

std::int64_t least_allocated(const ScoreRequests& wanted, const NodeRow& row) {
  std::int64_t sum = 0;
  std::int64_t weights = 0;
  if (row.cpu > 0) {
    sum += free_share(row.scored_cpu + wanted.cpu, row.cpu);
    ++weights;
  }
  if (row.memory > 0) {
    sum += free_share(row.scored_memory + wanted.memory, row.memory);
    ++weights;
  }
  return weights > 0 ? sum / weights : 0;
}

std::int64_t balanced(const Resources& wanted, const NodeRow& row) {
  const auto share = [](std::int64_t amount, std::int64_t there) {
    return std::min(1.0, static_cast<double>(amount) / static_cast<double>(there));
  };
  if (row.cpu <= 0 || row.memory <= 0) return kMost;
  const double cpu = share(row.used_cpu + wanted.cpu, row.cpu);
  const double memory = share(row.used_memory + wanted.memory, row.memory);
  return static_cast<std::int64_t>((1.0 - std::abs(cpu - memory) / 2) * kMost);
}

void add_share_of_most(const Scores& raw, bool reverse, std::int64_t weight,
                       std::vector<Candidate>& out) {
  const std::int64_t most = *std::max_element(raw.begin(), raw.end());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    std::int64_t score = most > 0 ? raw[i] * kMost / most : 0;
    if (reverse) score = kMost - score;
    out[i].score += weight * score;
  }
}

void add_taints(const ClusterState& state, const Pod& pod, std::int64_t weight,
                std::vector<Candidate>& candidates) {
  const std::vector<NodeRow>& rows = state.rows();
  const bool none = std::none_of(
      candidates.begin(), candidates.end(),
      [&](const Candidate& candidate) { return rows[candidate.index].has(NodeRow::kAvoided); });
  if (none) {
    for (Candidate& candidate : candidates) candidate.score += weight * kMost;
    return;
  }
  Scores raw;
  raw.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    const std::vector<Taint>& taints = state.nodes()[candidate.index]->taints;
    raw.push_back(std::count_if(taints.begin(), taints.end(), [&](const Taint& taint) {
      return taint.effect == "PreferNoSchedule" && !tolerates(pod.shape->tolerations, taint);
    }));
  }
  add_share_of_most(raw, true, weight, candidates);
}

void add_inter_pod(ClusterState& state, const Pod& pod, std::int64_t weight,
                   std::vector<Candidate>& candidates) {
  // By label key and value.
  std::unordered_map<std::string, std::unordered_map<std::string, std::int64_t>> worth;
  for (const PodTerm& term : pod.shape->preferred_affinity) {
    for (const auto& [value, count] : state.selected_by(term)) {
      worth[term.topology_key][value] += term.weight * count;
    }
  }
  for (const auto& [id, carried] : state.carried_terms()) {
    if (carried.kind == TermKind::required_anti_affinity) continue;
    if (!state.selects(carried.term, pod)) continue;
    const std::int64_t each =
        carried.kind == TermKind::required_affinity ? kHardAffinityWeight : carried.term.weight;
    for (const auto& [value, count] : carried.carriers) {
      worth[carried.term.topology_key][value] += each * count;
    }
  }
  if (worth.empty()) return;
  Scores raw;
  for (const Candidate& candidate : candidates) {
    std::int64_t sum = 0;
    for (const auto& [key, values] : worth) {
      const json::Value* value = state.nodes()[candidate.index]->label(key);
      if (value == nullptr) continue;
      const auto found = values.find(value->str());
      if (found != values.end()) sum += found->second;
    }
    raw.push_back(sum);
  }
  const auto [least, most] = std::minmax_element(raw.begin(), raw.end());
  if (*least == *most) return;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    candidates[i].score += weight * ((raw[i] - *least) * kMost / (*most - *least));
  }
}

void add_spread(ClusterState& state, const Pod& pod, std::int64_t weight,
                std::vector<Candidate>& candidates) {
  std::vector<double> raw(candidates.size(), 0);
  std::vector<bool> ignored(candidates.size(), false);
  bool any = false;
  const auto label_of = [&](std::size_t i, const SpreadConstraint& constraint) {
    return state.nodes()[candidates[i].index]->label(constraint.topology_key);
  };
  for (const SpreadConstraint& constraint : pod.shape->spread) {
    if (constraint.required) continue;
    any = true;
    const auto& pods = state.selected_by_node(pod.name_space, constraint.selector);
    std::unordered_map<std::string, std::int64_t> domains;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const json::Value* value = label_of(i, constraint);
      if (value == nullptr) {
        ignored[i] = true;
      } else {
        domains.try_emplace(value->str(), 0);
      }
    }
    for (const auto& [node, count] : pods) {
      const json::Value* value = node->label(constraint.topology_key);
      if (value == nullptr) continue;
      const auto found = domains.find(value->str());
      if (found == domains.end()) continue;
      if (constraint.honor_affinity && !matches_node(pod, *node)) continue;
      found->second += count;
    }
    const double factor = std::log(static_cast<double>(domains.size() + 2));
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (ignored[i]) continue;
      const auto here = domains[label_of(i, constraint)->str()];
      raw[i] += static_cast<double>(here) * factor + static_cast<double>(constraint.max_skew - 1);
    }
  }
  if (!any) return;
  double least = std::numeric_limits<double>::max();
  double most = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (ignored[i]) continue;
    raw[i] = std::round(raw[i]);
    least = std::min(least, raw[i]);
    most = std::max(most, raw[i]);
  }
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (ignored[i]) continue;
    const double score = most == 0 ? kMost : kMost * (most + least - raw[i]) / most;
    candidates[i].score += weight * static_cast<std::int64_t>(score);
  }
}

}  // namespace

void score_nodes(ClusterState& state, const Pod& pod, const Profile& profile,
                 std::vector<Candidate>& candidates) {
  if (candidates.size() < 2) return;
  const std::int64_t fit = profile.weight("NodeResourcesFit");
  const bool asks = pod.shape->requests.cpu > 0 || pod.shape->requests.memory > 0;
  const std::int64_t balance = asks ? profile.weight("NodeResourcesBalancedAllocation") : 0;
  for (Candidate& candidate : candidates) {
    const NodeRow& row = state.rows()[candidate.index];
    candidate.score = fit * least_allocated(pod.shape->score, row);
    if (balance > 0) candidate.score += balance * balanced(pod.shape->requests, row);
  }
  if (const std::int64_t weight = profile.weight("TaintToleration"); weight > 0) {
    add_taints(state, pod, weight, candidates);
  }
  if (const std::int64_t weight = profile.weight("NodeAffinity");
      weight > 0 && !pod.shape->preferred_nodes.empty()) {
    Scores raw;
    for (const Candidate& candidate : candidates) {
      std::int64_t sum = 0;
      for (const PreferredNodes& preferred : pod.shape->preferred_nodes) {
        if (preferred.selector.matches(state.nodes()[candidate.index]->place))
          sum += preferred.weight;
      }
      raw.push_back(sum);
    }
    add_share_of_most(raw, false, weight, candidates);
  }
  if (const std::int64_t weight = profile.weight("InterPodAffinity"); weight > 0) {
    add_inter_pod(state, pod, weight, candidates);
  }
  if (const std::int64_t weight = profile.weight("PodTopologySpread");
      weight > 0 && !pod.shape->spread.empty()) {
    add_spread(state, pod, weight, candidates);
  }
}

void score_preferences(const Profile& profile, std::vector<Candidate>& candidates) {
  const std::int64_t weight = profile.weight("DynamicResources");
  std::int64_t most = 0;
  for (const Candidate& candidate : candidates) most = std::max(most, candidate.preference);
  if (most == 0 || weight == 0) return;
  for (Candidate& candidate : candidates) {
    candidate.score += weight * (candidate.preference * kMost / most);
  }
}

}  // namespace dibs::scheduler
