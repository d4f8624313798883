#pragma once
// One attempt to find a node for a pod, without writing anything.
//
// Nodes are asked in turn, beginning where the last attempt stopped, until enough can take the pod:
// a large cluster is not searched for the best of all. Devices are looked for in the order of the
// scores and only until one node has them, unless the claims prefer some devices over others: then
// that counts in the scores. Where drivers have to be asked about nodes, all that come into
// question are looked at. Nodes that refused the same demand for devices and have not changed
// are passed by; why they refuse counts only when no other node does better.

#include <string>
#include <vector>

#include "scheduler/cluster_state.h"
#include "scheduler/devices.h"
#include "scheduler/profiles.h"
#include "scheduler/reasons.h"
#include "scheduler/scores/scores.h"

namespace dibs::scheduler {

struct Decision {
  enum class Kind : std::uint8_t {
    placed,
    unplaced,
    waits,  // not to be tried now: a claim is missing or being allocated for another pod
  };
  Kind kind = Kind::unplaced;
  NodeInfo* node = nullptr;
  NodeDevices devices;
  DeviceRun run;
  /// Where drivers have to be asked: the nodes that could take the pod, `node` among them.
  std::vector<std::string> candidates;
  Failure failure;
  /// Nodes that pods of lower priority could be driven from.
  std::vector<NodeInfo*> resolvable;
  /// Allocated claims that stood in the way on some node, by place in run.claims.
  std::vector<std::size_t> unavailable;
};

class Placer {
 public:
  Placer(ClusterState& state, Devices& devices, int release = kNewestRelease)
      : state_(state), devices_(devices), release_(release) {}
  Decision place(const Pod& pod, const Profile& profile, Time now);

 private:
  struct Search;
  bool try_batch(Search& search);
  bool compare_devices(Search& search);
  bool try_known(Search& search);
  bool try_all(Search& search);
  void give_reasons(Search& search);

  ClusterState& state_;
  Devices& devices_;
  const int release_;
  std::size_t start_ = 0;
  // Kept between attempts for their memory.
  std::vector<Candidate> batch_;
  std::vector<std::uint64_t> refusing_;
};

}  // namespace dibs::scheduler
