#include "node/pods/pod_worker.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/pods/pod_log_tail.h"
#include "node/pods/pod_resize.h"
#include "node/pods/pod_spec.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr Duration kFirstRetry = std::chrono::milliseconds(500);
constexpr Duration kLongestRetry = std::chrono::seconds(10);

}  // namespace

PodWorker::PodWorker(PodTools& tools, Value pod, PodView view)
    : tools_(tools), uid_(uid_of(pod)), newest_pod_(std::move(pod)), view_(std::move(view)) {
  // Running already: it was taken by the agent before this one.
  taken_ = !view_.sandboxes.empty();
  if (const SandboxStatus* sandbox = view_.sandbox()) {
    const auto noted = sandbox->annotations.find(kAllocationAnnotation);
    auto parsed =
        noted == sandbox->annotations.end() ? Result<Value>(Value()) : json::parse(noted->second);
    allocation_ = parsed && parsed->is_object() ? *parsed : allocation_of(newest_pod_);
  }
}

void PodWorker::update(Value pod) {
  const MutexLock lock(mutex_);
  newest_pod_ = std::move(pod);
}

void PodWorker::gone() {
  const MutexLock lock(mutex_);
  is_gone_ = true;
}

void PodWorker::probe_failed(const std::string& container_id, ProbeKind kind) {
  const MutexLock lock(mutex_);
  failed_probes_[container_id] = kind;
}

void PodWorker::hook_ended(const std::string& container_id, bool failed) {
  const MutexLock lock(mutex_);
  hooks_running_.erase(container_id);
  if (failed) failed_hooks_.push_back(container_id);
}

void PodWorker::evict(Eviction why) {
  const MutexLock lock(mutex_);
  if (!eviction_) eviction_ = std::move(why);
}

Value PodWorker::pod() const {
  const MutexLock lock(mutex_);
  Value out = newest_pod_;
  if (!shown_status_.is_null()) {
    Value& status = out.mut("status");
    for (const auto& [key, value] : shown_status_.members()) status.set(key, value);
  }
  return out;
}

Value PodWorker::granted() const {
  Value out = pod();
  const MutexLock lock(mutex_);
  return allocation_.is_null() ? out : with_allocation(std::move(out), allocation_);
}

Value PodWorker::known() const {
  const MutexLock lock(mutex_);
  return newest_pod_;
}

bool PodWorker::is_active() const {
  const MutexLock lock(mutex_);
  return taken_ && (shown_stage_ == Stage::running || shown_stage_ == Stage::ending);
}

bool PodWorker::is_gone() const {
  const MutexLock lock(mutex_);
  return is_gone_;
}

bool PodWorker::has_ended() const {
  const MutexLock lock(mutex_);
  return shown_stage_ == Stage::ended || shown_stage_ == Stage::removed;
}

bool PodWorker::is_removed() const {
  const MutexLock lock(mutex_);
  return shown_stage_ == Stage::removed;
}

void PodWorker::begin_sync() {
  {
    const MutexLock lock(mutex_);
    pod_ = newest_pod_;
    // Our own status may be ahead of what the server told back.
    if (!shown_status_.is_null()) {
      Value& status = pod_.mut("status");
      const bool ended_there = is_terminal(newest_pod_);
      for (const auto& [key, value] : shown_status_.members()) {
        if (key == "conditions") continue;
        if (ended_there && (key == "phase" || key == "reason" || key == "message")) continue;
        status.set(key, value);
      }
      Value conditions = shown_status_["conditions"];
      for (const Value& other : newest_pod_["status"]["conditions"].items()) {
        const std::string_view type = other["type"].as_string();
        bool ours = false;
        for (std::size_t i = 0; i < conditions.size(); ++i) {
          if (conditions[i]["type"].as_string() != type) continue;
          ours = true;
          // A condition of somebody else that we only took over.
          if (!is_own_condition(type)) conditions.mut(i) = other;
        }
        if (!ours) conditions.push(other);
      }
      status.set("conditions", std::move(conditions));
    }
    asked_ = allocation_of(pod_);
    if (!allocation_.is_null()) pod_ = with_allocation(std::move(pod_), allocation_);
    lost_object_ = is_gone_;
    probes_now_ = failed_probes_;
    hooks_now_ = hooks_running_;
  }
  again_.reset();
  refresh(view_, tools_.containers);
  // An instance that is no more needs no verdict.
  for (const auto& [name, list] : view_.containers) {
    for (const auto& container : list) {
      if (!is_live(container) && probes_now_.contains(container.id)) {
        const MutexLock lock(mutex_);
        failed_probes_.erase(container.id);
      }
    }
  }
}

