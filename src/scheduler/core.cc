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

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

client::WriteOptions status_write() {
  client::WriteOptions options;
  options.subresource = "status";
  options.field_manager = "dibs-scheduler";
  return options;
}

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
    count_queue();
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
  const Profile* profile = profile_of(*pod);
  if (profile == nullptr) return queue.remove(pod->key);
  const Duration began = now();
  Decision decision = placer.place(*pod, *profile, runtime.clock.now());
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
      unplaced(popped, *profile, decision);
      if (options.explain_events) explain(pod, *profile);
      break;
  }
  if (options.attempt) options.attempt(now() - began);
  if (!metrics) return;
  metrics->attempts.with({result, profile->name}).add();
  metrics->attempt_seconds.with({result, profile->name}).observe(seconds(now() - began));
}

void Scheduler::Core::assume(const Queue::Popped& popped, Decision& decision) {
  const PodPtr& pod = popped.pod;
  BindJob job;
  job.pod = pod;
  job.node = decision.node->name;
  job.binding_timeout = profile_of(*pod)->binding_timeout;
  job.attempts = popped.attempts;
  job.queued = now() - popped.since;
  job.group = cat(pod->signature(), decision.run.signature);
  state.drop_nomination(pod->key);
  job.node_allocatable = decision.devices.node_allocatable;
  // With what its claims take of the node, which the API does not know yet.
  state.add_pod(job.node_allocatable.is_null()
                    ? pod
                    : Pod::read(with_claim_statuses(pod->object, job.node_allocatable)),
                job.node);
  binding[pod->key] = pod->uid;
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
  if (decision.devices.extended >= 0) {
    const auto& wanted =
        decision.run.extended[static_cast<std::size_t>(decision.devices.extended)].wanted;
    ClaimWrite write;
    write.flight = cat("extended of ", pod->uid);
    write.allocation = decision.devices.allocations[next];
    write.create = make_extended_claim(*pod, wanted.requests);
    devices.reserve(write.flight, write.allocation);
    job.claims.push_back(std::move(write));
    job.mappings = wanted.mappings;
  }
  queue.next_of(job.group, now());
  wake_for_pod(*pod);
  if (pod->claims_volumes) return bind_volumes(std::move(job), *profile_of(*pod), *decision.node);
  binder->start(std::move(job));
}

void Scheduler::Core::bind_volumes(BindJob job, const Profile& profile, const NodeInfo& node) {
  const Volumes& volumes = state.volumes();
  VolumePlan plan = volumes.plan(volumes.prepare(*job.pod, profile.filters()), node);
  if (plan.empty()) return binder->start(std::move(job));
  const PodPtr pod = job.pod;
  const std::string name = job.node;
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
  if (!failure.error && !state.nodes().empty()) {
    const std::string more = after_filters(pod, profile, decision);
    if (!more.empty()) append(failure.message, " ", more, is_early(options.release) ? "." : "");
  }
  report(pod, failure);
  queue.park(pod, cat(pod->signature(), decision.run.signature), failure.plugins, now());
}

std::string Scheduler::Core::after_filters(const PodPtr& pod, const Profile& profile,
                                           Decision& decision) {
  std::string more;
  if (profile.has(Point::post_filter, Plugin::dynamic_resources)) {
    more = free_claim(pod, decision);
    if (!more.empty() && is_early(options.release)) return {};
    if (more.empty() && is_classic_release(options.release)) {
      more = decision.run.ready == DeviceRun::Ready::go ? "still not schedulable"
                                                        : "no new claims to deallocate";
    }
  }
  const bool servable = profile.devices() || pod->shape->claims.empty();
  if (servable && profile.has(Point::post_filter, Plugin::default_preemption)) {
    if (metrics) metrics->preemptions.one().add();
    const Preemption found =
        find_victims(state, devices, pod, profile, decision.run, decision.resolvable, budgets);
    append(more, more.empty() ? "" : ", ", found.message);
    decision.failure.nominated_node = found.node;
    if (!found.victims.empty()) preempt(pod, found);
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
  for (const PodPtr& victim : preemption.victims) {
    if (victim->terminating) continue;
    const Value condition =
        Value::object({{"type", "DisruptionTarget"},
                       {"status", "True"},
                       {"reason", "PreemptionByScheduler"},
                       {"message", cat(pod->shape->scheduler_name,
                                       ": preempting to accommodate a higher priority pod")},
                       {"lastTransitionTime", format_rfc3339(runtime.clock.now())}});
    const Value patch =
        Value::object({{"metadata", Value::object({{"uid", victim->uid}})},
                       {"status", Value::object({{"conditions", Value::array({condition})}})}});
    const Value uid = Value::object({{"apiVersion", "v1"},
                                     {"kind", "DeleteOptions"},
                                     {"preconditions", Value::object({{"uid", victim->uid}})}});
    client::Request removal = client::make_request(
        "DELETE", client::path_of(kPods, victim->name_space, victim->name), uid);
    recorder.record({.regarding = victim->object,
                     .related = pod->object,
                     .reason = "Preempted",
                     .action = "Preempting",
                     .note = cat("Preempted by pod ", pod->uid, " on node ", preemption.node)});
    client.call(client::patch_request(kPods, victim->name_space, victim->name, PatchType::strategic,
                                      patch, status_write()),
                [weak = weak_from_this(), removal](const Result<Value>&) {
                  if (const auto self = weak.lock())
                    self->send(removal, "victim cannot be deleted");
                });
  }
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
  ExplainScope scope;
  scope.most_nodes = kMostExplained;
  scope.most_groups = 8;
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
  const auto mine = binding.find(pod->key);
  const bool current = mine != binding.end() && mine->second == pod->uid;
  if (current) binding.erase(mine);
  if (failure.empty()) {
    recorder.record({.regarding = pod->object,
                     .reason = "Scheduled",
                     .action = "Binding",
                     .note = cat("Successfully assigned ", pod->key, " to ", job.node)});
    if (current) queue.remove(pod->key);
    if (metrics) {
      metrics->wait_seconds.with({std::to_string(job.attempts)})
          .observe(seconds(now() - job.queued));
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
      if (NodeInfo* freed = state.find(name)) {
        wake_for_node(bit(Plugin::resources_fit) | bit(Plugin::node_ports) | kVolumePlugins, *freed,
                      "AssignedPodDelete");
      }
    }
    const auto still = waiting.find(pod->key);
    if (current && still != waiting.end() && still->second->uid == pod->uid) {
      Failure told;
      told.error = true;
      told.message = failure;
      report(still->second, told);
      queue.fail(still->second, now());
    } else if (current) {
      queue.remove(pod->key);
    }
    wake_devices("ResourceClaimUpdate");
  }
  for (const ClaimWrite& write : job.claims) {
    if (!write.key.empty()) after_claim(write.key, {.changed = true});
  }
  kick();
}

void Scheduler::Core::send(client::Request request, const char* what) {
  client.call(std::move(request), [what](const Result<Value>& answer) {
    if (answer.ok() || answer.error().code() == Code::not_found) return;
    log::warn(what, {{"error", answer.error()}});
  });
}

void Scheduler::Core::count_queue() {
  if (!metrics) return;
  const Queue::Sizes sizes = queue.sizes();
  metrics->pending.with({"active"}).set(static_cast<double>(sizes.active));
  metrics->pending.with({"backoff"}).set(static_cast<double>(sizes.backoff));
  metrics->pending.with({"unschedulable"}).set(static_cast<double>(sizes.unschedulable));
  metrics->pending.with({"gated"}).set(static_cast<double>(sizes.gated));
}

}  // namespace dibs::scheduler
