// How much of a node's storage the pod's volumes would take: of the volumes that are there, or else
// of what drivers say they can still provision.

#include <cmath>

#include "scheduler/scores/amounts.h"

namespace dibs::scheduler {
namespace {

std::int64_t worth(const std::vector<ShapePoint>& shape, const VolumeUse& use) {
  constexpr std::int64_t kFull = 100;
  if (use.there == 0 || use.wanted > use.there) return on_lines(shape, kFull);
  return on_lines(shape, static_cast<std::int64_t>(use.wanted * kFull / use.there));
}

void add(const ScoreRun& run, std::int64_t weight) {
  const std::vector<ShapePoint>& shape = run.profile.volume_shape;
  if (shape.empty() || !run.pod.claims_volumes) return;
  const Volumes& volumes = run.state.volumes();
  const VolumeRun wanted = volumes.prepare(run.pod, bit(Plugin::volume_binding));
  if (!wanted.reason.empty() || wanted.open.empty()) return;
  for (Candidate& candidate : run.candidates) {
    const auto uses = volumes.use_on(wanted, run.node(candidate));
    if (uses.empty()) continue;
    std::int64_t sum = 0;
    for (const auto& [storage_class, use] : uses) sum += worth(shape, use);
    candidate.score +=
        weight * std::llround(static_cast<double>(sum) / static_cast<double>(uses.size()));
  }
}

}  // namespace

extern const Score kVolumeBinding;
constinit const Score kVolumeBinding = {"VolumeBinding", 1, add};

}  // namespace dibs::scheduler
