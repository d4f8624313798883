// A pod's resources while it runs: granted where there is room, then given to what runs.

#include "base/strings.h"
#include "json/parse.h"
#include "node/pods/container_config.h"
#include "node/pods/pod_resize.h"
#include "node/pods/pod_spec.h"
#include "node/pods/pod_worker.h"

namespace dibs::node {
namespace {

using json::Value;

/// Room may be there once others have gone, which nobody tells.
constexpr Duration kDeferredRetry = std::chrono::seconds(2);

std::string annotation(const Labels& annotations, const char* name) {
  const auto found = annotations.find(name);
  return found == annotations.end() ? std::string() : found->second;
}

}  // namespace

void PodWorker::grant() {
  {
    const MutexLock lock(mutex_);
    if (asked_ == allocation_) {
      resize_pending_.reset();
      return;
    }
  }
  Value wanted = with_allocation(pod_, asked_);
  if (auto refusal = refuse_resize(wanted, tools_.node(false), tools_.others(uid_))) {
    if (!resize_pending_ || resize_pending_->reason != refusal->reason) {
      tools_.events.warning(
          pod_, "", cat("Resize", refusal->reason),
          cat("Pod resize ", refusal->reason, ": ", resize_summary(wanted, refusal->message)));
    }
    if (refusal->reason == "Deferred") look_again(kDeferredRetry);
    resize_pending_ = std::move(refusal);
    return;
  }
  {
    const MutexLock lock(mutex_);
    allocation_ = asked_;
  }
  pod_ = std::move(wanted);
  resize_pending_.reset();
  resize_in_progress_ = WaitingReason{};
  tools_.events.normal(pod_, "", "ResizeStarted",
                       cat("Pod resize started: ", resize_summary(pod_, "")));
}

void PodWorker::resize_failed(const std::string& message) {
  if (!resize_in_progress_ || resize_in_progress_->message != message) {
    tools_.events.warning(pod_, "", "ResizeError",
                          cat("Pod resize error: ", resize_summary(pod_, message)));
  }
  resize_in_progress_ = WaitingReason{"Error", message};
  grow_retry();
}

bool PodWorker::resize_sandbox(const ContainerLimits& limits) {
  const SandboxStatus sandbox = *view_.sandbox();
  const Labels notes = {{kAllocationAnnotation, json::write(allocation_of(pod_))},
                        {kLimitsAnnotation, limits_text(limits)}};
  bool same = true;
  for (const auto& [key, value] : notes) {
    same = same && annotation(sandbox.annotations, key.c_str()) == value;
  }
  if (same) return true;
  if (const auto done = tools_.containers.update_sandbox(sandbox.id, limits, notes); !done) {
    resize_failed(done.error().message());
    return false;
  }
  if (auto status = tools_.containers.sandbox_status(sandbox.id)) {
    view_.add(std::move(status).value());
  }
  return true;
}

bool PodWorker::resize_container(const SpecContainer& container, const ContainerStatus& status) {
  const std::string id = status.id;
  const ContainerLimits limits = container_limits(pod_, container.spec, tools_.facts);
  Labels notes = {{kResourcesAnnotation, json::write(container.spec["resources"])}};
  if (tools_.containers.outlives_agent()) notes[kLimitsAnnotation] = limits_text(limits);
  if (const auto done = tools_.containers.update_container(id, limits, notes); !done) {
    resize_failed(cat("container ", container.name(), ": ", done.error().message()));
    return false;
  }
  if (auto fresh = tools_.containers.container_status(id)) view_.add(std::move(fresh).value());
  return true;
}

// What grows does so from the outside in, what shrinks from the inside out: at no moment is a
// container allowed more than its pod, or held to less than it was granted before and after.
void PodWorker::actuate() {
  const Value granted = [&] {
    const MutexLock lock(mutex_);
    return allocation_;
  }();
  if (!view_.sandbox_ready() || (actuated_ == granted && !resize_in_progress_)) return;
  const std::string before = annotation(view_.sandbox()->annotations, kLimitsAnnotation);
  const auto had = read_limits(before);
  const ContainerLimits wanted = pod_limits(pod_);
  // Simulated pods have no group, nor have those of an agent that did not note what it made.
  if (had && !resize_sandbox(wider(*had, wanted))) return;
  bool all = true;
  for (const auto& container : containers_of(pod_)) {
    if (container.kind == ContainerKind::ephemeral) continue;
    const ContainerStatus* status = view_.current(container.name());
    if (status == nullptr || status->state != ContainerState::running) continue;
    const std::string noted = annotation(status->annotations, kResourcesAnnotation);
    const std::string told = annotation(status->annotations, kLimitsAnnotation);
    if (noted.empty()) continue;
    const auto resources = json::parse(noted);
    if (resources && restarts_for(container.spec, *resources, container.spec["resources"])) {
      all = false;  // it is on its way down (pod_plan)
      continue;
    }
    const bool same =
        noted == json::write(container.spec["resources"]) &&
        (told.empty() || told == limits_text(container_limits(pod_, container.spec, tools_.facts)));
    if (!same) all = resize_container(container, ContainerStatus(*status)) && all;
  }
  if (!all) {
    if (!resize_in_progress_) resize_in_progress_ = WaitingReason{};
    return;
  }
  if (had && !resize_sandbox(wanted)) return;
  actuated_ = granted;
  if (!resize_in_progress_) return;
  resize_in_progress_.reset();
  tools_.events.normal(pod_, "", "ResizeCompleted",
                       cat("Pod resize completed: ", resize_summary(pod_, "")));
}

}  // namespace dibs::node
