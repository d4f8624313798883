#pragma once
// What this node tells of pods whose claims are of today's model: in their annotations which
// interfaces they are to have, before these are made; in the claims' status what became of them.
//
// Thread-safe; calls block, but for attached(), which works on by itself.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "client/client.h"
#include "client/resource_versions.h"
#include "client/work_queue.h"
#include "driver/plugin.h"
#include "drivers/net/cni/local_api.h"
#include "drivers/net/control/networks.h"
#include "drivers/net/control/today.h"
#include "drivers/net/node/device_files.h"

namespace dibs::drivers::net {

class PodNetworksWriter {
 public:
  /// All must outlive it.
  PodNetworksWriter(const driver::Environment& environment, const Networks& networks,
                    std::function<std::optional<NodeState>()> state, std::string node,
                    SelectionOptions options);
  ~PodNetworksWriter();

  /// For the pods on this node that have reserved the claim, before their interfaces are made:
  /// writes their annotations, where the cluster's half was not there to do it, and tells which
  /// interfaces of theirs are devices of this claim.
  Result<std::vector<InterfaceDevice>> make_ready(const json::Value& claim);
  /// status.devices[].networkData of the device that stands for the interface.
  void attached(const AttachedNic& nic);
  void stop();

 private:
  Result<std::optional<TodayPlan>> plan_of(const json::Value& pod,
                                           std::vector<json::Value>& claims);
  client::WorkOutcome write_data(const std::string& key);

  client::Client& api_;
  client::ResourceClient resources_;
  runtime::Runtime& runtime_;
  const Networks& networks_;
  const std::function<std::optional<NodeState>()> state_;
  const std::string node_;
  const SelectionOptions options_;
  Mutex mutex_;
  std::map<std::string, AttachedNic> attached_ DIBS_GUARDED_BY(mutex_);  // by pod and interface
  client::WorkQueue queue_;
};

}  // namespace dibs::drivers::net
