// A pod's way up: admission, volumes, claims, sandbox, containers.

#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"
#include "base/span.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/pods/eviction_rules.h"
#include "node/pods/pod_admission.h"
#include "node/pods/pod_networks.h"
#include "node/pods/pod_refusals.h"
#include "node/pods/pod_resize.h"
#include "node/pods/pod_spec.h"
#include "node/pods/pod_worker.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr kPods{"", "v1", "pods"};

// Every pod is looked at from time to time, should the runtime have failed to tell of something.
constexpr Duration kResync = std::chrono::seconds(60);
// Of a volume that others are at work on.
constexpr Duration kAttachRetry = std::chrono::milliseconds(250);
// Of room that pods on their way out will leave.
constexpr Duration kRoomRetry = std::chrono::milliseconds(250);
// What users mend by changing other objects is tried again this soon.
constexpr Duration kConfigRetry = std::chrono::seconds(2);

/// status.containerStatuses[].user.linux of what was asked for, as the runtime resolves it: the
/// primary group is one of the groups.
Value user_of(const ContainerSecurity& security, const ImageInfo& image) {
  const std::int64_t user = security.run_as_user.value_or(image.user_id.value_or(0));
  const std::int64_t group = security.run_as_group.value_or(0);
  std::vector<std::int64_t> groups = security.supplemental_groups;
  groups.push_back(group);
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  Value list = Value::array();
  for (const std::int64_t item : groups) list.push(item);
  return Value::object({{"uid", user}, {"gid", group}, {"supplementalGroups", std::move(list)}});
}

}  // namespace

bool PodWorker::admit() {
  {
    const MutexLock lock(mutex_);
    if (taken_) return true;
  }
  auto rejection = refuse_spec(pod_, tools_.facts);
  const auto ask = [this](bool fresh, const std::vector<Value>& others) {
    return admit_pod(pod_, tools_.node(fresh), others, tools_.claims.granted(uid_));
  };
  if (!rejection) {
    rejection = ask(false, tools_.others(uid_));
    // The scheduler may know of a label that has not come here yet.
    if (rejection && rejection->reason == kNodeAffinity) {
      rejection = ask(true, tools_.others(uid_));
    }
    // The scheduler does not see pods that were deleted by force and are still on their way out.
    if (rejection && !ask(false, tools_.lasting_others(uid_))) {
      if (!told_no_room_) {
        tools_.events.normal(
            pod_, "", "WaitingForRoom",
            cat(rejection->message, "; pods that were deleted by force are ending"));
      }
      told_no_room_ = true;
      look_again(kRoomRetry);
      return false;
    }
  }
  if (!rejection && tools_.disk_pressure() && !is_critical(pod_)) {
    rejection = Rejection{kEvicted, "The node had condition: [DiskPressure]. "};
  }
  if (!rejection) {
    if (const auto granted = tools_.claims.grant(pod_); !granted) {
      rejection = Rejection{
          "UnexpectedAdmissionError",
          cat("Allocate failed due to ", granted.error().message(), ", which is unexpected")};
    }
  }
  if (!rejection) {
    if (const std::string what = without_effect(pod_, tools_.facts); !what.empty()) {
      tools_.events.warning(pod_, "", "FieldWithoutEffect", what);
    }
    const MutexLock lock(mutex_);
    taken_ = true;
    allocation_ = asked_;
    return true;
  }
  tools_.events.warning(pod_, "", rejection->reason, rejection->message);
  Value status =
      rejected_status(pod_, rejection->reason, rejection->message, tools_.runtime.clock.now());
  stage_ = Stage::ended;
  volumes_gone_ = true;
  unprepared_ = true;
  {
    const MutexLock lock(mutex_);
    shown_status_ = status;
  }
  tools_.statuses.set(pod_, std::move(status));
  return false;
}

