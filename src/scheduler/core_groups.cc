// Groups of pods: their pods wait together, and the tree that they make up goes into the queue as
// one when enough of them are there.
#include <algorithm>

#include "base/strings.h"
#include "scheduler/core.h"

namespace dibs::scheduler {
namespace {

using json::Value;

// What the queue knows a tree by: no pod has such a key.
constexpr std::string_view kOfPods = "podgroup ";
constexpr std::string_view kOfGroups = "compositepodgroup ";

std::string entity_key(const GroupId& root) {
  return cat(root.composite ? kOfGroups : kOfPods, root.key);
}

/// A pod of the tree that stands for all in the queue.
PodPtr make_entity(const GroupTree& tree) {
  const auto of = std::find_if(
      tree.nodes.begin(), tree.nodes.end(),
      [](const GroupTree::Node& node) { return node.pods != nullptr && !node.pods->able.empty(); });
  auto made = std::make_shared<Pod>();
  made->object = tree.root().object;
  made->key = entity_key(tree.nodes.front().id);
  made->name = made->object["metadata"]["name"].as_string();
  made->name_space = made->object["metadata"]["namespace"].as_string();
  made->uid = made->object["metadata"]["uid"].as_string();
  made->shape = of->pods->waiting.at(*of->pods->able.begin())->shape;
  made->priority = tree.root().priority();
  made->group = tree.root().key;
  made->is_group = true;
  return made;
}

std::string name_of(const std::string& key) { return std::string(client::split_key(key).second); }

void note_problem(const GroupTree& tree, const std::string& why) {
  for (const GroupTree::Node& node : tree.nodes) {
    if (node.pods == nullptr || !node.pods->waiting.empty()) node.group->problem = why;
  }
}

}  // namespace

GroupId Scheduler::Core::root_of_entity(const Pod& entity) {
  return {entity.group, entity.key.starts_with(kOfGroups)};
}

void Scheduler::Core::on_group(const Value& object) {
  const std::string key = client::key_of(object);
  const PodGroup* before = groups.find(key);
  const bool changed = before == nullptr || !(before->object["spec"] == object["spec"]) ||
                       !(before->object["metadata"]["uid"] == object["metadata"]["uid"]);
  const PodGroups::Root old = groups.root_of({key, false});
  groups.put(object);
  if (changed) {
    // Which claims are the group's, and whose they are, tells what its pods still lack.
    for (const auto& [name, pod] : groups.at(key).waiting) note_able(*pod);
  }
  consider(key, changed);
  // One that was deleted and made again may have got another parent.
  if (old.id && old.id != groups.root_of({key, false}).id) consider_tree(*old.id, true);
}

void Scheduler::Core::on_group_removed(const Value& object) {
  const std::string key = client::key_of(object);
  const PodGroups::Root old = groups.root_of({key, false});
  groups.remove(key);
  consider(key, false);
  if (old.id && old.id->composite) consider_tree(*old.id, false);
}

void Scheduler::Core::on_composite(const Value& object) {
  const GroupId id{client::key_of(object), true};
  const AnyGroup* before = groups.any(id);
  const bool changed = before == nullptr || !(before->object["spec"] == object["spec"]) ||
                       !(before->object["metadata"]["uid"] == object["metadata"]["uid"]);
  const PodGroups::Root old = groups.root_of(id);
  groups.put_composite(object);
  const PodGroups::Root root = groups.root_of(id);
  if (old.id && old.id != root.id) consider_tree(*old.id, true);
  if (root.id) return consider_tree(*root.id, changed);
  if (root.invalid) tell_invalid(root);
  for (const PodGroup* group : groups.leaves(id)) consider(std::string(group->key), changed);
}

void Scheduler::Core::on_composite_removed(const Value& object) {
  const GroupId id{client::key_of(object), true};
  const PodGroups::Root old = groups.root_of(id);
  groups.remove_composite(id.key);
  queue.remove(entity_key(id));
  for (const PodGroup* group : groups.leaves(id)) consider(std::string(group->key), false);
  if (old.id && old.id != id) consider_tree(*old.id, false);
}

/// The pod counts as one of its group's on a node, or does not any more.
void Scheduler::Core::count_in_group(const Pod& pod, bool on_node) {
  if (!in_group(pod)) return;
  PodGroup& group = groups.at(pod.group);
  if (on_node) {
    group.placed.insert(pod.key);
    group.able.erase(pod.key);
    return;
  }
  group.placed.erase(pod.key);
  groups.forget_if_empty(pod.group);
}

void Scheduler::Core::note_able(const Pod& pod) {
  PodGroup& group = groups.at(pod.group);
  if (is_able(pod)) {
    group.able.insert(pod.key);
  } else {
    group.able.erase(pod.key);
  }
}

void Scheduler::Core::join_group(const PodPtr& pod, bool changed) {
  groups.at(pod->group).waiting[pod->key] = pod;
  note_able(*pod);
  consider(pod->group, changed);
}

void Scheduler::Core::leave_group(const Pod& pod) {
  PodGroup& group = groups.at(pod.group);
  group.waiting.erase(pod.key);
  group.able.erase(pod.key);
  const std::string key = pod.group;
  groups.forget_if_empty(key);
  consider(key, false);
}

void Scheduler::Core::rejoin_group(const PodPtr& pod, int attempts) {
  PodGroup& mine = groups.at(pod->group);
  mine.waiting[pod->key] = pod;
  mine.placed.erase(pod->key);
  note_able(*pod);
  consider(pod->group, false);
  // Not at once: what failed may fail again.
  const PodGroups::Root root = groups.root_of({pod->group, false});
  if (!root.id || !queue.contains(entity_key(*root.id))) return;
  queue.delay(make_entity(groups.tree(*root.id)), attempts, now());
}

/// Whether the tree of the group can be tried, and if so puts it into the queue.
void Scheduler::Core::consider(const std::string& key, bool changed) {
  const GroupId id{key, false};
  PodGroup* group = groups.find(key);
  if (group == nullptr) return queue.remove(entity_key(id));
  if (!group->exists()) {
    group->problem = cat("waiting for pods's pod group ", quoted(name_of(key)),
                         " to appear in scheduling queue");
    return queue.remove(entity_key(id));
  }
  const PodGroups::Root root = groups.root_of(id);
  if (root.id) return consider_tree(*root.id, changed);
  group->problem = cat("failed to build hierarchy snapshot: ", root.problem);
  queue.remove(entity_key(id));
  if (root.invalid) tell_invalid(root);
}

void Scheduler::Core::consider_tree(const GroupId& root, bool changed) {
  const std::string entity = entity_key(root);
  const GroupTree tree = groups.tree(root);
  if (tree.empty()) return queue.remove(entity);
  if (!tree.fault.empty()) {
    note_problem(tree, tree.fault);
    for (const GroupTree::Node& node : tree.nodes) tell_invalid(node.id, tree.fault);
    return queue.remove(entity);
  }
  if (!has_able(tree)) {
    for (const GroupTree::Node& node : tree.nodes) {
      if (node.pods != nullptr && node.pods->waiting.empty()) node.group->problem.clear();
    }
    return queue.remove(entity);
  }
  if (!groups_ready(tree).front()) {
    note_problem(tree, root.composite
                           ? cat("waiting for composite pod group ", quoted(name_of(root.key)),
                                 " tree to meet quorum")
                           : "waiting for minCount pods from a gang to appear in scheduling queue");
    return queue.remove(entity);
  }
  const bool known = queue.contains(entity);
  queue.add(make_entity(tree), now());
  if (changed && queue.held(entity)) {
    queue.release(entity, now());
  } else if (known && changed) {
    queue.wake_pod(entity, now(), root.composite ? "CompositePodGroupUpdate" : "PodGroupUpdate");
  }
  kick();
}

/// Nothing but a node is missing.
bool Scheduler::Core::is_able(const Pod& pod) const {
  if (gated(pod) || is_binding(pod)) return false;
  if (!profile_of(pod)->devices()) return true;
  std::string problem;
  devices.resolve(pod, problem);
  return problem.empty();
}

/// Groups that are no tree: those above the one that was looked at, and itself.
void Scheduler::Core::tell_invalid(const PodGroups::Root& root) {
  for (const GroupId& id : root.chain) tell_invalid(id, root.problem);
}

void Scheduler::Core::tell_invalid(const GroupId& id, const std::string& why) {
  AnyGroup* group = groups.any(id);
  // Every pod that comes asks again, also before what was written has come back.
  if (group == nullptr || group->told == why) return;
  group->told = why;
  // Only groups of groups have a reason of their own for it.
  tell_group(id, "False", id.composite ? "Invalid" : "SchedulerError", why);
}

std::vector<PodPtr> Scheduler::Core::with_their_groups(std::vector<PodPtr> victims) const {
  std::set<GroupId> whole;
  for (const PodPtr& victim : victims) {
    if (!in_group(*victim)) continue;
    if (const auto group = groups.whole_of(victim->group)) whole.insert(*group);
  }
  for (const GroupId& id : whole) {
    for (const PodGroup* group : groups.leaves(id)) {
      for (const std::string& pod_key : group->placed) {
        const PodPtr pod = state.counted(pod_key);
        const bool there =
            pod == nullptr || std::find(victims.begin(), victims.end(), pod) != victims.end();
        if (!there) victims.push_back(pod);
      }
    }
  }
  return victims;
}

}  // namespace dibs::scheduler
