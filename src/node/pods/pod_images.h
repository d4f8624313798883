#pragma once
// An image for a container: there already, pulled, or the reason why not.
//
// An image that was pulled with a login is there for pods that have that login, and is pulled again
// for others, with theirs. Pulls that fail are repeated after a delay that grows per pod and image.
// Blocks while it pulls; thread-safe.

#include <optional>
#include <string>

#include "base/mutex.h"
#include "json/value.h"
#include "node/pods/pod_backoff.h"
#include "node/pods/pod_events.h"
#include "node/pods/pod_status.h"
#include "node/pods/volume_objects.h"
#include "node/runtime/container_runtime.h"
#include "runtime/runtime.h"

namespace dibs::node {

/// The image, or why the container waits and when to ask again.
struct ImageOutcome {
  std::optional<ImageInfo> image = {};
  WaitingReason problem = {};
  Duration again{0};
};

class PodImages {
 public:
  /// All must outlive it.
  PodImages(ContainerRuntime& containers, runtime::Clock& clock, PodEvents& events,
            PodObjects& objects)
      : containers_(containers), clock_(clock), events_(events), objects_(objects) {}

  ImageOutcome ensure(const json::Value& pod, const json::Value& container);
  void forget_pod(const std::string& pod_uid);

 private:
  ImageOutcome problem(const json::Value& pod, const json::Value& container,
                       const std::string& reason, std::string message, Duration again);
  ImageOutcome pull(const json::Value& pod, const json::Value& container);
  /// Out of the pod's imagePullSecrets, for this image.
  std::vector<PullLogin> logins(const json::Value& pod, const std::string& image);
  /// Everybody may use it, or the pod has a login that it was given to.
  bool may_use(const json::Value& pod, const std::string& name, const ImageInfo& image);

  ContainerRuntime& containers_;
  runtime::Clock& clock_;
  PodEvents& events_;
  PodObjects& objects_;
  Mutex mutex_;
  Backoff backoff_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, std::string> last_failure_ DIBS_GUARDED_BY(mutex_);  // by pod and image
};

}  // namespace dibs::node
