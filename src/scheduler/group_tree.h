#pragma once
// What a tree of groups needs to be tried, what is tried then, and how the outcome is told: shared
// by the scheduler and by whoever asks why.

#include <string>
#include <vector>

#include "scheduler/cluster_state.h"
#include "scheduler/gang.h"
#include "scheduler/groups.h"

namespace dibs::scheduler {

/// Of each group, whether it has what it needs when all pods that could be scheduled are; `placed`:
/// when nothing but pods on nodes counts.
std::vector<char> groups_ready(const GroupTree& tree, bool placed = false);

/// Pods of all groups that wait for nothing but a node.
bool has_able(const GroupTree& tree);

GangOrder make_order(const GroupTree& tree, const ClusterState& state);

/// Why a group of the tree is not placed: by itself, or because one above it is not.
std::string why_unplaced(const GroupTree& tree, std::size_t group, const GangOrder& order,
                         const GangDecision& decision);

}  // namespace dibs::scheduler
