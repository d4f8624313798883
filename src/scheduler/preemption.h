#pragma once
// Making room for a pod by driving out pods of lower priority.
//
// Tried on nodes that refused the pod for something that pods take up. On each, all lower pods are
// taken away and as many as possible let back in, the most important first; of the nodes where that
// works the one is chosen whose victims matter least. Devices are never a reason to preempt, but a
// node must be able to serve the pod's claims.

#include <map>
#include <string>
#include <vector>

#include "scheduler/cluster_state.h"
#include "scheduler/devices.h"
#include "scheduler/filters.h"
#include "scheduler/profiles.h"

namespace dibs::scheduler {

struct DisruptionBudget {
  std::string name_space;
  api::LabelSelector selector;
  std::int64_t allowed = 0;
};

/// Who would have to leave a node.
struct Victims {
  std::string node;
  std::vector<PodPtr> pods;    // never empty
  std::size_t violations = 0;  // of disruption budgets
};

struct Preemption {
  std::string message;  // "preemption: …"
  std::string node;     // "" when there is none
  std::vector<PodPtr> victims;
  /// All that there was to choose from.
  std::vector<Victims> options;
};

/// The best of the options.
Preemption choose_victims(std::vector<Victims> options);

/// `candidates` are the nodes that could help. Leaves the state as it was.
Preemption find_victims(ClusterState& state, Devices& devices, const PodPtr& pod,
                        const Profile& profile, DeviceRun& run,
                        const std::vector<NodeInfo*>& candidates,
                        const std::map<std::string, DisruptionBudget>& budgets);

}  // namespace dibs::scheduler
