// A pod's way down: containers, sandbox, claims, mounts, status, volumes, and the object.

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/strings.h"
#include "node/pods/eviction_rules.h"
#include "node/pods/pod_spec.h"
#include "node/pods/pod_worker.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr kPods{"", "v1", "pods"};
// Of a pod that is gone or was deleted without grace: enough to hear a signal.
constexpr Duration kLeastGrace = std::chrono::seconds(1);
/// A driver that comes back wakes the pod; what else may help, takes its time.
constexpr Duration kUnprepareRetry = std::chrono::seconds(2);
constexpr Duration kLongestUnprepareRetry = std::chrono::minutes(2);
constexpr Duration kUnmountRetry = std::chrono::seconds(1);
constexpr Duration kLongestUnmountRetry = std::chrono::seconds(10);

const Value* spec_of(const std::vector<SpecContainer>& containers, std::string_view name) {
  for (const auto& container : containers) {
    if (container.name() == name) return &container.spec;
  }
  return nullptr;
}

}  // namespace

void PodWorker::begin_end(std::string reason, std::string message) {
  stage_ = Stage::ending;
  end_reason_ = std::move(reason);
  end_message_ = std::move(message);
  tools_.probes.pod_terminating(uid_);
}

void PodWorker::kill(const std::string& name, const ContainerStatus& container, Duration grace) {
  const auto containers = containers_of(pod_);
  const Value* spec = spec_of(containers, name);
  KillOrder order;
  order.container = {pod_,
                     spec == nullptr ? Value::object({{"name", name}}) : *spec,
                     container.id,
                     {},
                     sandbox_ip()};
  order.grace = std::max(grace, kLeastGrace);
  order.note = cat("Stopping container ", name);
  order.with_hook = container.state == ContainerState::running;
  tools_.killer.kill(std::move(order));
}

/// True when nothing runs any more. Sidecars end after everything else, the last one first.
bool PodWorker::kill_all() {
  const Duration now = tools_.runtime.clock.steady();
  const Duration left = std::max(kill_deadline_ - now, Duration(0));
  std::vector<std::string> sidecars;
  for (const auto& container : containers_of(pod_)) {
    if (container.kind == ContainerKind::sidecar) sidecars.emplace_back(container.name());
  }
  bool any = false;
  for (const auto& [name, list] : view_.containers) {
    if (std::find(sidecars.begin(), sidecars.end(), name) != sidecars.end()) continue;
    for (const auto& container : list) {
      if (!is_live(container)) continue;
      any = true;
      kill(name, container, left);
    }
  }
  if (any) return false;
  for (auto name = sidecars.rbegin(); name != sidecars.rend(); ++name) {
    const auto found = view_.containers.find(*name);
    if (found == view_.containers.end()) continue;
    for (const auto& container : found->second) {
      if (!is_live(container)) continue;
      kill(*name, container, std::max<Duration>(left, std::chrono::seconds(2)));
      return false;
    }
  }
  return true;
}

void PodWorker::end() {
  // Gone without a word: deleted by force.
  Duration grace = lost_object_ && !is_deleting(pod_) ? Duration(0) : grace_period(pod_);
  if (end_reason_ == kEvicted) grace = std::min(grace, kLeastGrace);
  const Duration deadline = tools_.runtime.clock.steady() + grace;
  // A second deletion may shorten the grace, never lengthen it.
  kill_deadline_ = kill_deadline_.count() == 0 ? deadline : std::min(kill_deadline_, deadline);
  if (!kill_all()) return put_status(false);
  for (auto& sandbox : view_.sandboxes) {
    if (sandbox.state != SandboxState::ready) continue;
    if (const auto stopped = tools_.containers.stop_sandbox(sandbox.id); !stopped) {
      log::warn("sandbox cannot be stopped",
                {{"pod", pod_text(pod_)}, {"error", stopped.error().message()}});
      return grow_retry();
    }
    sandbox.state = SandboxState::not_ready;
  }
  if (!unprepared_) {
    // Before the last status: who sees that may give the devices to others.
    if (const auto unprepared = tools_.claims.unprepare(pod_); !unprepared) {
      log::warn("claims cannot be unprepared",
                {{"pod", pod_text(pod_)}, {"error", unprepared.error().message()}});
      tools_.events.warning(
          pod_, "", "FailedUnprepareDynamicResources",
          cat("Failed to unprepare dynamic resources: ", unprepared.error().message()));
      put_status(false);
      unprepare_retry_ = std::clamp(unprepare_retry_ * 2, kUnprepareRetry, kLongestUnprepareRetry);
      return look_again(unprepare_retry_);
    }
    unprepared_ = true;
  }
  if (!unmounted_) {
    // Likewise: the volume may be wanted elsewhere.
    if (const auto unmounted = tools_.volumes.unmount(uid_); !unmounted) {
      log::warn("volumes cannot be unmounted",
                {{"pod", pod_text(pod_)}, {"error", unmounted.error().message()}});
      // Somebody else's turn is soon over.
      if (unmounted.error().code() != Code::timeout) {
        tools_.events.warning(pod_, "", "FailedUnmount",
                              cat("Unable to unmount volumes: ", unmounted.error().message()));
      }
      put_status(false);
      unmount_retry_ = std::clamp(unmount_retry_ * 2, kUnmountRetry, kLongestUnmountRetry);
      return look_again(unmount_retry_);
    }
    unmounted_ = true;
  }
  tools_.probes.remove_pod(uid_);
  waiting_.clear();
  stage_ = Stage::ended;
  publish();  // so that the end of the write below wakes us
  put_status(true);
}