bool PodWorker::past_deadline() {
  const Value& seconds = pod_["spec"]["activeDeadlineSeconds"];
  const Time now = tools_.runtime.clock.now();
  if (!seconds.is_integer()) return false;
  const Time since = time_of(pod_["status"]["startTime"], now);
  const Duration left = seconds_of(seconds.as_int()) - (now - since);
  if (left.count() > 0) {
    look_again(left);
    return false;
  }
  const std::string message = "Pod was active on the node longer than the specified deadline";
  tools_.events.normal(pod_, "", "DeadlineExceeded", message);
  begin_end("DeadlineExceeded", message);
  return true;
}

bool PodWorker::evicted() {
  std::optional<Eviction> why;
  {
    const MutexLock lock(mutex_);
    why = eviction_;
  }
  if (!why) return false;
  tools_.events.warning(pod_, "", kEvicted, why->message);
  disrupted_ = why->disrupts;
  begin_end(kEvicted, why->message);
  return true;
}

void PodWorker::run() {
  if (!admit()) return;
  tools_.objects.retain(pod_);
  if (past_deadline() || evicted()) return;
  grant();
  follow_probes();
  PlanInput input{pod_, view_, {}, probes_now_, hooks_now_};
  input.started = [this](std::string_view name, const std::string& id) {
    return tools_.probes.started(uid_, name, id);
  };
  PodPlan plan = plan_pod(input);
  if (plan.finished) return begin_end("", "");
  if (!told_initial_) {
    // On its way while the rest is done, which may take long.
    put_status(false);
    told_initial_ = true;
  }
  kill_planned(plan);
  actuate();
  bool ready = view_.sandbox_ready();
  if (plan.new_sandbox) {
    ready = make_sandbox(plan);
  } else if (ready) {
    // Contents may have changed; what fails now is told, but the pod goes on with what it has.
    const bool fresh = set_up_volumes();
    ready = fresh || plan.start.empty();
  }
  if (ready && tell_networks()) {
    for (const auto& container : plan.start) {
      start(container);
      const ContainerStatus* now = view_.current(container.name());
      // Nothing tells that it has started when there is no probe: look at once.
      if (container.kind == ContainerKind::sidecar && now != nullptr &&
          now->state == ContainerState::running) {
        tools_.wake(uid_);
      }
    }
    if (!plan.start.empty()) follow_probes();
  }
  if (!tools_.facts.simulated) look_again(kResync);
  put_status(false);
}

bool PodWorker::set_up_volumes() {
  const auto failures = tools_.volumes.set_up(pod_);
  if (failures.empty()) return true;
  bool failed = false;
  for (const auto& failure : failures) {
    if (failure.waits) continue;
    tools_.events.warning(pod_, "", "FailedMount", failure.message);
    failed = true;
  }
  if (failed) {
    grow_retry();
  } else {
    look_again(kAttachRetry);
  }
  return false;
}

