#pragma once
// One attempt to find a node for a pod, without writing anything.
//
// Nodes are asked in turn, beginning where the last attempt stopped, until enough can take the pod:
// a large cluster is not searched for the best of all. Devices are looked for in the order of the
// scores and only until one node has them, unless the claims prefer some devices over others: then
// that counts in the scores. Where drivers have to be asked about nodes, all that come into
// question are looked at. Nodes that refused the same demand for devices and have not changed
// are passed by; why they refuse counts only when no other node does better.

#include <functional>
#include <string>
#include <vector>

#include "scheduler/cluster_state.h"
#include "scheduler/devices.h"
#include "scheduler/extenders.h"
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
  /// Extenders refused nodes, or have to be asked about more of them.
  bool refused_outside = false;
  bool unasked = false;
};

/// An attempt for a pod that extenders judge: first they are to be asked, then heard.
struct Consulted {
  /// Null: nothing is decided yet, and `nodes` gets those that they are to be asked about.
  const Opinions* said = nullptr;
  std::vector<json::Value> nodes = {};
};

/// Who is told how long the devices' part of an attempt took, at the extension points that
/// kube-scheduler would call its plugin at, and what came of it. Empty: nobody.
struct DeviceTimes {
  std::function<Duration()> clock = {};
  std::function<void(const char* point, const char* status, Duration took)> took = {};
};

class Placer {
 public:
  Placer(ClusterState& state, Devices& devices, int release = kNewestRelease)
      : state_(state), devices_(devices), release_(release) {}
  void time_devices(DeviceTimes times) { times_ = std::move(times); }
  Decision place(const Pod& pod, const Profile& profile, Time now, Consulted* consulted = nullptr);

 private:
  struct Search;
  DeviceRun prepare(const Pod& pod, const Profile& profile, Time now);
  NodeDevices look_on(DeviceRun& run, const NodeInfo& node);
  void admit(Search& search, std::size_t index);
  bool collect(Search& search);
  bool try_batch(Search& search);
  bool compare_devices(Search& search);
  bool try_known(Search& search);
  bool try_all(Search& search);
  void give_reasons(Search& search);

  ClusterState& state_;
  Devices& devices_;
  const int release_;
  DeviceTimes times_;
  std::size_t start_ = 0;
  // Kept between attempts for their memory.
  std::vector<Candidate> batch_;
  std::vector<std::uint64_t> refusing_;
};

}  // namespace dibs::scheduler
