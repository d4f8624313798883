// Trees of groups that come out of the queue: tried as one, bound as one, and what is told of it.
#include <algorithm>

#include "base/strings.h"
#include "scheduler/core.h"

namespace dibs::scheduler {
namespace {

using client::PatchType;
using json::Value;

Value condition_of(const Value& object, std::string_view type) {
  for (const Value& condition : object["status"]["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return {};
}

}  // namespace

std::string Scheduler::Core::group_fault(const AnyGroup& root,
                                         const std::vector<PodPtr>& pods) const {
  const Pod& first = *pods.front();
  for (const PodPtr& pod : pods) {
    if (extenders != nullptr && extenders->judge(*pod)) {
      return cat("pod ", pod->key, " is judged by an extender, which pods of a group cannot be");
    }
    if (pod->shape->scheduler_name != first.shape->scheduler_name) {
      return cat(
          "all pods in a single pod group should have the same .spec.schedulerName set, got: ",
          quoted(pod->shape->scheduler_name), " and ", quoted(first.shape->scheduler_name));
    }
    if (pod->priority != root.priority()) {
      return cat(
          "all pods in a single pod group should have the same priority as the pod group's "
          "priority, got ",
          pod->priority, " and ", root.priority());
    }
    const auto policy = [](bool may) { return may ? "PreemptLowerPriority" : "Never"; };
    const Value& own = root.object["spec"]["preemptionPolicy"];
    const bool wanted = own.is_string() ? own.as_string() != "Never" : first.may_preempt;
    if (pod->may_preempt != wanted) {
      return cat("all pods in a single pod group should have the same preemption policy",
                 own.is_string() ? " as the pod group's preemption policy" : "", ", got ",
                 policy(pod->may_preempt), " and ", policy(wanted));
    }
  }
  return {};
}

void Scheduler::Core::attempt_group(const Queue::Popped& popped) {
  const GroupId root = root_of_entity(*popped.pod);
  const GroupTree tree = groups.tree(root);
  if (tree.empty() || !tree.fault.empty() || !has_able(tree) || !groups_ready(tree).front()) {
    queue.remove(popped.pod->key);
    return consider_tree(root, false);
  }
  const Duration began = now();
  const GangOrder order = make_order(tree, state);
  const std::vector<PodPtr> pods = order.pods();
  const Profile& profile = *profile_of(*pods.front());
  GangDecision decision;
  decision.error = group_fault(tree.root(), pods);
  // Room that is kept for its pods is theirs to use.
  std::vector<std::pair<PodPtr, std::string>> nominated;
  for (const PodPtr& pod : pods) {
    std::string node = state.nominated_node(pod->key);
    if (node.empty()) continue;
    state.drop_nomination(pod->key);
    nominated.emplace_back(pod, std::move(node));
  }
  if (decision.error.empty()) {
    decision = gang_placer.place(order, profile, runtime.clock.now());
    if (metrics) metrics->group_algorithm_seconds.one().observe(now() - began);
  }
  if (!decision.success()) {
    for (const auto& [pod, node] : nominated) state.nominate(pod, node);
  }
  const char* result = "scheduled";
  if (decision.waits) {
    // A claim is being allocated for another pod: its end wakes the group.
    for (const GroupTree::Node& node : tree.nodes) {
      node.group->problem = "a claim of the group is being allocated for another pod";
    }
    return queue.hold(popped.pod, now());
  }
  if (decision.success()) {
    assume_group(popped, tree, order, decision);
  } else {
    result = group_unplaced(popped, tree, profile, order, decision);
  }
  if (options.attempt) options.attempt(now() - began);
  if (!metrics) return;
  metrics->group_attempts.with({result, profile.name}).add();
  metrics->group_seconds.with({result, profile.name}).observe(now() - began);
}

void Scheduler::Core::assume_group(const Queue::Popped& popped, const GroupTree& tree,
                                   const GangOrder& order, GangDecision& decision) {
  const auto together = std::make_shared<Together>();
  // A gang that had enough before needs no care; the pods of all others go as one.
  const std::vector<char> stood = groups_ready(tree, true);
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    if (tree.nodes[at].group->is_gang() && !stood[at]) together->all_or_none = true;
  }
  together->expected = decision.placed;
  const Queue::Popped each{nullptr, popped.attempts, popped.since};
  std::map<std::string, Value> left = decision.allocations;
  std::vector<std::string> problems(tree.nodes.size());
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    if (!decision.groups[at].holds) problems[at] = why_unplaced(tree, at, order, decision);
    tree.nodes[at].group->problem = problems[at];
  }
  // All are counted before the first is written: an answer may come at once.
  std::vector<std::pair<BindJob, VolumePlan>> jobs;
  std::vector<const GangMember*> rest;
  for (GangMember& member : decision.members) {
    if (member.node == nullptr) {
      rest.push_back(&member);
      continue;
    }
    BindJob job = make_job(member.pod, *member.node, each);
    job.together = together;
    for (const PodClaim& claim : member.run.claims) {
      ClaimWrite write;
      write.key = claim.key;
      write.flight = claim.key;
      write.consumer = claim.consumer;
      // The first that uses it writes it.
      if (const auto own = left.find(claim.key); own != left.end()) {
        write.allocation = own->second;
        devices.reserve(write.flight, write.allocation);
        together->allocating.insert(claim.key);
        left.erase(own);
      }
      job.claims.push_back(std::move(write));
    }
    add_own_claims(member, job);
    count_decided(job, member.devices.node_allocatable);
    count_in_group(*member.pod, true);
    jobs.emplace_back(std::move(job), std::move(member.volumes));
  }
  for (const GangMember* member : rest) {
    Failure told = member->failure;
    const std::string& problem = problems[member->group];
    if (!problem.empty()) {
      told.message = told.message.empty() ? problem : cat(told.message, " ", problem);
    } else if (told.message.empty()) {
      told.message = "no node is left for the pod beside those of its group";
    }
    report(member->pod, told);
  }
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    const bool holds = decision.groups[at].holds;
    tell_group(tree.nodes[at].id, holds ? "True" : "False", holds ? "Scheduled" : "Unschedulable",
               problems[at]);
  }
  if (rest.empty()) {
    queue.remove(popped.pod->key);
  } else {
    park_group(popped.pod, decision);
  }
  for (auto& [job, volumes] : jobs) {
    wake_for_pod(*job.pod);
    const Profile& profile = *profile_of(*job.pod);
    if (job.pod->claims_volumes) {
      const NodeInfo& node = *state.find(job.node);
      bind_volumes(std::move(job), profile, node, &volumes);
    } else {
      binder->start(std::move(job));
    }
  }
}

