#pragma once
// Ends containers: the preStop hook first, then the stop signal, then SIGKILL when the grace period
// is over. The hook's time counts.
//
// Nothing here waits, neither the caller nor a task: `ended` tells.
// Asking again with less grace hurries what is under way. Thread-safe.

#include <functional>
#include <memory>
#include <string>

#include "json/value.h"
#include "node/pods/pod_events.h"
#include "node/pods/probes.h"
#include "node/runtime/container_runtime.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct KillOrder {
  /// With the container's spec (null: unknown, as of a pod that is gone) and its id.
  ProbedContainer container = {};
  Duration grace{0};
  /// Of the Killing event.
  std::string note = {};
  bool with_hook = true;
};

class PodKiller {
 public:
  /// `ended` runs on the executor, with the pod's uid. All must outlive it.
  PodKiller(runtime::Runtime& runtime, ContainerRuntime& containers, Prober prober,
            PodEvents& events, std::function<void(const std::string& pod_uid)> ended);
  ~PodKiller();
  PodKiller(const PodKiller&) = delete;
  PodKiller& operator=(const PodKiller&) = delete;

  void kill(KillOrder order);
  /// No task of it runs when this returns.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
