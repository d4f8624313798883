// Pods of a group: whether enough of them are there, and whether they fit together; where the group
// is part of a tree, the same of all of it.
#include <algorithm>

#include "base/strings.h"
#include "cli/why_story.h"
#include "scheduler/group_tree.h"

namespace dibs::cli {
namespace {

using json::Value;
using scheduler::GangDecision;
using scheduler::GangMember;
using scheduler::GroupTree;
using scheduler::PodGroup;
using scheduler::PodGroups;

/// So many that find no node are shown; the document has all of them.
constexpr std::size_t kMostPods = 5;

/// All groups, with the pods that count.
PodGroups groups_of(const WhyWorld& world) {
  PodGroups made;
  made.follow_parents(world.objects.has_composites);
  for (const Value& object : world.objects.groups) made.put(object);
  for (const Value& object : world.objects.composites) made.put_composite(object);
  for (const Value& object : world.objects.pods) {
    if (object["spec"]["schedulingGroup"].is_null()) continue;
    const scheduler::PodPtr pod = scheduler::Pod::read(object);
    if (pod->group.empty() || pod->finished) continue;
    PodGroup& group = made.at(pod->group);
    if (!pod->node_name.empty()) {
      group.placed.insert(pod->key);
    } else if (!pod->terminating && !pod->gated) {
      group.waiting[pod->key] = pod;
      group.able.insert(pod->key);
    }
  }
  return made;
}

std::string name_of(const std::string& key) { return key.substr(key.find('/') + 1); }

std::string count_of(std::size_t count, const char* what) {
  return cat(count, " ", what, count == 1 ? "" : "s");
}

/// What each group lacks that the tree cannot do without, from the root down.
std::string missing_in(const GroupTree& tree) {
  const std::vector<char> ready = scheduler::groups_ready(tree);
  std::string made;
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    if (ready[at]) continue;
    const GroupTree::Node& node = tree.nodes[at];
    std::size_t there = 0;
    if (node.pods != nullptr) {
      there = node.pods->able.size() + node.pods->placed.size();
    } else {
      for (std::size_t child = at + 1; child < tree.nodes.size(); ++child) {
        if (tree.nodes[child].parent == at && ready[child]) ++there;
      }
    }
    append(made, made.empty() ? "" : "; ", name_of(node.id.key), " needs ",
           count_of(node.group->min_count(), node.pods != nullptr ? "pod" : "group"), ", and ",
           there, there == 1 ? " is" : " are", node.pods != nullptr ? " there" : " complete");
  }
  return made;
}

std::size_t waiting_in(const GroupTree& tree) {
  std::size_t made = 0;
  for (const GroupTree::Node& node : tree.nodes) {
    if (node.pods != nullptr) made += node.pods->able.size();
  }
  return made;
}

std::size_t placed_in(const GroupTree& tree) {
  std::size_t made = 0;
  for (const GroupTree::Node& node : tree.nodes) {
    if (node.pods != nullptr) made += node.pods->placed.size();
  }
  return made;
}

}  // namespace

bool is_of_group(const Value& claim, const scheduler::Pod& pod) {
  const auto owners = claim["metadata"]["ownerReferences"].items();
  return std::any_of(owners.begin(), owners.end(), [&](const Value& owner) {
    return owner["kind"].as_string() == "PodGroup" &&
           cat(pod.name_space, "/", owner["name"].as_string()) == pod.group;
  });
}

