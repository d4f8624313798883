#pragma once
// Amounts of one resource, as the scores of resources compare them.

#include <vector>

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

/// What the lines between the points of a shape say of a use in percent.
inline std::int64_t on_lines(const std::vector<ShapePoint>& shape, std::int64_t use) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (use > shape[i].use) continue;
    if (i == 0) return shape[0].score;
    const ShapePoint& from = shape[i - 1];
    const ShapePoint& to = shape[i];
    return from.score + (to.score - from.score) * (use - from.use) / (to.use - from.use);
  }
  return shape.back().score;
}

}  // namespace dibs::scheduler