void PodWorker::after_end() {
  if (!volumes_gone_) {
    // Last words are read from there; the status that was put has them.
    if (const auto gone = tools_.volumes.tear_down(uid_); !gone) {
      log::warn("volumes cannot be taken down",
                {{"pod", pod_text(pod_)}, {"error", gone.error().message()}});
      return grow_retry();
    }
    volumes_gone_ = true;
    tools_.objects.release(uid_);
  }
  if (lost_object_) return remove_all();
  // It had to go for the room that it takes: nothing of it stays but its last status. On a full
  // disk that may not be written before there is room.
  const bool may_go = tools_.statuses.is_written(uid_) || tools_.disk_pressure();
  if (end_reason_ == kEvicted && may_go && !remove_containers()) return;
  if (!is_deleting(pod_)) return;
  if (!tools_.statuses.is_written(uid_)) return;  // told when it is
  if (tools_.claims.holds(uid_)) return look_again(kUnprepareRetry);
  const Value& metadata = pod_["metadata"];
  // Held by finalizers of others: it has been released by us.
  if (metadata["deletionGracePeriodSeconds"].as_int(-1) == 0 && !metadata["finalizers"].empty()) {
    return;
  }
  if (delete_sent_) return;
  client::DeleteOptions options;
  options.grace_period_seconds = 0;
  options.uid = uid_;
  const auto answer = tools_.client.remove(kPods, namespace_of(pod_), name_of(pod_), options);
  if (answer) {
    delete_sent_ = true;
  } else if (answer.error().code() == Code::not_found || answer.error().code() == Code::conflict) {
    lost_object_ = true;
    remove_all();
  } else {
    grow_retry();
  }
}

/// With their logs. False: try again later.
bool PodWorker::remove_containers() {
  std::vector<std::string> ids;
  for (const auto& sandbox : view_.sandboxes) ids.push_back(sandbox.id);
  for (const auto& id : ids) {
    if (const auto removed = tools_.containers.remove_sandbox(id); !removed) {
      log::warn("sandbox cannot be removed",
                {{"pod", pod_text(pod_)}, {"error", removed.error().message()}});
      grow_retry();
      return false;
    }
    view_.remove_sandbox(id);
  }
  // Containers without a sandbox: of one that somebody else removed.
  std::vector<std::string> left;
  for (const auto& [name, list] : view_.containers) {
    for (const auto& container : list) left.push_back(container.id);
  }
  for (const auto& id : left) {
    const auto removed = tools_.containers.remove_container(id);
    if (!removed && removed.error().code() != Code::not_found) {
      grow_retry();
      return false;
    }
    view_.remove_container(id);
  }
  if (!tools_.facts.simulated && !tools_.log_root.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(
        cat(tools_.log_root, "/", namespace_of(pod_), "_", name_of(pod_), "_", uid_), ignored);
  }
  return true;
}

void PodWorker::remove_all() {
  if (!remove_containers()) return;
  tools_.statuses.forget(uid_);
  tools_.images.forget_pod(uid_);
  stage_ = Stage::removed;
}

}  // namespace dibs::node
