// Claims of v1alpha2: the talk with drivers, and what wakes the pods that wait for them.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "scheduler/core.h"

namespace dibs::scheduler {
namespace {

using json::Value;

client::WriteOptions write_as_upstream() {
  client::WriteOptions options;
  options.subresource = "status";
  options.field_manager = "kube-scheduler";
  return options;
}

/// Drivers refuse every node that was proposed.
bool refuses_all(const Value& context) {
  std::set<std::string_view> refused;
  for (const Value& answer : context["status"]["resourceClaims"].items()) {
    for (const Value& node : answer["unsuitableNodes"].items()) refused.insert(node.as_string());
  }
  const auto proposed = context["spec"]["potentialNodes"].items();
  return std::all_of(proposed.begin(), proposed.end(),
                     [&](const Value& node) { return refused.contains(node.as_string()); });
}

}  // namespace

void Scheduler::Core::negotiate(const Queue::Popped& popped, Decision& decision) {
  const PodPtr& pod = popped.pod;
  const DeviceRun& run = decision.run;
  Talk talk;
  talk.standing = run.standing;
  talk.asked = run.asked.size();
  for (const std::size_t place : run.asked) talk.heard += run.claims[place].answered ? 1 : 0;
  talk.searches = !run.open.empty() || decision.devices.extended >= 0;
  talk.chosen = decision.node->name;
  talk.candidates = std::move(decision.candidates);
  for (const std::string& name : run.standing.potential_nodes) {
    if (state.find(name) != nullptr) talk.known.push_back(name);
  }
  const Step step = scheduler::negotiate(talk, runtime.random);
  if (step.propose) {
    contexts->write(
        pod, *step.propose,
        [this, key = pod->key, uid = std::string(pod->uid)](const std::string& failure) {
          if (!failure.empty()) proposal_failed(key, uid, failure);
        });
  }
  const Failure failure = told(step, options.release);
  report(pod, failure);
  queue.park(pod, cat(pod->signature(), run.signature), failure.plugins, now());
}

void Scheduler::Core::proposal_failed(const std::string& pod_key, const std::string& pod_uid,
                                      const std::string& failure) {
  const auto found = waiting.find(pod_key);
  if (found == waiting.end() || found->second->uid != pod_uid) return;
  Failure told;
  told.error = true;
  told.message = cat("running ", is_early(options.release) ? "Reserve" : "PreBind",
                     " plugin \"DynamicResources\": ", failure);
  report(found->second, told);
  queue.fail(found->second, now());
  kick();
}

bool Scheduler::Core::free_classic(const PodPtr& pod, const PodClaim& claim) {
  // The other kind stays where it is until it is deleted.
  if (claim.object["spec"]["allocationMode"].as_string() == "Immediate") return false;
  Value freed = claim.object;
  freed.mut("status").erase("reservedFor");
  if (claim.way == Way::parameters) {
    freed.mut("status").erase("allocation");
  } else {
    freed.mut("status").set("deallocationRequested", true);
  }
  const auto free = [this, freed, name_space = std::string(pod->name_space)] {
    send(client::update_request(kClassicClaims, name_space, freed, write_as_upstream()),
         "claim cannot be deallocated");
  };
  Proposal standing = devices.proposal(pod->key);
  if (claim.way == Way::parameters || standing.selected_node.empty()) {
    free();
    return true;
  }
  // Else its driver would allocate it again for the same node.
  standing.selected_node.clear();
  contexts->write(
      pod, std::move(standing),
      [this, free, key = pod->key, uid = std::string(pod->uid)](const std::string& failure) {
        if (failure.empty()) return free();
        proposal_failed(key, uid, failure);
      });
  return true;
}

void Scheduler::Core::on_resource_class(const Value& object) {
  if (devices.put_resource_class(object)) wake_devices("ResourceClassUpdate");
}

void Scheduler::Core::on_context(const Value& object) {
  const ContextChange change = devices.put_context(object);
  const std::string key = client::key_of(object);
  if (!change.known) return;
  if (const PodPtr pod = state.counted(key); pod != nullptr && !pod->node_name.empty()) {
    return end_talk(*pod);
  }
  if (!change.helps) return;
  // In a large cluster there are always others to ask about, and no end to it.
  const bool patient = state.nodes().size() > kMostPotentialNodes && refuses_all(object);
  if (queue.wake_pod(key, now(), "PodSchedulingContextUpdate", patient)) kick();
}

void Scheduler::Core::on_context_removed(const Value& object) {
  const ContextChange change = devices.remove_context(object);
  if (!change.helps) return;
  if (queue.wake_pod(client::key_of(object), now(), "PodSchedulingContextDelete")) kick();
}

void Scheduler::Core::wake_selecting(std::string_view node, const char* why) {
  if (!devices.has_contexts()) return;
  queue.wake(
      bit(Plugin::dynamic_resources),
      [&](const Pod& pod) { return devices.proposal(pod.key).selected_node == node; }, now(), why);
  kick();
}

void Scheduler::Core::end_talk(const Pod& pod) {
  if (!devices.has_contexts()) return;
  const Value context = devices.context(pod.key);
  // One without potential nodes is not a scheduler's: the controllers ask drivers that way for
  // pods that came with a node.
  if (context["spec"]["potentialNodes"].empty() || !is_owned_by(context, pod.uid)) return;
  contexts->remove(pod.key);
}

}  // namespace dibs::scheduler
