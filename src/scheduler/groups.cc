#include "scheduler/groups.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "client/client.h"

namespace dibs::scheduler {
namespace {

using json::Value;

std::string text_of(const GroupId& id) {
  return cat(id.composite ? "compositepodgroup/" : "podgroup/", id.key);
}

std::string_view workload_of(const AnyGroup& group) {
  return group.object["spec"]["workloadRef"]["workloadName"].as_string();
}

}  // namespace

std::size_t AnyGroup::min_count() const {
  const Value& gang = object["spec"]["schedulingPolicy"]["gang"];
  const Value& wanted = gang["minCount"].is_null() ? gang["minGroupCount"] : gang["minCount"];
  return static_cast<std::size_t>(std::max<std::int64_t>(1, wanted.as_int()));
}

std::string_view AnyGroup::topology_key() const {
  const Value& list = object["spec"]["schedulingConstraints"]["topology"];
  return list.empty() ? std::string_view() : list[0]["key"].as_string();
}

bool AnyGroup::goes_as_one() const {
  const Value& mode = object["spec"]["disruptionMode"];
  // v1alpha2 has a word for it.
  return mode["all"].is_object() || mode.as_string() == "PodGroup";
}

std::string AnyGroup::parent() const {
  const std::string_view name = object["spec"]["parentCompositePodGroupName"].as_string();
  if (name.empty()) return {};
  return client::key_of(object["metadata"]["namespace"].as_string(), name);
}

PodGroup* PodGroups::find(const std::string& key) {
  const auto found = groups_.find(key);
  return found != groups_.end() ? &found->second : nullptr;
}

const PodGroup* PodGroups::find(const std::string& key) const {
  const auto found = groups_.find(key);
  return found != groups_.end() ? &found->second : nullptr;
}

AnyGroup* PodGroups::any(const GroupId& id) {
  return const_cast<AnyGroup*>(std::as_const(*this).any(id));
}

PodGroup& PodGroups::at(const std::string& key) {
  PodGroup& group = groups_[key];
  group.key = key;
  return group;
}

void PodGroups::put(const Value& object) {
  PodGroup& group = at(client::key_of(object));
  const std::string before = group.exists() ? parent_of(group) : "";
  group.object = object;
  group.told.clear();
  link({group.key, false}, before, parent_of(group));
}

void PodGroups::put_composite(const Value& object) {
  const std::string key = client::key_of(object);
  CompositeGroup& group = composites_[key];
  group.key = key;
  const std::string before = group.exists() ? parent_of(group) : "";
  group.object = object;
  group.told.clear();
  link({key, true}, before, parent_of(group));
}

void PodGroups::remove(const std::string& key) {
  if (PodGroup* group = find(key)) {
    link({key, false}, parent_of(*group), "");
    group->object = Value();
  }
  forget_if_empty(key);
}

void PodGroups::remove_composite(const std::string& key) {
  const auto found = composites_.find(key);
  if (found == composites_.end()) return;
  link({key, true}, parent_of(found->second), "");
  composites_.erase(found);
}

void PodGroups::link(const GroupId& child, const std::string& from, const std::string& to) {
  if (from == to) return;
  if (const auto found = children_.find(from); found != children_.end()) {
    found->second.erase(child);
    if (found->second.empty()) children_.erase(found);
  }
  if (!to.empty()) children_[to].insert(child);
}

void PodGroups::forget_if_empty(const std::string& key) {
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  const PodGroup& group = found->second;
  if (!group.exists() && group.waiting.empty() && group.placed.empty()) groups_.erase(found);
}

const PodGroup* PodGroups::sharing(const Pod& pod, const PodClaimRef& claim) const {
  if (pod.group.empty()) return nullptr;
  const PodGroup* group = find(pod.group);
  if (group == nullptr) return nullptr;
  for (const Value& entry : group->object["spec"]["resourceClaims"].items()) {
    if (entry["name"].as_string() != claim.name) continue;
    const bool same = claim.claim.empty()
                          ? entry["resourceClaimTemplateName"].as_string() == claim.template_name
                          : entry["resourceClaimName"].as_string() == claim.claim;
    if (same) return group;
  }
  return nullptr;
}

const AnyGroup* PodGroups::any(const GroupId& id) const {
  if (!id.composite) {
    const PodGroup* group = find(id.key);
    return group != nullptr && group->exists() ? group : nullptr;
  }
  const auto found = composites_.find(id.key);
  return found != composites_.end() ? &found->second : nullptr;
}

PodGroups::Root PodGroups::root_of(const GroupId& group) const {
  Root made;
  GroupId at = group;
  while (const AnyGroup* one = any(at)) {
    if (const auto again = std::find(made.chain.begin(), made.chain.end(), at);
        again != made.chain.end()) {
      // Of the same circle the same is said, wherever one came from: it is written to all in it.
      const GroupId& named = *std::min_element(again, made.chain.end());
      made.problem = cat("cycle detected in composite pod group hierarchy: ", text_of(named));
      made.invalid = true;
      return made;
    }
    if (made.chain.size() == kFarthest) {
      made.problem = cat("exceeded maximum hierarchy depth at ", text_of(at));
      made.invalid = true;
      return made;
    }
    made.chain.push_back(at);
    const std::string above = parent_of(*one);
    if (above.empty()) {
      made.id = at;
      return made;
    }
    at = {above, true};
  }
  made.problem = cat(at.composite ? "composite pod group" : "pod group",
                     " object not found in state for ", text_of(at));
  return made;
}

GroupTree PodGroups::tree(const GroupId& root) {
  GroupTree made;
  if (any(root) != nullptr) add_below(root, 0, 1, made);
  std::string_view workload;
  for (const GroupTree::Node& node : made.nodes) {
    if (made.nodes.size() == 1 || !made.fault.empty()) break;
    const std::string_view own = workload_of(*node.group);
    if (workload.empty()) workload = own;
    if (own == workload) continue;
    made.fault =
        cat("groups of one hierarchy refer to several workloads: ", workload, " and ", own);
  }
  return made;
}

void PodGroups::add_below(const GroupId& id, std::size_t parent, std::size_t depth,
                          GroupTree& made) {
  if (depth > kDeepest) {
    if (made.fault.empty()) made.fault = cat("exceeded maximum hierarchy depth at ", text_of(id));
    return;
  }
  GroupTree::Node node;
  node.id = id;
  node.parent = parent;
  node.pods = id.composite ? nullptr : find(id.key);
  node.group = any(id);
  const std::size_t place = made.nodes.size();
  made.nodes.push_back(std::move(node));
  if (!id.composite) return;
  const auto below = children_.find(id.key);
  if (below == children_.end()) return;
  for (const GroupId& child : below->second) add_below(child, place, depth + 1, made);
}

std::vector<const PodGroup*> PodGroups::leaves(const GroupId& group) const {
  std::vector<const PodGroup*> made;
  std::vector<GroupId> open = {group};
  std::set<GroupId> seen;
  while (!open.empty()) {
    const GroupId at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    if (!at.composite) {
      if (const PodGroup* one = find(at.key); one != nullptr && one->exists()) made.push_back(one);
      continue;
    }
    const auto below = children_.find(at.key);
    if (below != children_.end()) {
      open.insert(open.end(), below->second.begin(), below->second.end());
    }
  }
  return made;
}

std::optional<GroupId> PodGroups::whole_of(const std::string& group) const {
  std::optional<GroupId> made;
  const Root root = root_of({group, false});
  for (std::size_t i = 0; i < root.chain.size() && i < kDeepest; ++i) {
    if (any(root.chain[i])->goes_as_one()) made = root.chain[i];
  }
  return made;
}

std::int64_t PodGroups::priority_of(const Pod& pod) const {
  if (pod.group.empty()) return pod.priority;
  const Root root = root_of({pod.group, false});
  if (root.chain.empty()) return pod.priority;
  return any(root.chain[std::min(root.chain.size(), kDeepest) - 1])->priority();
}

Value group_consumer(const PodGroup& group) {
  return Value::object({{"apiGroup", "scheduling.k8s.io"},
                        {"resource", "podgroups"},
                        {"name", group.object["metadata"]["name"]},
                        {"uid", group.object["metadata"]["uid"]}});
}

const char* group_condition(bool composite, int release) {
  if (composite) return "CompositePodGroupInitiallyScheduled";
  return release < 37 ? "PodGroupScheduled" : "PodGroupInitiallyScheduled";
}

}  // namespace dibs::scheduler