Hindrance hindered_by_group(const WhyWorld& world, const scheduler::Pod& pod) {
  if (pod.group.empty() || !world.objects.has_groups) return {};
  const std::string name = name_of(pod.group);
  if (find_object(world.objects.groups, pod.name_space, name) == nullptr) {
    return {"GroupMissing", cat("its PodGroup ", name, " does not exist")};
  }
  PodGroups groups = groups_of(world);
  const PodGroups::Root root = groups.root_of({pod.group, false});
  if (root.invalid) return {"GroupInvalid", cat("its PodGroup ", name, ": ", root.problem)};
  if (!root.id) {
    const scheduler::AnyGroup* last = groups.any(root.chain.back());
    return {"GroupMissing", cat("the CompositePodGroup ", name_of(last->parent()), " above its ",
                                root.chain.back().composite ? "CompositePodGroup " : "PodGroup ",
                                name_of(last->key), " does not exist")};
  }
  const GroupTree tree = groups.tree(*root.id);
  if (!tree.fault.empty()) return {"GroupInvalid", cat("its PodGroup ", name, ": ", tree.fault)};
  if (scheduler::groups_ready(tree).front()) return {};
  if (root.id->composite) {
    return {"GangIncomplete",
            cat("its PodGroup ", name, " is part of the tree ", name_of(root.id->key),
                ", which is not complete: ", missing_in(tree))};
  }
  const PodGroup& group = *tree.nodes.front().pods;
  const std::size_t there = group.able.size() + group.placed.size();
  return {"GangIncomplete", cat("its gang ", name, " needs ", group.min_count(), " pods, and ",
                                there, there == 1 ? " is" : " are", " there")};
}

GangWords words_of_gang(const WhyWorld& world, const scheduler::Pod& pod) {
  GangWords made;
  if (pod.group.empty() || !world.objects.has_groups) return made;
  PodGroups groups = groups_of(world);
  const GroupTree tree = groups.tree(*groups.root_of({pod.group, false}).id);
  const auto state = make_state(world);
  const scheduler::GangOrder order = scheduler::make_order(tree, state->cluster);
  scheduler::GangPlacer placer(state->cluster, state->devices);
  const GangDecision found =
      placer.place(order, *world.profile(pod.shape->scheduler_name), world.now);
  const scheduler::AnyGroup& root = tree.root();
  const bool composite = tree.nodes.front().id.composite;
  const std::string name = name_of(root.key);
  const std::size_t waiting = waiting_in(tree);
  std::size_t mine = 0;
  while (tree.nodes[mine].pods == nullptr || tree.nodes[mine].id.key != pod.group) ++mine;
  made.fits = found.success() && found.groups[mine].holds;
  made.document = Value::object({{"name", name},
                                 {composite ? "minGroupCount" : "minCount", root.min_count()},
                                 {"placed", placed_in(tree)},
                                 {"waiting", waiting},
                                 {"fits", made.fits}});
  if (made.fits) return made;
  const char* tried = found.limited ? ", as far as was tried" : "";
  if (!composite) {
    made.lines.emplace_back(
        2, cat("of its group ", name, " ", std::max<std::size_t>(1, order.groups[0].needed),
               " more pods have to be placed together; ", found.groups[0].most, " of ", waiting,
               " can be", tried));
  } else if (!found.success()) {
    made.lines.emplace_back(
        2, cat("of its tree ", name, " ", count_of(root.min_count(), "group"),
               " have to be placed together; ", found.groups[0].most, " can be", tried));
  } else {
    made.lines.emplace_back(2, cat("of its tree ", name, " other groups are placed without its ",
                                   name_of(pod.group), tried));
  }
  for (std::size_t at = 0; composite && at < tree.nodes.size() && found.error.empty(); ++at) {
    if (at == 0 || found.groups[at].holds) continue;
    if (found.groups[at].most >= order.groups[at].needed) continue;
    made.lines.emplace_back(4, cat("group ", name_of(tree.nodes[at].id.key), ": ",
                                   scheduler::why_unplaced(tree, at, order, found)));
  }
  Value stuck = Value::array();
  if (!found.error.empty()) made.lines.emplace_back(4, found.error);
  for (const GangMember& member : found.members) {
    if (member.failure.message.empty()) continue;
    stuck.push(Value::object({{"pod", member.pod->name}, {"message", member.failure.message}}));
    if (stuck.size() > kMostPods) continue;
    made.lines.emplace_back(4, cat("pod ", member.pod->name, ": ", member.failure.message));
  }
  made.document.set("unplaced", std::move(stuck));
  return made;
}

}  // namespace dibs::cli