bool PodWorker::make_sandbox(const PodPlan& plan) {
  if (plan.sandbox_changed) {
    // What is left of the old one ends first, so that nothing runs twice.
    if (view_.any_running()) {
      kill_deadline_ = tools_.runtime.clock.steady() + grace_period(pod_);
      kill_all();
      return false;
    }
    tools_.events.normal(pod_, "", "SandboxChanged",
                         "Pod sandbox changed, it will be killed and re-created.");
    for (const auto& sandbox : view_.sandboxes) {
      if (const auto stopped = tools_.containers.stop_sandbox(sandbox.id); !stopped) {
        log::warn("sandbox cannot be stopped",
                  {{"pod", pod_text(pod_)}, {"error", stopped.error().message()}});
        grow_retry();
        return false;
      }
    }
  }
  if (!set_up_volumes()) return false;
  if (const auto prepared = tools_.claims.prepare(pod_); !prepared) {
    tools_.events.warning(pod_, "", "FailedPrepareDynamicResources",
                          cat("Failed to prepare dynamic resources: ", prepared.error().message()));
    grow_retry();
    return false;
  }
  const auto fail = [this](const Error& error) {
    tools_.events.warning(pod_, "", "FailedCreatePodSandBox",
                          cat("Failed to create pod sandbox: ", error.message()));
    grow_retry();
    return false;
  };
  auto sandbox = build_sandbox_config(pod_, plan.sandbox_attempt, tools_.facts, tools_.log_root);
  if (!sandbox) return fail(sandbox.error());
  for (const auto& [reason, note] : sandbox->notes) tools_.events.warning(pod_, "", reason, note);
  auto networks = plan_networks(tools_.client, pod_, tools_.facts);
  if (!networks) return fail(networks.error());
  for (const auto& [reason, note] : networks->notes) tools_.events.warning(pod_, "", reason, note);
  sandbox->config.networks = std::move(networks->networks);
  if (tools_.containers.outlives_agent()) {
    // Over what the pod's own annotations may say.
    sandbox->config.annotations[kAllocationAnnotation] = json::write(allocation_of(pod_));
    sandbox->config.annotations[kLimitsAnnotation] = limits_text(sandbox->config.limits);
  }
  auto id = tools_.containers.run_sandbox(sandbox->config);
  if (!id) return fail(id.error());
  auto status = tools_.containers.sandbox_status(*id);
  if (!status) return fail(status.error());
  view_.add(std::move(status).value());
  retry_ = Duration(0);
  kill_deadline_ = Duration(0);
  return view_.sandbox_ready();
}

// Containers may read it, so it is there before the first of them.
bool PodWorker::tell_networks() {
  const SandboxStatus* sandbox = view_.sandbox();
  if (sandbox == nullptr || sandbox->network_status.empty()) return true;
  const std::string& status = sandbox->network_status;
  const Value& annotations = pod_["metadata"]["annotations"];
  if (status == told_networks_ || annotations[kNetworkStatusAnnotation].as_string() == status) {
    return true;
  }
  const Value patch = Value::object(
      {{"metadata",
        Value::object({{"uid", uid_},
                       {"annotations", Value::object({{kNetworkStatusAnnotation, status}})}})}});
  client::WriteOptions how;
  how.subresource = "status";
  const auto written = tools_.client.patch(kPods, namespace_of(pod_), name_of(pod_),
                                           client::PatchType::merge, patch, how);
  if (!written && written.error().code() != Code::not_found) {
    tools_.events.warning(pod_, "", "FailedNetworkStatus",
                          cat("The pod's networks cannot be told: ", written.error().message()));
    grow_retry();
    return false;
  }
  told_networks_ = status;
  pod_.mut("metadata").mut("annotations").set(kNetworkStatusAnnotation, status);
  return true;
}

void PodWorker::kill_planned(const PodPlan& plan) {
  for (const auto& planned : plan.kill) {
    for (const auto& container : containers_of(pod_)) {
      if (container.name() != planned.name) continue;
      Duration grace = seconds_of(pod_["spec"]["terminationGracePeriodSeconds"].as_int(30));
      if (planned.probe != nullptr) {
        const Value& own = container.spec[planned.probe]["terminationGracePeriodSeconds"];
        if (own.is_integer()) grace = seconds_of(own.as_int());
      }
      KillOrder order;
      order.container = {pod_, container.spec, planned.id, {}, sandbox_ip()};
      order.grace = grace;
      order.note = planned.message;
      tools_.probes.remove(uid_, container.name());
      tools_.killer.kill(std::move(order));
    }
  }
  std::vector<std::string> failed;
  {
    const MutexLock lock(mutex_);
    failed = std::exchange(failed_hooks_, {});
  }
  for (const auto& id : failed) {
    for (const auto& container : containers_of(pod_)) {
      const ContainerStatus* status = view_.current(container.name());
      if (status == nullptr || status->id != id) continue;
      KillOrder order;
      order.container = {pod_, container.spec, id, {}, sandbox_ip()};
      order.grace = seconds_of(pod_["spec"]["terminationGracePeriodSeconds"].as_int(30));
      order.note = "FailedPostStartHook";
      tools_.killer.kill(std::move(order));
    }
  }
}