/// Claims of a pod whose devices were searched for alone.
void Scheduler::Core::add_own_claims(const GangMember& member, BindJob& job) {
  std::size_t next = 0;
  for (ClaimWrite& write : job.claims) {
    for (const std::size_t place : member.run.open) {
      if (member.run.claims[place].key != write.key || !write.allocation.is_null()) continue;
      if (next >= member.devices.allocations.size()) continue;
      write.allocation = member.devices.allocations[next++];
      write.driver = devices.driver_of(member.run.claims[place]);
      devices.reserve(write.flight, write.allocation);
    }
  }
  if (member.devices.extended >= 0) {
    add_extended_claim(member.run, member.devices, next, job);
  }
}

void Scheduler::Core::park_group(const PodPtr& entity, const GangDecision& decision) {
  PluginSet plugins = 0;
  for (const GangMember& member : decision.members) {
    if (member.node == nullptr) plugins |= member.failure.plugins;
  }
  // Who found a node for itself alone is helped by whatever helps the others; the rest by anything.
  if (plugins == 0 || decision.limited) plugins = ~PluginSet{0};
  queue.park(entity, entity->key, plugins, now());
}

void Scheduler::Core::group_failed(const Queue::Popped& popped, const GroupTree& tree,
                                   const GangDecision& decision) {
  Failure told;
  told.error = true;
  told.message = decision.error;
  for (const GangMember& member : decision.members) report(member.pod, told);
  for (const GroupTree::Node& node : tree.nodes) {
    node.group->problem = decision.error;
    if (decision.members.empty() && node.pods != nullptr) {
      for (const auto& [key, pod] : node.pods->waiting) report(pod, told);
    }
    tell_group(node.id, "False", "SchedulerError", decision.error);
  }
  queue.fail(popped.pod, now());
}