client::WorkOutcome PodWorker::outcome() const {
  return again_ ? client::WorkOutcome::again_after(*again_) : client::WorkOutcome::done();
}

void PodWorker::look_again(Duration after) {
  if (!again_ || after < *again_) again_ = after;
}

void PodWorker::grow_retry() {
  retry_ = retry_.count() == 0 ? kFirstRetry : std::min(retry_ * 2, kLongestRetry);
  look_again(retry_);
}

void PodWorker::publish() {
  const MutexLock lock(mutex_);
  shown_stage_ = stage_;
}

client::WorkOutcome PodWorker::sync() {
  if (stage_ == Stage::removed) return client::WorkOutcome::done();
  begin_sync();
  if (stage_ == Stage::running) {
    if (lost_object_ || is_deleting(pod_) || is_terminal(pod_)) {
      begin_end("", "");
    } else {
      run();
    }
  }
  if (stage_ == Stage::ending) end();
  if (stage_ == Stage::ended) after_end();
  publish();
  return outcome();
}

std::string PodWorker::sandbox_ip() const {
  if (pod_["spec"]["hostNetwork"].as_bool()) {
    return tools_.facts.addresses.empty() ? std::string() : tools_.facts.addresses.front();
  }
  const SandboxStatus* sandbox = view_.sandbox();
  return sandbox == nullptr || sandbox->ips.empty() ? std::string() : sandbox->ips.front();
}

void PodWorker::follow_probes() {
  for (const auto& container : containers_of(pod_)) {
    if (container.kind == ContainerKind::ephemeral) continue;
    const ContainerStatus* status = view_.current(container.name());
    if (status == nullptr || status->state != ContainerState::running) {
      tools_.probes.remove(uid_, container.name());
      continue;
    }
    // Started only once its hook is through.
    if (hooks_now_.contains(status->id)) continue;
    ProbedContainer probed{pod_, container.spec, status->id, status->started, sandbox_ip()};
    const char* list =
        container.kind == ContainerKind::regular ? "containerStatuses" : "initContainerStatuses";
    const std::string id = cat(tools_.runtime_name, "://", status->id);
    for (const Value& told : pod_["status"][list].items()) {
      if (told["containerID"].as_string() != id) continue;
      probed.was_started = told["started"].as_bool();
      probed.was_ready = told["ready"].as_bool();
    }
    tools_.probes.add(std::move(probed));
  }
}

std::string PodWorker::last_words(const ContainerStatus& container) {
  if (container.state != ContainerState::exited) return {};
  const auto [entry, fresh] = last_words_.try_emplace(container.id);
  if (!fresh) return entry->second;
  entry->second = tools_.volumes.termination_message(uid_, container.name, container.attempt);
  if (!entry->second.empty() || container.exit_code == 0) return entry->second;
  for (const auto& spec : containers_of(pod_)) {
    if (spec.name() == container.name &&
        spec.spec["terminationMessagePolicy"].as_string() == "FallbackToLogsOnError") {
      entry->second = log_tail(container.log_path);
    }
  }
  return entry->second;
}

void PodWorker::put_status(bool stopped) {
  if (lost_object_) return;
  StatusInput input{pod_, view_, waiting_};
  input.started = [this](std::string_view name, const std::string& id) {
    return !hooks_now_.contains(id) && tools_.probes.started(uid_, name, id);
  };
  input.ready = [this](std::string_view name, const std::string& id) {
    return tools_.probes.ready(uid_, name, id);
  };
  input.termination_message = [this](const ContainerStatus& c) { return last_words(c); };
  input.health = [this](std::string_view name) { return tools_.claims.health_of(pod_, name); };
  input.host_ips = tools_.facts.addresses;
  input.runtime_name = tools_.runtime_name;
  input.now = tools_.runtime.clock.now();
  input.stopped = stopped;
  input.end_reason = end_reason_;
  input.end_message = end_message_;
  input.disrupted = disrupted_;
  if (!stopped) {
    input.resize_pending = resize_pending_;
    input.resize_in_progress = resize_in_progress_;
  }
  Value status = make_status(input);
  Value newest;
  {
    const MutexLock lock(mutex_);
    shown_status_ = status;
    newest = newest_pod_;
  }
  tools_.statuses.set(newest, std::move(status));
}

}  // namespace dibs::node