void PodWorker::wait(const SpecContainer& container, const char* reason,
                     const std::string& message) {
  waiting_[std::string(container.name())] = {reason, message};
}

bool PodWorker::in_backoff(const SpecContainer& container, const ContainerStatus* before) {
  if (before == nullptr || before->state != ContainerState::exited) return false;
  const std::string key(container.name());
  const Time now = tools_.runtime.clock.now();
  const Duration left = backoff_.left(key, before->finished, now);
  if (left.count() <= 0) {
    backoff_.tried(key, before->finished, now);
    return false;
  }
  tools_.events.warning(
      pod_, container.name(), "BackOff",
      cat("Back-off restarting failed container ", key, " in pod ", pod_text(pod_)));
  wait(container, "CrashLoopBackOff",
       cat("back-off ", format_duration(backoff_.delay(key)), " restarting failed container=", key,
           " pod=", pod_text(pod_)));
  look_again(left);
  return true;
}

unsigned PodWorker::next_attempt(const SpecContainer& container) const {
  if (const ContainerStatus* newest = view_.newest(container.name())) return newest->attempt + 1;
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Value& status : pod_["status"][list].items()) {
      if (status["name"].as_string() != container.name()) continue;
      // The runtime has forgotten it, the server has not.
      const bool ran = status["containerID"].is_string();
      return static_cast<unsigned>(status["restartCount"].as_int() + (ran ? 1 : 0));
    }
  }
  return 0;
}

std::optional<VolumeImages> PodWorker::volume_images(const SpecContainer& container) {
  VolumeImages images;
  for (const Value& volume : pod_["spec"]["volumes"].items()) {
    if (!volume["image"].is_object()) continue;
    const auto& mounts = container.spec["volumeMounts"].items();
    const bool mounted = std::any_of(mounts.begin(), mounts.end(), [&](const Value& mount) {
      return mount["name"].as_string() == volume["name"].as_string();
    });
    if (!mounted) continue;
    // Events about it are the pod's.
    const Value wanted = Value::object({{"name", ""},
                                        {"image", volume["image"]["reference"]},
                                        {"imagePullPolicy", volume["image"]["pullPolicy"]}});
    const ImageOutcome image = tools_.images.ensure(pod_, wanted);
    if (!image.image) {
      wait(container, image.problem.reason.c_str(), image.problem.message);
      look_again(image.again);
      return std::nullopt;
    }
    images[volume["name"].str()] = image.image->id;
  }
  return images;
}

