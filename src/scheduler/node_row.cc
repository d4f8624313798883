#include "scheduler/node_row.h"

#include <algorithm>
#include <limits>

#include "scheduler/cluster_state.h"

namespace dibs::scheduler {

NodeRow NodeRow::of(const NodeInfo& node, bool nominated) {
  NodeRow made;
  made.cpu = node.allocatable.cpu;
  made.memory = node.allocatable.memory;
  made.used_cpu = node.requested.cpu;
  made.used_memory = node.requested.memory;
  made.scored_cpu = node.scored.cpu;
  made.scored_memory = node.scored.memory;
  made.free_storage = node.allocatable.storage - node.requested.storage;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  made.free_pods = static_cast<std::int32_t>(
      std::clamp(node.allocatable.pods - node.requested.pods, -kMost, kMost));
  if (node.unschedulable) made.hints |= kCordoned;
  for (const Taint& taint : node.taints) {
    if (taint.effect == "NoSchedule" || taint.effect == "NoExecute") made.hints |= kTainted;
    if (taint.effect == "PreferNoSchedule") made.hints |= kAvoided;
  }
  if (nominated) made.hints |= kNominated;
  return made;
}

}  // namespace dibs::scheduler
