#include "scheduler/group_tree.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::scheduler {
namespace {

using json::Value;

/// Where the pods of the group and of those below it are already, by a label; "" for nowhere.
std::string place_of(const GroupTree& tree, std::size_t group, std::string_view key,
                     const ClusterState& state) {
  for (std::size_t at = group; at < tree.nodes.size(); ++at) {
    const PodGroup* pods = tree.nodes[at].pods;
    if (pods == nullptr) continue;
    std::size_t above = at;
    while (above != group && above > group) above = tree.nodes[above].parent;
    if (above != group) continue;
    for (const std::string& pod : pods->placed) {
      const NodeInfo* node = state.node_of(pod);
      const Value* label = node != nullptr ? node->label(key) : nullptr;
      if (label != nullptr) return label->str();
    }
  }
  return {};
}

std::string no_quorum(std::size_t wanted, std::size_t scheduled) {
  return cat("minCount (", wanted, ") cannot be satisfied: ", scheduled, " scheduled, 0 remaining");
}

}  // namespace

std::vector<char> groups_ready(const GroupTree& tree, bool placed) {
  std::vector<char> made(tree.nodes.size());
  std::vector<std::size_t> below(tree.nodes.size());
  for (std::size_t at = tree.nodes.size(); at-- > 0;) {
    const GroupTree::Node& node = tree.nodes[at];
    std::size_t have = below[at];
    if (node.pods != nullptr) {
      have = node.pods->placed.size() + (placed ? 0 : node.pods->able.size());
    }
    made[at] = have >= node.group->min_count() ? 1 : 0;
    if (made[at] && at > 0) ++below[node.parent];
  }
  return made;
}

bool has_able(const GroupTree& tree) {
  return std::any_of(tree.nodes.begin(), tree.nodes.end(), [](const GroupTree::Node& node) {
    return node.pods != nullptr && !node.pods->able.empty();
  });
}

GangOrder make_order(const GroupTree& tree, const ClusterState& state) {
  GangOrder made;
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    const GroupTree::Node& node = tree.nodes[at];
    GangOrder::Group group;
    if (at > 0) group.parent = node.parent;
    group.of_groups = node.pods == nullptr;
    group.needed = node.group->min_count();
    group.topology_key = node.group->topology_key();
    if (!group.topology_key.empty()) {
      group.topology_value = place_of(tree, at, group.topology_key, state);
    }
    if (node.pods != nullptr) {
      group.needed -= std::min(group.needed, node.pods->placed.size());
      for (const std::string& key : node.pods->able) {
        group.pods.push_back(node.pods->waiting.at(key));
      }
    }
    made.groups.push_back(std::move(group));
  }
  return made;
}

std::string why_unplaced(const GroupTree& tree, std::size_t group, const GangOrder& order,
                         const GangDecision& decision) {
  const GroupTree::Node& node = tree.nodes[group];
  const GangGroup& outcome = decision.groups[group];
  const GangOrder::Group& wanted = order.groups[group];
  // A group of pods that had enough before may still have one that found nothing.
  const bool stuck = !wanted.pods.empty() && outcome.most == 0;
  if (group > 0 && outcome.most >= wanted.needed && !stuck) {
    return why_unplaced(tree, node.parent, order, decision);
  }
  const std::size_t quorum = node.group->min_count();
  const std::size_t scheduled =
      outcome.most + (node.pods != nullptr ? node.pods->placed.size() : 0);
  std::string made;
  if (!node.group->is_gang()) {
    made = node.pods != nullptr ? "no pod of the group can be scheduled"
                                : "no group of the composite group can be scheduled";
  } else if (scheduled >= quorum) {
    // It stands, and late pods found nothing.
    made = "pod group is unschedulable";
  } else {
    made = no_quorum(quorum, scheduled);
  }
  if (outcome.domains > 0) {
    made = cat("0/", outcome.domains, " placements are available, first placement status: ", made);
  }
  return made;
}

}  // namespace dibs::scheduler
