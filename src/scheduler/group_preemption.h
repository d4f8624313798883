#pragma once
// Making room for a tree of groups by driving out pods of lower priority, wherever in the cluster
// they are.
//
// All of them are taken away; when the group then finds a placement, as many as possible are let
// back in, those with a disruption budget that would be broken first, then the most important.
// Pods of a group, or tree, that goes as one come back together or not at all. Devices are never a
// reason to preempt, as for single pods.

#include <map>
#include <string>
#include <vector>

#include "scheduler/gang.h"
#include "scheduler/groups.h"
#include "scheduler/preemption.h"

namespace dibs::scheduler {

struct GroupPreemption {
  std::string message;  // "pod group preemption: …"
  std::vector<PodPtr> victims;
  std::map<std::string, std::string> nodes;  // room is made there, by pod
  bool underway = false;                     // there are victims, now or from before
};

/// Leaves the state as it was, but for nominations of the group's pods: where there is nothing to
/// wait for they are dropped.
GroupPreemption find_group_victims(ClusterState& state, Devices& devices, GangPlacer& placer,
                                   const PodGroups& groups, std::int64_t priority,
                                   const GangOrder& order, const Profile& profile, Time now,
                                   const std::map<std::string, DisruptionBudget>& budgets);

}  // namespace dibs::scheduler
