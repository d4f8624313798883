#pragma once
// The volumes of a node's pods: folders under <root>/pods/<uid>/volumes, filled and mounted before
// the pod's containers start, kept up to date while it runs, and gone without a trace after it.
//
// set_up() is called again whenever something may have changed (the pod, an object, a token that
// gets old): it does only what is missing. Contents of configMaps, secrets, downwardAPI and
// projected volumes change all at once for whoever reads them (volume_writer.h). Everything needed
// to take a pod's volumes down is on the disk, so that an agent may die at any point.
//
// Calls block and may come from any thread; for one pod, one at a time.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "json/value.h"
#include "node/pods/node_facts.h"
#include "node/pods/volume_objects.h"
#include "node/pods/volume_persistent.h"
#include "node/runtime/container_runtime.h"
#include "runtime/runtime.h"

namespace dibs::node {

/// Ids of the images that are volumes of a pod, by the volumes' names.
using VolumeImages = std::map<std::string, std::string, std::less<>>;

class Volumes {
 public:
  /// All of them must outlive it.
  Volumes(client::Client& client, runtime::Runtime& runtime, PodObjects& objects,
          const NodeFacts& facts, VolumeSurroundings surroundings = {});
  ~Volumes();
  Volumes(const Volumes&) = delete;
  Volumes& operator=(const Volumes&) = delete;

  /// Makes or refreshes all volumes of the pod that containers use. Empty: all are there. The
  /// others are tried all the same when one fails.
  std::vector<VolumeFailure> set_up(const json::Value& pod);

  /// The mounts of a container, in the order of its volumeMounts. `env` is the container's, for
  /// subPathExpr. Requires a set_up() without failures. The error stands in a container's waiting
  /// message (CreateContainerConfigError).
  Result<std::vector<Mount>> mounts(const json::Value& pod, const json::Value& container,
                                    const std::vector<std::pair<std::string, std::string>>& env,
                                    const VolumeImages& images = {});

  /// The devices of its volumeDevices, likewise.
  Result<std::vector<HostDevice>> devices(const json::Value& pod, const json::Value& container);

  /// The file that is /etc/hosts of the pod's containers, written anew; "" while the pod has no
  /// address.
  Result<std::string> hosts_file(const json::Value& pod, const std::vector<std::string>& pod_ips);

  /// A new, empty file for a container's termination message, writable by everyone.
  Result<std::string> termination_file(const json::Value& pod, std::string_view container,
                                       unsigned attempt);
  /// What the container wrote there, at most 4096 bytes; "" when there is none.
  std::string termination_message(const std::string& pod_uid, std::string_view container,
                                  unsigned attempt);

  /// Gives back what outlives the pod: unmounted, and unpublished where a driver did it. Nothing of
  /// the pod may run any more.
  Result<> unmount(const std::string& pod_uid);
  /// The same, and removes everything of the pod, its folder too. Success when nothing is there.
  Result<> tear_down(const std::string& pod_uid);
  /// Uids of pods that have a folder: after a restart those without a pod are torn down.
  std::vector<std::string> pods_on_disk() const;

  /// What becomes of pods' certificates, as the kubelet's metric has it.
  std::string certificate_metrics() const;

  /// Called on the executor when a pod should be set up again: an object that it uses changed, a
  /// token or certificate of it gets old, or a signer has answered. Set it before the first
  /// set_up().
  void on_due(std::function<void(const std::string& pod_uid)> due);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
