// Attempts and what follows from them.
#include "scheduler/core.h"

#include "base/log.h"
#include "base/strings.h"
#include "scheduler/explain.h"

namespace dibs::scheduler {
namespace {

using client::PatchType;
using json::Value;

/// Decisions that may be on their way to the API at once.
constexpr std::size_t kMostBinding = 64;

/// Nodes that an event tells about: it is made while other pods wait.
constexpr std::size_t kMostExplained = 200;
/// Explanations in a second: where more pods wait, whoever can be placed goes first, and the rest
/// is told at a later attempt.
constexpr int kMostExplanations = 50;

const Value& condition_of(const Value& pod, std::string_view type) {
  for (const Value& condition : pod["status"]["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return json::null_value();
}

}  // namespace

void Scheduler::Core::kick() {
  if (stepping || !ready) return;
  stepping = true;
  post([this] { step(); });
}

void Scheduler::Core::step() {
  stepping = false;
  queue.flush(now());
  if (binder->running() >= kMostBinding) return;  // bound() comes back here
  const Queue::Popped popped = queue.pop(now());
  if (popped.pod == nullptr) {
    arm();
    return;
  }
  attempt(popped);
  kick();
}

void Scheduler::Core::arm() {
  const Duration due = queue.next_due(now());
  if (due < Duration(0)) return;
  const Duration at = now() + due;
  if (armed > now() && armed <= at) return;
  armed = at;
  runtime.timers.after(due, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->post([core = self.get()] { core->kick(); });
  });
}

void Scheduler::Core::attempt(const Queue::Popped& popped) {
  const PodPtr& pod = popped.pod;
  if (pod->is_group) return attempt_group(popped);
  const Profile* profile = profile_of(*pod);
  if (profile == nullptr) return queue.remove(pod->key);
  if (extenders != nullptr && extenders->judge(*pod)) {
    to_ask.push_back(popped);
    return next_to_ask();
  }
  const Duration began = now();
  Decision decision = placer.place(*pod, *profile, runtime.clock.now());
  if (metrics && decision.kind == Decision::Kind::placed)
    metrics->algorithm_seconds.one().observe(now() - began);
  conclude(popped, *profile, decision, began);
}

void Scheduler::Core::conclude(const Queue::Popped& popped, const Profile& profile,
                               Decision& decision, Duration began) {
  const PodPtr& pod = popped.pod;
  const char* result = "unschedulable";
  switch (decision.kind) {
    case Decision::Kind::waits:
      queue.hold(pod, now());
      return;
    case Decision::Kind::placed:
      if (!decision.run.asked.empty()) {
        negotiate(popped, decision);
        break;
      }
      result = "scheduled";
      assume(popped, decision);
      break;
    case Decision::Kind::unplaced:
      if (decision.failure.error) result = "error";
      unplaced(popped, profile, decision);
      if (options.explain_events) explain(pod, profile);
      break;
  }
  if (options.attempt) options.attempt(now() - began);
  if (!metrics) return;
  metrics->attempts.with({result, profile.name}).add();
  metrics->attempt_seconds.with({result, profile.name}).observe(now() - began);
}

void Scheduler::Core::assume(const Queue::Popped& popped, Decision& decision) {
  const PodPtr& pod = popped.pod;
  BindJob job = make_job(pod, *decision.node, popped);
  job.group = cat(pod->signature(), decision.run.signature);
  count_decided(job, decision.devices.node_allocatable);
  std::size_t next = 0;
  for (const PodClaim& claim : decision.run.claims) {
    ClaimWrite write;
    write.key = claim.key;
    write.flight = claim.key;
    if (!claim.allocated) {
      write.allocation = decision.devices.allocations[next++];
      devices.reserve(write.flight, write.allocation);
      write.driver = devices.driver_of(claim);
    }
    job.claims.push_back(std::move(write));
  }
  if (decision.devices.extended >= 0) add_extended_claim(decision.run, decision.devices, next, job);
  queue.next_of(job.group, now());
  wake_for_pod(*pod);
  if (pod->claims_volumes) return bind_volumes(std::move(job), *profile_of(*pod), *decision.node);
  binder->start(std::move(job));
}

BindJob Scheduler::Core::make_job(const PodPtr& pod, const NodeInfo& node,
                                  const Queue::Popped& popped) const {
  BindJob job;
  job.pod = pod;
  job.node = node.name;
  job.binding_timeout = profile_of(*pod)->binding_timeout;
  job.attempts = popped.attempts;
  job.queued = now() - popped.since;
  return job;
}

void Scheduler::Core::count_decided(BindJob& job, const Value& node_allocatable) {
  const PodPtr& pod = job.pod;
  state.drop_nomination(pod->key);
  job.node_allocatable = node_allocatable;
  // With what its claims take of the node, which the API does not know yet.
  state.add_pod(job.node_allocatable.is_null()
                    ? pod
                    : Pod::read(with_claim_statuses(pod->object, job.node_allocatable)),
                job.node);
  binding[pod->key] = pod->uid;
}

void Scheduler::Core::add_extended_claim(const DeviceRun& run, const NodeDevices& found,
                                         std::size_t place, BindJob& job) {
  const auto& wanted = run.extended[static_cast<std::size_t>(found.extended)].wanted;
  ClaimWrite write;
  write.flight = cat("extended of ", job.pod->uid);
  write.allocation = found.allocations[place];
  write.create = make_extended_claim(*job.pod, wanted.requests);
  devices.reserve(write.flight, write.allocation);
  job.claims.push_back(std::move(write));
  job.mappings = wanted.mappings;
}

void Scheduler::Core::bind_volumes(BindJob job, const Profile& profile, const NodeInfo& node,
                                   const VolumePlan* planned) {
  VolumePlan plan;
  if (planned != nullptr) {
    plan = *planned;
  } else {
    const Volumes& volumes = state.volumes();
    const VolumeRun run = volumes.prepare(*job.pod, profile.filters());
    if (const auto cause = volumes.plan(run, node, plan)) {
      return binder->give_up(std::move(job),
                             cat(kVolumePreBind, "binding volumes: ",
                                 run.reason.empty() ? words_of(*cause) : run.reason));
    }
  }
  if (plan.empty()) return binder->start(std::move(job));
  const PodPtr pod = job.pod;
  const std::string name = job.node;
  if (job.together != nullptr) {
    job.together->on_failure.emplace_back(
        [this, pod](const std::string& failure) { volume_binder->end(*pod, failure); });
  }
  volume_binder->start(pod, name, std::move(plan), profile.volume_timeout,
                       [this, job = std::move(job)](const std::string& failure) {
                         if (failure.empty()) return binder->start(job);
                         binder->give_up(job, failure);
                       });
}

void Scheduler::Core::unplaced(const Queue::Popped& popped, const Profile& profile,
                               Decision& decision) {
  const PodPtr& pod = popped.pod;
  Failure& failure = decision.failure;
  if (failure.error && !failure.waits) {
    report(pod, failure);
    queue.fail(pod, now());
    return;
  }
  std::string more;
  Preemption found;
  if (!failure.error && !state.nodes().empty()) {
    more = after_filters(pod, profile, decision, found);
    if (extenders != nullptr && !found.options.empty() && extenders->judge_victims(*pod)) {
      return ask_about_victims(popped, decision, more, found);
    }
  }
  park(popped, decision, std::move(more), found);
}

void Scheduler::Core::park(const Queue::Popped& popped, Decision& decision, std::string more,
                           const Preemption& found) {
  const PodPtr& pod = popped.pod;
  Failure& failure = decision.failure;
  if (!found.message.empty()) append(more, more.empty() ? "" : ", ", found.message);
  if (!more.empty()) append(failure.message, " ", more, is_early(options.release) ? "." : "");
  failure.nominated_node = found.node;
  if (!found.victims.empty()) preempt(pod, found);
  report(pod, failure);
  std::string group = cat(pod->signature(), decision.run.signature);
  // What an extender says of one pod it need not say of its equals.
  if (decision.refused_outside || decision.unasked) append(group, pod->key);
  queue.park(pod, group, failure.plugins, now());
  if (decision.unasked) queue.wake_pod(pod->key, now(), "ExtenderUnasked", true);
}

std::string Scheduler::Core::after_filters(const PodPtr& pod, const Profile& profile,
                                           Decision& decision, Preemption& found) {
  std::string more;
  if (profile.has(Point::post_filter, Plugin::dynamic_resources)) {
    more = free_claim(pod, decision);
    if (!more.empty() && is_early(options.release)) return {};
    constexpr int kSilentRelease = 37;  // the first that says nothing where nothing was done
    if (more.empty() && options.release < kSilentRelease) {
      more = decision.run.ready == DeviceRun::Ready::go ? "still not schedulable"
                                                        : "no new claims to deallocate";
    }
  }
  const bool servable = profile.devices() || pod->shape->claims.empty();
  if (servable && profile.has(Point::post_filter, Plugin::default_preemption)) {
    if (metrics) metrics->preemptions.one().add();
    found = find_victims(state, devices, pod, profile, decision.run, decision.resolvable, budgets);
  }
  return more;
}

std::string Scheduler::Core::free_claim(const PodPtr& pod, const Decision& decision) {
  for (const std::size_t index : decision.unavailable) {
    const PodClaim& claim = decision.run.claims[index];
    const Value& users_of = claim.object["status"]["reservedFor"];
    if (users_of.size() > 1 || (users_of.size() == 1 && !claim.reserved)) continue;
    if (claim.way != Way::devices) {
      if (!free_classic(pod, claim)) continue;
      return "deallocation of ResourceClaim completed";
    }
    Value freed = claim.object;
    freed.mut("status").erase("allocation");
    freed.mut("status").erase("reservedFor");
    freed.mut("status").erase("devices");
    send(client::update_request(kClaims, pod->name_space, freed, status_write()),
         "claim cannot be deallocated");
    return "deallocation of ResourceClaim completed";
  }
  if (decision.run.stale_extended.empty()) return {};
  const std::string key = decision.run.stale_extended;
  const auto [name_space, name] = client::split_key(key);
  Value claim = devices.claim(key);
  Value kept = Value::array();
  for (const Value& finalizer : claim["metadata"]["finalizers"].items()) {
    if (finalizer.as_string() != kClaimFinalizer) kept.push(finalizer);
  }
  claim.mut("metadata").set("finalizers", kept);
  client.call(
      client::update_request(kClaims, name_space, claim),
      [weak = weak_from_this(), name_space = name_space, name = name](const Result<Value>& answer) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        if (!answer.ok()) {
          log::warn("claim cannot be freed", {{"error", answer.error()}});
          return;
        }
        self->send(client::make_request("DELETE", client::path_of(kClaims, name_space, name)),
                   "claim cannot be deleted");
      });
  return "deletion of ResourceClaim completed";
}

void Scheduler::Core::preempt(const PodPtr& pod, const Preemption& preemption) {
  state.nominate(pod, preemption.node);
  if (metrics) metrics->victims.one().observe(static_cast<double>(preemption.victims.size()));
  for (const PodPtr& victim : with_their_groups(preemption.victims)) {
    drive_out(*victim, pod->object, "pod", pod->shape->scheduler_name, preemption.node);
  }
}

void Scheduler::Core::drive_out(const Pod& victim, const Value& by, std::string_view kind,
                                std::string_view scheduler_name, std::string_view node) {
  if (victim.terminating) return;
  const Value condition = Value::object(
      {{"type", "DisruptionTarget"},
       {"status", "True"},
       {"reason", "PreemptionByScheduler"},
       {"message", cat(scheduler_name, ": preempting to accommodate a higher priority ", kind)},
       {"lastTransitionTime", format_rfc3339(runtime.clock.now())}});
  const Value patch =
      Value::object({{"metadata", Value::object({{"uid", victim.uid}})},
                     {"status", Value::object({{"conditions", Value::array({condition})}})}});
  const Value uid = Value::object({{"apiVersion", "v1"},
                                   {"kind", "DeleteOptions"},
                                   {"preconditions", Value::object({{"uid", victim.uid}})}});
  client::Request removal =
      client::make_request("DELETE", client::path_of(kPods, victim.name_space, victim.name), uid);
  recorder.record({.regarding = victim.object,
                   .related = by,
                   .reason = "Preempted",
                   .action = "Preempting",
                   .note = cat("Preempted by ", kind, " ", by["metadata"]["uid"].as_string(),
                               " on node ", node)});
  client.call(client::patch_request(kPods, victim.name_space, victim.name, PatchType::strategic,
                                    patch, status_write()),
              [weak = weak_from_this(), removal](const Result<Value>&) {
                if (const auto self = weak.lock()) self->send(removal, "victim cannot be deleted");
              });
}

void Scheduler::Core::report(const PodPtr& pod, const Failure& failure) {
  recorder.record({.regarding = pod->object,
                   .warning = true,
                   .reason = "FailedScheduling",
                   .action = "Scheduling",
                   .note = failure.message});
  const std::string_view reason = failure.error ? "SchedulerError" : "Unschedulable";
  const Value& before = condition_of(pod->object, "PodScheduled");
  const bool nominates =
      !failure.nominated_node.empty() && failure.nominated_node != pod->nominated_node();
  if (before["status"].as_string() == "False" && before["reason"].as_string() == reason &&
      before["message"].as_string() == failure.message && !nominates) {
    return;
  }
  Value condition = Value::object({{"type", "PodScheduled"},
                                   {"status", "False"},
                                   {"reason", reason},
                                   {"message", failure.message}});
  if (pod->object["metadata"]["generation"].is_integer()) {
    condition.set("observedGeneration", pod->object["metadata"]["generation"]);
  }
  if (before["status"].as_string() != "False") {
    condition.set("lastProbeTime", nullptr);
    condition.set("lastTransitionTime", format_rfc3339(runtime.clock.now()));
  }
  Value status = Value::object({{"conditions", Value::array({condition})}});
  if (nominates) status.set("nominatedNodeName", failure.nominated_node);
  const Value patch =
      Value::object({{"metadata", Value::object({{"uid", pod->uid}})}, {"status", status}});
  send(client::patch_request(kPods, pod->name_space, pod->name, PatchType::strategic, patch,
                             status_write()),
       "condition cannot be written");
}

void Scheduler::Core::explain(const PodPtr& pod, const Profile& profile) {
  if (now() - explaining_since >= std::chrono::seconds(1)) {
    explaining_since = now();
    explanations = 0;
  }
  if (++explanations > kMostExplanations) return;
  ExplainScope scope;
  scope.most_nodes = kMostExplained;
  scope.most_groups = 8;
  scope.names_own_only = true;
  const Explanation found =
      explain_placement(state, devices, pod, profile, runtime.clock.now(), scope);
  std::string text = summary(found);
  if (text.empty()) return;  // there are no nodes, and the other event has said so
  recorder.record({.regarding = pod->object,
                   .reason = "Explained",
                   .action = "Scheduling",
                   .note = std::move(text)});
}

void Scheduler::Core::bound(const BindJob& job, const std::string& failure) {
  const PodPtr& pod = job.pod;
  const bool current = is_binding(*pod);
  if (current) binding.erase(pod->key);
  const auto still = waiting.find(pod->key);
  // The queue knows pods by their keys.
  const bool replaced = still != waiting.end() && still->second->uid != pod->uid;
  if (failure.empty()) {
    recorder.record({.regarding = pod->object,
                     .reason = "Scheduled",
                     .action = "Binding",
                     .note = cat("Successfully assigned ", pod->key, " to ", job.node)});
    if (current && !replaced) queue.remove(pod->key);
    if (metrics) {
      // As Kubernetes does: each number would be a series of its own.
      const std::string attempts = job.attempts < 15 ? std::to_string(job.attempts) : "15+";
      metrics->wait_seconds.with({attempts}).observe(now() - job.queued);
      metrics->attempts_needed.one().observe(job.attempts);
    }
  } else {
    log::debug("pod cannot be bound", {{"pod", pod->key}, {"error", failure}});
    NodeInfo* node = state.node_of(pod->key);
    // Bound after all, or by somebody else: the informer has said so.
    const PodPtr there = state.counted(pod->key);
    const bool assumed = there != nullptr && there->uid == pod->uid && there->node_name.empty();
    if (assumed) {
      const std::string name = node->name;
      state.remove_pod(pod->key);
      count_in_group(*pod, false);
      if (NodeInfo* freed = state.find(name)) {
        wake_for_node(bit(Plugin::resources_fit) | bit(Plugin::node_ports) | kVolumePlugins, *freed,
                      "AssignedPodDelete");
      }
    }
    if (current && still != waiting.end() && !replaced) {
      Failure told;
      told.error = true;
      told.message = failure;
      report(still->second, told);
      if (in_group(*pod)) {
        rejoin_group(still->second, job.attempts);
      } else {
        queue.fail(still->second, now());
      }
    } else if (current && !replaced) {
      queue.remove(pod->key);
    }
    wake_devices("ResourceClaimUpdate");
  }
  for (const ClaimWrite& write : job.claims) {
    if (!write.key.empty()) after_claim(write.key, {.changed = true});
  }
  if (current && replaced) enqueue(waiting.at(pod->key));
  kick();
}

void Scheduler::Core::send(client::Request request, const char* what) {
  client.call(std::move(request), [what](const Result<Value>& answer) {
    if (answer.ok() || answer.error().code() == Code::not_found) return;
    log::warn(what, {{"error", answer.error()}});
  });
}

void Scheduler::Core::count() {
  if (!metrics) return;
  const Queue::Sizes sizes = queue.sizes();
  const auto set = [](metrics::Gauge& gauge, std::size_t n) { gauge.set(static_cast<double>(n)); };
  set(metrics->active, sizes.active);
  set(metrics->backoff, sizes.backoff);
  set(metrics->parked, sizes.unschedulable);
  set(metrics->gated, sizes.gated);
  set(metrics->nodes, state.nodes().size());
  set(metrics->pods, state.pod_count());
  set(metrics->assumed, binding.size());
}

void Scheduler::Core::count_parked(const Pod& pod, PluginSet rejected_by, bool parked) {
  const Profile* profile = profile_of(pod);
  // All of them: it is not known which plugin would help.
  if (profile == nullptr || rejected_by == ~PluginSet{0}) return;
  for (std::size_t i = 0; i < kPlugins; ++i) {
    const auto plugin = static_cast<Plugin>(i);
    if ((rejected_by & bit(plugin)) == 0) continue;
    metrics->unschedulable.with({plugin_name(plugin), profile->name}).add(parked ? 1 : -1);
  }
}

}  // namespace dibs::scheduler
