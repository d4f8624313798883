#pragma once
// An image for a container: there already, pulled, or the reason why not.
//
// Pulls that fail are repeated after a delay that grows per pod and image. Blocks while it pulls;
// thread-safe.

#include <optional>
#include <string>

#include "base/mutex.h"
#include "json/value.h"
#include "node/pods/pod_backoff.h"
#include "node/pods/pod_events.h"
#include "node/pods/pod_status.h"
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
  PodImages(ContainerRuntime& containers, runtime::Clock& clock, PodEvents& events)
      : containers_(containers), clock_(clock), events_(events) {}

  ImageOutcome ensure(const json::Value& pod, const json::Value& container);
  void forget_pod(const std::string& pod_uid);

 private:
  ImageOutcome problem(const json::Value& pod, const json::Value& container,
                       const std::string& reason, std::string message, Duration again);
  ImageOutcome pull(const json::Value& pod, const json::Value& container);

  ContainerRuntime& containers_;
  runtime::Clock& clock_;
  PodEvents& events_;
  Mutex mutex_;
  Backoff backoff_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, std::string> last_failure_ DIBS_GUARDED_BY(mutex_);  // by pod and image
};

}  // namespace dibs::node