void PodWorker::start(const SpecContainer& container) {
  const std::string name(container.name());
  // Made, but not started, by an agent that died: nobody knows how far it got.
  if (const ContainerStatus* left = view_.newest(name);
      left != nullptr && left->state == ContainerState::created) {
    const std::string id = left->id;
    if (!tools_.containers.remove_container(id)) return grow_retry();
    view_.remove_container(id);
  }
  if (in_backoff(container, view_.newest(name))) return;
  if (container.kind == ContainerKind::ephemeral) {
    // It came after the pod was admitted.
    if (const auto why = refuse_container(container.spec, "", tools_.facts)) {
      tools_.events.warning(pod_, name, "Failed", cat("Error: ", *why));
      return wait(container, "CreateContainerConfigError", *why);
    }
  }
  const ImageOutcome image = tools_.images.ensure(pod_, container.spec);
  if (!image.image) {
    wait(container, image.problem.reason.c_str(), image.problem.message);
    look_again(image.again);
    return;
  }
  auto volumes = volume_images(container);
  if (!volumes) return;
  const auto fail = [&](const char* reason, const std::string& message) {
    tools_.events.warning(pod_, name, "Failed", cat("Error: ", message));
    wait(container, reason, message);
  };
  const auto devices = tools_.claims.devices_of(pod_, name);
  if (!devices) {
    look_again(kConfigRetry);
    return fail("CreateContainerConfigError", devices.error().message());
  }
  ContainerStart request{pod_, container.spec, next_attempt(container), *image.image};
  request.volume_images = std::move(*volumes);
  request.devices = *devices;
  request.addresses.host_ips = tools_.facts.addresses;
  const SandboxStatus* sandbox = view_.sandbox();
  request.addresses.pod_ips =
      pod_["spec"]["hostNetwork"].as_bool() ? tools_.facts.addresses : sandbox->ips;
  auto config = build_container_config(request, tools_.facts, tools_.sources, tools_.volumes);
  if (!config) {
    look_again(kConfigRetry);
    return fail("CreateContainerConfigError", config.error().message());
  }
  if (const auto target = container.spec["targetContainerName"].as_string(); !target.empty()) {
    const ContainerStatus* other = view_.current(target);
    if (other == nullptr || other->state != ContainerState::running) {
      look_again(kConfigRetry);
      return fail("CreateContainerConfigError",
                  cat("unable to find target container ", quoted(target)));
    }
    config->target_id = other->id;
  }
  config->annotations[kResourcesAnnotation] = json::write(container.spec["resources"]);
  if (tools_.containers.outlives_agent()) {
    config->annotations[kLimitsAnnotation] = limits_text(config->limits);
  }
  config->annotations[kUserAnnotation] = json::write(user_of(config->security, *image.image));
  auto plan = build_sandbox_config(pod_, sandbox->attempt, tools_.facts, tools_.log_root);
  if (!plan) return fail("CreateContainerConfigError", plan.error().message());
  auto id = tools_.containers.create_container(sandbox->id, plan->config, *config);
  if (!id) {
    grow_retry();
    return fail("CreateContainerError", id.error().message());
  }
  tools_.events.normal(pod_, name, "Created", "Container created");
  const auto started = tools_.containers.start_container(*id);
  auto status = tools_.containers.container_status(*id);
  if (status) view_.add(std::move(status).value());
  if (!started) {
    // How it ended is in its status; whether it is tried again is the plan's business.
    tools_.wake(uid_);
    return fail("RunContainerError", started.error().message());
  }
  tools_.events.normal(pod_, name, "Started", "Container started");
  waiting_.erase(name);
  retry_ = Duration(0);
  start_hook(container, *id);
  forget_old_containers(name);
}

void PodWorker::start_hook(const SpecContainer& container, const std::string& id) {
  const Value& hook = container.spec["lifecycle"]["postStart"];
  if (hook.empty()) return;
  {
    const MutexLock lock(mutex_);
    hooks_running_[id] = true;
    hooks_now_[id] = true;
  }
  ProbedContainer target{pod_, container.spec, id, {}, sandbox_ip()};
  auto finished = [self = shared_from_this(), target](bool failed) {
    if (failed) {
      self->tools_.events.warning(target.pod, target.container["name"].as_string(),
                                  "FailedPostStartHook", "PostStartHook failed");
    }
    self->hook_ended(target.id, failed);
    self->tools_.wake(self->uid_);
  };
  if (hook["sleep"].is_object()) {
    tools_.run_after(seconds_of(hook["sleep"]["seconds"].as_int()),
                     [finished] { finished(false); });
    return;
  }
  tools_.run_after(Duration(0), [prober = tools_.prober, target, hook, finished] {
    const ProbeAnswer answer = prober(target, hook, Duration(0));
    finished(answer.outcome == ProbeAnswer::Outcome::failure ||
             answer.outcome == ProbeAnswer::Outcome::unknown);
  });
}

void PodWorker::forget_old_containers(std::string_view name) {
  // The one before stays: lastState and `logs --previous` show it.
  std::vector<std::string> old;
  if (const auto found = view_.containers.find(name); found != view_.containers.end()) {
    for (std::size_t i = 2; i < found->second.size(); ++i) old.push_back(found->second[i].id);
  }
  for (const auto& id : old) {
    if (!tools_.containers.remove_container(id)) continue;
    view_.remove_container(id);
    last_words_.erase(id);
  }
}

}  // namespace dibs::node
