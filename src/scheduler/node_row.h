#pragma once
// What is read of every node that an attempt passes by: one cache line each, side by side.
//
// An attempt looks at a hundred nodes and more, each time others, so that what it costs in a large
// cluster is the memory that it touches. The rows stand in the order of ClusterState::nodes(), and
// most pods are judged and scored by them alone; whatever a row only hints at (taints, ports,
// labels, amounts of other resources) is looked up in the NodeInfo.

#include <cstdint>

namespace dibs::scheduler {

struct NodeInfo;

struct alignas(64) NodeRow {
  // Allocatable, and of that requested.
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
  std::int64_t used_cpu = 0;
  std::int64_t used_memory = 0;
  // Requested as scores count it.
  std::int64_t scored_cpu = 0;
  std::int64_t scored_memory = 0;
  std::int64_t free_storage = 0;
  std::int32_t free_pods = 0;
  std::uint32_t hints = 0;

  static constexpr std::uint32_t kCordoned = 1;
  static constexpr std::uint32_t kTainted = 2;    // NoSchedule or NoExecute
  static constexpr std::uint32_t kAvoided = 4;    // PreferNoSchedule
  static constexpr std::uint32_t kNominated = 8;  // room is kept for pods

  bool has(std::uint32_t hint) const { return (hints & hint) != 0; }
  static NodeRow of(const NodeInfo& node, bool nominated);
};
static_assert(sizeof(NodeRow) == 64);

}  // namespace dibs::scheduler
