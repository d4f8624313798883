#pragma once
// All pods of a node: a worker for each, one queue that makes them work, and the end of what no pod
// owns any more.
//
// Life: start() reads what the runtime has from before, so that containers go on under a new agent;
// then pods arrive. Once all are known, sandboxes, volumes and claims of pods that are gone are
// taken down like any deleted pod's.
//
// Thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/event_recorder.h"
#include "node/pods/pod_source.h"
#include "node/pods/pod_worker.h"

namespace dibs::node {

struct PodWorkersOptions {
  /// Pods worked on at once. Many, because one may wait long for its driver or its image.
  unsigned concurrency = 64;
  /// Folder of logs: <log_root>/<namespace>_<name>_<uid>/<container>/<n>.log
  std::string log_root = {};
  /// The Node object, or null; `fresh`: read anew.
  std::function<json::Value(bool fresh)> node = {};
  /// The node is short of room on its disk: it takes no more pods.
  std::function<bool()> disk_pressure = {};
  /// Services, for the environment of containers.
  std::function<std::vector<json::Value>()> services = {};
  /// Asks probes and hooks; the real one when empty.
  Prober prober = {};
};

class PodWorkers {
 public:
  /// All must outlive it.
  PodWorkers(client::Client& client, runtime::Runtime& runtime, ContainerRuntime& containers,
             PodClaims& claims, Volumes& volumes, PodObjects& objects,
             client::EventRecorder& recorder, const NodeFacts& facts, PodWorkersOptions options);
  ~PodWorkers();
  PodWorkers(const PodWorkers&) = delete;
  PodWorkers& operator=(const PodWorkers&) = delete;

  /// Fails when the runtime cannot say what it has.
  Result<> start(std::unique_ptr<PodSource> source);
  /// Nothing of it runs when this returns; containers go on.
  void stop();
  /// All pods that were there at the start are known.
  bool listed() const;

  void wake_all();

  /// With the node's newest word on their status.
  std::vector<json::Value> pods() const;
  /// Those that may still use their devices, whatever phase somebody wrote into their status.
  std::vector<json::Value> unended() const;
  /// Those that the node has taken and that have not ended.
  std::vector<json::Value> active() const;
  bool is_active(const std::string& uid) const;
  /// Ends the pod, which fails with the reason Evicted. Nothing where it has ended.
  void evict(const std::string& uid, Eviction why);
  json::Value find(std::string_view name_space, std::string_view name) const;
  std::string probe_metrics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::node
