#pragma once
// What is to be done for a pod that runs: a pure function of its spec and of what the runtime has.
//
// The order of a pod's life is decided here and nowhere else: one sandbox first; then init
// containers one after another, each sidecar until it has started; then all regular containers.
// Containers that end are started again or not by policy; when no regular container runs or will
// run again, the pod is finished, and its sidecars end with it.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "node/pods/pod_spec.h"
#include "node/pods/pod_view.h"
#include "node/pods/probes.h"

namespace dibs::node {

struct PlanInput {
  const json::Value& pod;
  const PodView& view;
  /// The startup probe of the container with that id has passed, or there is none.
  std::function<bool(std::string_view name, const std::string& id)> started = {};
  /// Containers, by id, whose startup or liveness probe failed for good.
  const std::map<std::string, ProbeKind>& failed_probes;
  /// Containers, by id, whose postStart hook has not ended yet.
  const std::map<std::string, bool>& hooks_running;
};

struct PlannedKill {
  std::string name = {};
  std::string id = {};
  /// Note of the Killing event.
  std::string message = {};
  /// The probe that failed, which may name a grace period of its own.
  const char* probe = nullptr;
};

struct PodPlan {
  bool new_sandbox = false;
  /// The sandbox before it is gone or not ready: what is left of it must end first.
  bool sandbox_changed = false;
  unsigned sandbox_attempt = 0;
  std::vector<PlannedKill> kill = {};
  /// To be started in this order, once the sandbox is ready.
  std::vector<SpecContainer> start = {};
  /// Nothing runs but sidecars, and nothing will.
  bool finished = false;
};

PodPlan plan_pod(const PlanInput& input);

}  // namespace dibs::node
