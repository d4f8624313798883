#pragma once
// The PodResources service: what the containers of this node hold, told to monitoring agents over
// <root>/pod-resources/kubelet.sock.
//
// Devices of claims and of device plugins: this node pins no cpus or memory.

#include <functional>
#include <optional>
#include <vector>

#include "json/value.h"
#include "node/plugins/claim_cache.h"
#include "node/plugins/device_plugins.h"
#include "node/plugins/release.h"
#include "rpc/server.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct PodResourcesSource {
  /// Pods that are not terminal; nothing while they are not known yet.
  std::function<std::optional<std::vector<json::Value>>()> pods = {};
  std::function<std::optional<ClaimInfo>(std::string_view name_space, std::string_view claim)>
      claim = {};
  std::function<std::vector<DeviceShare>(std::string_view pod_uid, std::string_view container)>
      devices = {};
  std::function<std::vector<DeviceShare>()> allocatable = {};
  /// Up to 1.30 a claim's resources say nothing but their CDI ids.
  NodeRelease release = {};
  bool claims = true;  // gate KubeletPodResourcesDynamicResources
  bool get = true;     // gate KubeletPodResourcesGet
};

/// `clock` is for the limit of 100 calls a second.
rpc::Methods pod_resources_methods(PodResourcesSource source, runtime::Clock& clock);

}  // namespace dibs::node
