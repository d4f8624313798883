#pragma once
// The devices of pods on one node: claims are prepared by their drivers before a pod's sandbox is
// made, and unprepared after it is gone; device plugins are asked when the pod comes.
//
// The pod workers call this; claim_manager.h implements it for claims, pod_devices.h for both.
// Calls block (a driver has 45 s), may come from any thread, and may be repeated; a second one for
// a pod that has one under way fails.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::node {

/// One device that a driver prepared for a claim.
struct PreparedDevice {
  std::string driver = {};
  std::string pool = {};
  std::string device = {};
  std::string share_id = {};  // "" : none
  std::vector<std::string> requests = {};
  std::vector<std::string> cdi_ids = {};
};

/// A file or folder of the host that a device plugin wants in a container.
struct GivenMount {
  std::string container_path = {};
  std::string host_path = {};
  bool read_only = false;
};

struct GivenNode {
  std::string container_path = {};
  std::string host_path = {};
  std::string permissions = {};
};

/// What a container gets of the claims that it uses, and of device plugins.
struct ContainerDevices {
  std::vector<std::string> cdi_ids = {};  // in the claims' order
  /// The same ids for runtimes that know no other way, in releases up to 1.30 (cdi/annotations.h);
  /// and what device plugins tell the runtime.
  std::map<std::string, std::string> annotations = {};
  // Of device plugins only.
  std::vector<std::pair<std::string, std::string>> env = {};
  std::vector<GivenMount> mounts = {};
  std::vector<GivenNode> nodes = {};
};

class PodClaims {
 public:
  virtual ~PodClaims() = default;
  /// Devices of device plugins, for a pod that comes; one that has them keeps them. The error is
  /// why it cannot run here.
  virtual Result<> grant(const json::Value& /*pod*/) { return success(); }
  /// The extended resources that it has devices of by grant().
  virtual std::set<std::string> granted(std::string_view /*pod_uid*/) { return {}; }
  /// All claims of the pod (an API object). The error is what stands in the event after
  /// "Failed to prepare dynamic resources: ".
  virtual Result<> prepare(const json::Value& pod) = 0;
  /// After the last container is gone and before the pod's terminal status is written. Does not
  /// need the claims to exist any more; a pod that was never prepared is a success.
  virtual Result<> unprepare(const json::Value& pod) = 0;
  /// For one container (init containers too) of a prepared pod.
  virtual Result<ContainerDevices> devices_of(const json::Value& pod,
                                              std::string_view container) = 0;
  /// Whether a claim still counts this pod: then its object must not be deleted finally.
  virtual bool holds(std::string_view pod_uid) = 0;
  /// status.containerStatuses[].allocatedResourcesStatus of a container, or null.
  virtual json::Value health_of(const json::Value& pod, std::string_view container) = 0;
  /// `changed` gets the uid of each pod whose device health changed.
  virtual void on_health_change(std::function<void(const std::string& pod_uid)> changed) = 0;
};

}  // namespace dibs::node
