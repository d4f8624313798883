#pragma once
// The claims of pods on one node: prepared by their drivers before a pod's sandbox is made, and
// unprepared after it is gone.
//
// The pod workers call this; claim_manager.h implements it. Calls block (a driver has 45 s), may
// come from any thread, and may be repeated; a second one for a pod that has one under way fails.

#include <functional>
#include <map>
#include <string>
#include <string_view>
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

/// What a container gets of the claims that it uses.
struct ContainerDevices {
  std::vector<std::string> cdi_ids = {};  // in the claims' order
  /// The same ids for runtimes that know no other way, in releases up to 1.30 (cdi/annotations.h).
  std::map<std::string, std::string> annotations = {};
};

class PodClaims {
 public:
  virtual ~PodClaims() = default;
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
