// The more alike the shares of the resources that would be taken, the better.

#include <algorithm>
#include <cmath>

#include "scheduler/scores/amounts.h"

namespace dibs::scheduler {
namespace {

/// How far the shares are from each other: their standard deviation.
double spread_of(const std::vector<double>& shares) {
  // The same as below, but exact.
  if (shares.size() == 2) return std::abs(shares[0] - shares[1]) / 2;
  const auto count = static_cast<double>(shares.size());
  double mean = 0;
  for (const double share : shares) mean += share / count;
  double squares = 0;
  for (const double share : shares) squares += (share - mean) * (share - mean);
  return shares.empty() ? 0 : std::sqrt(squares / count);
}

bool asks_for_any(const ScoreRun& run) {
  const Resources& requests = run.pod.shape->requests;
  return std::any_of(
      run.profile.balanced.begin(), run.profile.balanced.end(),
      [&](const ScoredResource& resource) { return requests.amount(resource.name) != 0; });
}

void add(const ScoreRun& run, std::int64_t weight) {
  // A pod that asks for nothing would go where the balance happens to be best, and all its like.
  if (!asks_for_any(run)) return;
  std::vector<double> shares;
  for (Candidate& candidate : run.candidates) {
    shares.clear();
    for (const ScoredResource& resource : run.profile.balanced) {
      const Amounts amounts = amounts_of(resource, run, candidate, false);
      if (amounts.there <= 0) continue;
      shares.push_back(
          std::min(1.0, static_cast<double>(amounts.used) / static_cast<double>(amounts.there)));
    }
    candidate.score += weight * static_cast<std::int64_t>((1.0 - spread_of(shares)) * kMostScore);
  }
}

}  // namespace

extern const Score kNodeResourcesBalancedAllocation;
constinit const Score kNodeResourcesBalancedAllocation = {"NodeResourcesBalancedAllocation", 1,
                                                          add};

}  // namespace dibs::scheduler
