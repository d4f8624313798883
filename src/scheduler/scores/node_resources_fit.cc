// How full the node would be: the emptier the better, or the fuller, or as a profile draws it.

#include <cmath>

#include "scheduler/scores/amounts.h"

namespace dibs::scheduler {
namespace {

std::int64_t worth(const FitArgs& args, const Amounts& amounts) {
  const bool over = amounts.used > amounts.there;
  switch (args.strategy) {
    case FitArgs::Strategy::least_allocated:
      return over ? 0 : (amounts.there - amounts.used) * kMostScore / amounts.there;
    case FitArgs::Strategy::most_allocated:
      return over ? kMostScore : amounts.used * kMostScore / amounts.there;
    case FitArgs::Strategy::requested_to_capacity:
      return on_lines(args.shape, over ? 100 : amounts.used * 100 / amounts.there);
  }
  return 0;
}

void add(const ScoreRun& run, std::int64_t weight) {
  const FitArgs& args = run.profile.fit;
  const bool drawn = args.strategy == FitArgs::Strategy::requested_to_capacity;
  for (Candidate& candidate : run.candidates) {
    std::int64_t sum = 0;
    std::int64_t weights = 0;
    for (const ScoredResource& resource : args.resources) {
      const Amounts amounts = amounts_of(resource, run, candidate, true);
      if (amounts.there <= 0) continue;
      const std::int64_t value = worth(args, amounts);
      if (drawn && value <= 0) continue;
      sum += value * resource.weight;
      weights += resource.weight;
    }
    if (weights == 0) continue;
    const std::int64_t score =
        drawn ? std::llround(static_cast<double>(sum) / static_cast<double>(weights))
              : sum / weights;
    candidate.score += weight * score;
  }
}

}  // namespace

extern const Score kNodeResourcesFit;
constinit const Score kNodeResourcesFit = {"NodeResourcesFit", 1, add};

}  // namespace dibs::scheduler