const char* Scheduler::Core::group_unplaced(const Queue::Popped& popped, const GroupTree& tree,
                                            const Profile& profile, const GangOrder& order,
                                            GangDecision& decision) {
  if (!decision.error.empty()) {
    group_failed(popped, tree, decision);
    return "error";
  }
  // What holds for all of them, after what each has to say.
  std::string more;
  if (decision.limited) {
    append(more, "; not every placement was tried: the limit of the search was reached");
  }
  const std::string freed = free_for_group(tree, profile, decision);
  if (!freed.empty()) append(more, ", ", freed);
  GroupPreemption found;
  if (freed.empty() && profile.has(Point::post_filter, Plugin::default_preemption)) {
    if (metrics) metrics->preemptions.one().add();
    found = find_group_victims(state, devices, gang_placer, groups, tree.root().priority(), order,
                               profile, runtime.clock.now(), budgets);
    append(more, ", ", found.message);
    if (metrics && !found.victims.empty()) {
      metrics->victims.one().observe(static_cast<double>(found.victims.size()));
    }
    for (const PodPtr& victim : found.victims) {
      drive_out(*victim, tree.root().object,
                tree.nodes.front().id.composite ? "compositepodgroup" : "podgroup",
                popped.pod->shape->scheduler_name, "cluster");
    }
  }
  std::vector<std::string> problems;
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    problems.push_back(cat(why_unplaced(tree, at, order, decision), more));
    tree.nodes[at].group->problem = problems[at];
  }
  for (const GangMember& member : decision.members) {
    Failure told = member.failure;
    const std::string& problem = problems[member.group];
    told.message = told.message.empty() ? problem : cat(told.message, " ", problem);
    const auto room = found.nodes.find(member.pod->key);
    std::string node =
        room != found.nodes.end() ? room->second : state.nominated_node(member.pod->key);
    if (node.empty()) node = member.pod->nominated_node();
    if (!node.empty()) state.nominate(member.pod, node);
    told.nominated_node = std::move(node);
    report(member.pod, told);
    if (options.explain_events && !member.failure.message.empty()) explain(member.pod, profile);
  }
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    tell_group(tree.nodes[at].id, "False", "Unschedulable", problems[at]);
  }
  park_group(popped.pod, decision);
  return found.underway ? "waiting_on_preemption" : "unschedulable";
}

/// Takes an allocation away that keeps a group from where it could go, while nobody runs with it.
std::string Scheduler::Core::free_for_group(const GroupTree& tree, const Profile& profile,
                                            const GangDecision& decision) {
  if (!profile.has(Point::post_filter, Plugin::dynamic_resources)) return {};
  if (std::any_of(decision.groups.begin(), decision.groups.end(),
                  [](const GangGroup& group) { return group.domains > 0; })) {
    return {};
  }
  for (const GangMember& member : decision.members) {
    Decision one;
    one.run.claims = member.run.claims;
    one.run.stale_extended = member.run.stale_extended;
    for (const std::size_t claim : member.unavailable) {
      // Those of the group are in use as long as one of its pods is on a node.
      const bool used = !tree.nodes[member.group].pods->placed.empty();
      if (!member.run.claims[claim].own && used) continue;
      one.unavailable.push_back(claim);
    }
    const std::string did = free_claim(member.pod, one);
    if (did.empty()) continue;
    const bool shared = !one.unavailable.empty() && !member.run.claims[one.unavailable[0]].own;
    return shared ? "deallocation of PodGroup ResourceClaim completed" : did;
  }
  return {};
}

/// The condition of the group; one that says that it was scheduled stays.
void Scheduler::Core::tell_group(const GroupId& id, const char* status, const char* reason,
                                 const std::string& message) {
  const AnyGroup& group = *groups.any(id);
  const char* type = group_condition(id.composite, options.release);
  const Value before = condition_of(group.object, type);
  if (before["status"].as_string() == "True") return;
  if (before["status"].as_string() == status && before["reason"].as_string() == reason &&
      before["message"].as_string() == message) {
    return;
  }
  Value condition = Value::object({{"type", type},
                                   {"status", status},
                                   {"reason", reason},
                                   {"message", message},
                                   {"lastTransitionTime", format_rfc3339(runtime.clock.now())}});
  if (before["status"].as_string() == status) {
    condition.set("lastTransitionTime", before["lastTransitionTime"]);
  }
  if (group.object["metadata"]["generation"].is_integer()) {
    condition.set("observedGeneration", group.object["metadata"]["generation"]);
  }
  const Value patch =
      Value::object({{"metadata", Value::object({{"uid", group.object["metadata"]["uid"]}})},
                     {"status", Value::object({{"conditions", Value::array({condition})}})}});
  client::WriteOptions write;
  write.subresource = "status";
  write.field_manager = "dibs-scheduler";
  const auto [name_space, name] = client::split_key(group.key);
  send(client::patch_request(id.composite ? composites_gvr : groups_gvr, name_space, name,
                             PatchType::strategic, patch, write),
       "condition of a pod group cannot be written");
}

}  // namespace dibs::scheduler
