#pragma once
// Makes a pod's plan for its volumes true, before its claims for devices are written and it is
// bound: volumes are given to their claims, and claims say for which node they are to be
// provisioned. The rest is the work of the binder and of provisioners; here it is waited for.
//
// Nothing is taken back when that fails: a volume that has a claimRef to a claim stays with it, and
// the next attempt for the pod goes on from there.
//
// Owner: the scheduler's serial executor; answers are posted there.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "client/client.h"
#include "runtime/runtime.h"
#include "scheduler/cluster_state.h"
#include "scheduler/pod.h"
#include "scheduler/volumes.h"

namespace dibs::scheduler {

inline const client::Gvr kVolumeClaims = {"", "v1", "persistentvolumeclaims"};
inline const client::Gvr kVolumes = {"", "v1", "persistentvolumes"};

/// What a failure to bind volumes begins with.
inline constexpr const char* kVolumePreBind = "running PreBind plugin \"VolumeBinding\": ";

class VolumeBinder {
 public:
  using Post = std::function<void(std::function<void()> task)>;
  /// "" for success, else the message.
  using Done = std::function<void(const std::string& failure)>;

  VolumeBinder(client::Client& client, runtime::Runtime& runtime, Post post, ClusterState& state);

  /// The plan counts for other pods from now on, until `done` has been told.
  void start(const PodPtr& pod, const std::string& node, VolumePlan plan, Duration timeout,
             Done done);
  /// Claims or volumes have changed: who waits looks again.
  void changed();
  void pod_gone(const std::string& key);
  /// The pod is not to be bound any more.
  void end(const Pod& pod, const std::string& failure);
  std::size_t waiting() const { return runs_.size(); }

 private:
  struct Run;
  void written(const std::shared_ptr<Run>& run, const Result<json::Value>& answer);
  void look(const std::shared_ptr<Run>& run);
  /// "": not yet, or bound; see `bound`.
  std::string judge(const Run& run, bool& bound) const;
  void finish(const std::shared_ptr<Run>& run, const std::string& failure);

  client::Client& client_;
  runtime::Runtime& runtime_;
  Post post_;
  ClusterState& state_;
  std::set<std::shared_ptr<Run>> runs_;
};

}  // namespace dibs::scheduler
