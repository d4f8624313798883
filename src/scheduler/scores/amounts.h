#pragma once
// Amounts of one resource, as the scores of resources compare them.

#include "scheduler/scores/score.h"

namespace dibs::scheduler {

/// Of a node, the pod counted in. `there` is 0 where the resource does not count.
struct Amounts {
  std::int64_t used = 0;
  std::int64_t there = 0;
};

/// `padded`: containers that ask for no cpu or memory count as asking for a little.
inline Amounts amounts_of(const ScoredResource& resource, const ScoreRun& run,
                          const Candidate& candidate, bool padded) {
  const NodeRow& row = run.row(candidate);
  const PodShape& pod = *run.pod.shape;
  switch (resource.kind) {
    case ScoredResource::Kind::cpu:
      return padded ? Amounts{row.scored_cpu + pod.score.cpu, row.cpu}
                    : Amounts{row.used_cpu + pod.requests.cpu, row.cpu};
    case ScoredResource::Kind::memory:
      return padded ? Amounts{row.scored_memory + pod.score.memory, row.memory}
                    : Amounts{row.used_memory + pod.requests.memory, row.memory};
    case ScoredResource::Kind::storage: {
      const std::int64_t there = run.node(candidate).allocatable.storage;
      return {there - row.free_storage + pod.requests.storage, there};
    }
    case ScoredResource::Kind::scalar:
      break;
  }
  const std::int64_t wanted = pod.requests.scalar(resource.name);
  // Those that do not ask for it are not kept away from it, as upstream has it.
  if (wanted == 0) return {};
  const NodeInfo& node = run.node(candidate);
  return {node.requested.scalar(resource.name) + wanted, node.allocatable.scalar(resource.name)};
}

}  // namespace dibs::scheduler
