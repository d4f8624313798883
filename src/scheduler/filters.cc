#include "scheduler/filters.h"

#include <algorithm>
#include <limits>

#include "base/strings.h"

namespace dibs::scheduler {
namespace {

constexpr const char* kUnschedulableTaint = "node.kubernetes.io/unschedulable";

bool taints_ok(const Pod& pod, const NodeInfo& node) {
  return std::all_of(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") return true;
    return tolerates(pod.tolerations, taint);
  });
}

}  // namespace

const char* plugin_name(Plugin plugin) {
  switch (plugin) {
    case Plugin::node_unschedulable:
      return "NodeUnschedulable";
    case Plugin::node_name:
      return "NodeName";
    case Plugin::taint_toleration:
      return "TaintToleration";
    case Plugin::node_affinity:
      return "NodeAffinity";
    case Plugin::node_ports:
      return "NodePorts";
    case Plugin::resources_fit:
      return "NodeResourcesFit";
    case Plugin::topology_spread:
      return "PodTopologySpread";
    case Plugin::inter_pod_affinity:
      return "InterPodAffinity";
    case Plugin::dynamic_resources:
      return "DynamicResources";
  }
  return "";
}

bool matches_node(const Pod& pod, const NodeInfo& node) {
  for (const auto& [key, value] : pod.node_selector.members()) {
    const json::Value* label = node.label(key);
    if (label == nullptr || label->as_string() != value.as_string()) return false;
  }
  return !pod.has_node_affinity || pod.node_affinity.matches(node.place);
}

FilterRun::FilterRun(ClusterState& state, const Pod& pod, const Profile& profile,
                     ServedByDevices served_by_devices)
    : state_(state), pod_(pod), served_by_devices_(std::move(served_by_devices)) {
  for (unsigned i = 0; i <= static_cast<unsigned>(Plugin::dynamic_resources); ++i) {
    const auto plugin = static_cast<Plugin>(i);
    if (profile.filters_by(plugin_name(plugin))) enabled_ |= bit(plugin);
  }
  if (!pod_.spread.empty() && (enabled_ & bit(Plugin::topology_spread)) != 0) count_spread();
  if ((enabled_ & bit(Plugin::inter_pod_affinity)) != 0) find_forbidden();
}

void FilterRun::count_spread() {
  for (const SpreadConstraint& constraint : pod_.spread) {
    if (!constraint.required) continue;
    SpreadCounts made;
    made.constraint = &constraint;
    made.self = constraint.selector.matches(pod_.labels);
    spread_.push_back(std::move(made));
  }
  for (SpreadCounts& counts : spread_) {
    const SpreadConstraint& constraint = *counts.constraint;
    const auto& pods = state_.selected_by_node(pod_.name_space, constraint.selector);
    for (const NodeInfo* node : state_.nodes()) {
      const json::Value* value = node->label(constraint.topology_key);
      if (value == nullptr) continue;
      // Nodes that lack the key of another constraint do not count either.
      const bool complete =
          std::all_of(spread_.begin(), spread_.end(), [&](const SpreadCounts& other) {
            return node->label(other.constraint->topology_key) != nullptr;
          });
      if (!complete) continue;
      if (constraint.honor_affinity && !matches_node(pod_, *node)) continue;
      if (constraint.honor_taints && !taints_ok(pod_, *node)) continue;
      std::int64_t& slot = counts.domains[value->str()];
      const auto found = pods.find(node);
      if (found != pods.end()) slot += found->second;
    }
    counts.smallest = std::numeric_limits<std::int64_t>::max();
    for (const auto& [value, count] : counts.domains) {
      counts.smallest = std::min(counts.smallest, count);
    }
    if (static_cast<std::int64_t>(counts.domains.size()) < constraint.min_domains) {
      counts.smallest = 0;
    }
  }
}

void FilterRun::find_forbidden() {
  for (const auto& [id, carried] : state_.carried_terms()) {
    if (carried.kind != TermKind::required_anti_affinity) continue;
    if (!state_.selects(carried.term, pod_)) continue;
    auto& places = forbidden_[carried.term.topology_key];
    for (const auto& [value, count] : carried.carriers) places.insert(value);
  }
  // A pod that wants its own kind near, where there is none yet, may go anywhere.
  first_of_its_kind_ = !pod_.affinity.empty();
  for (const PodTerm& term : pod_.affinity) {
    if (!state_.selected_by(term).empty() || !state_.selects(term, pod_)) {
      first_of_its_kind_ = false;
    }
  }
}

bool FilterRun::refuse(Plugin plugin, bool resolvable, std::string reason) {
  refused_.plugin = plugin;
  refused_.resolvable = resolvable;
  refused_.reasons.assign(1, std::move(reason));
  return false;
}

bool FilterRun::fits(const NodeInfo& node) {
  Resources used = node.requested;
  for (const PodPtr& other : state_.nominated(node.name)) {
    if (other->key != pod_.key && other->priority >= pod_.priority &&
        !node.pods.contains(other->key)) {
      used.add(other->requests);
    }
  }
  std::vector<std::string> reasons;
  bool resolvable = true;
  if (used.pods + 1 > node.allocatable.pods) reasons.emplace_back("Too many pods");
  const auto check = [&](std::int64_t wanted, std::int64_t taken, std::int64_t there,
                         std::string_view name) {
    if (wanted <= 0 || wanted <= there - taken) return;
    reasons.push_back(cat("Insufficient ", name));
    if (wanted > there) resolvable = false;
  };
  check(pod_.requests.cpu, used.cpu, node.allocatable.cpu, "cpu");
  check(pod_.requests.memory, used.memory, node.allocatable.memory, "memory");
  check(pod_.requests.storage, used.storage, node.allocatable.storage, "ephemeral-storage");
  for (const auto& [name, wanted] : pod_.requests.scalars) {
    const std::int64_t there = node.allocatable.scalar(name);
    if (there == 0 && served_by_devices_ && served_by_devices_(name)) continue;
    check(wanted, used.scalar(name), there, name);
  }
  if (reasons.empty()) return true;
  refused_.plugin = Plugin::resources_fit;
  refused_.resolvable = resolvable;
  refused_.reasons = std::move(reasons);
  return false;
}

bool FilterRun::spreads(const NodeInfo& node) {
  for (const SpreadCounts& counts : spread_) {
    const json::Value* value = node.label(counts.constraint->topology_key);
    if (value == nullptr) {
      return refuse(
          Plugin::topology_spread, false,
          "node(s) didn't match pod topology spread constraints (missing required label)");
    }
    const auto found = counts.domains.find(value->str());
    const std::int64_t here = found != counts.domains.end() ? found->second : 0;
    if (here + (counts.self ? 1 : 0) - counts.smallest > counts.constraint->max_skew) {
      return refuse(Plugin::topology_spread, true,
                    "node(s) didn't match pod topology spread constraints");
    }
  }
  return true;
}

bool FilterRun::agrees_with_pods(const NodeInfo& node) {
  for (const PodTerm& term : pod_.affinity) {
    const json::Value* value = node.label(term.topology_key);
    const bool near =
        value != nullptr && (first_of_its_kind_ || state_.selected_by(term).contains(value->str()));
    if (!near) {
      return refuse(Plugin::inter_pod_affinity, false, "node(s) didn't match pod affinity rules");
    }
  }
  for (const PodTerm& term : pod_.anti_affinity) {
    const json::Value* value = node.label(term.topology_key);
    if (value != nullptr && state_.selected_by(term).contains(value->str())) {
      return refuse(Plugin::inter_pod_affinity, true,
                    "node(s) didn't match pod anti-affinity rules");
    }
  }
  for (const auto& [key, values] : forbidden_) {
    const json::Value* value = node.label(key);
    if (value != nullptr && values.contains(value->str())) {
      return refuse(Plugin::inter_pod_affinity, true,
                    "node(s) didn't satisfy existing pods anti-affinity rules");
    }
  }
  return true;
}

const Refused* FilterRun::check(const NodeInfo& node) {
  const auto on = [&](Plugin plugin) { return (enabled_ & bit(plugin)) != 0; };
  // A pod that names its nodes is not even tried on others.
  if (pod_.names_nodes && on(Plugin::node_affinity) &&
      std::find(pod_.named_nodes.begin(), pod_.named_nodes.end(), node.name) ==
          pod_.named_nodes.end()) {
    refuse(Plugin::node_affinity, false, "node(s) didn't satisfy plugin(s) [NodeAffinity]");
    return &refused_;
  }
  if (node.unschedulable && on(Plugin::node_unschedulable) &&
      !tolerates(pod_.tolerations, {kUnschedulableTaint, "", "NoSchedule"})) {
    refuse(Plugin::node_unschedulable, false, "node(s) were unschedulable");
    return &refused_;
  }
  if (!pod_.node_name.empty() && pod_.node_name != node.name && on(Plugin::node_name)) {
    refuse(Plugin::node_name, false, "node(s) didn't match the requested node name");
    return &refused_;
  }
  if (on(Plugin::taint_toleration) && !taints_ok(pod_, node)) {
    refuse(Plugin::taint_toleration, false, "node(s) had untolerated taint(s)");
    return &refused_;
  }
  if (on(Plugin::node_affinity) && !matches_node(pod_, node)) {
    refuse(Plugin::node_affinity, false, "node(s) didn't match Pod's node affinity/selector");
    return &refused_;
  }
  if (!pod_.ports.empty() && on(Plugin::node_ports)) {
    for (const HostPort& wanted : pod_.ports) {
      for (const HostPort& taken : node.ports) {
        if (!wanted.clashes(taken)) continue;
        refuse(Plugin::node_ports, true,
               "node(s) didn't have free ports for the requested pod ports");
        return &refused_;
      }
    }
  }
  if (on(Plugin::resources_fit) && !fits(node)) return &refused_;
  if (!spread_.empty() && !spreads(node)) return &refused_;
  if (on(Plugin::inter_pod_affinity) && !agrees_with_pods(node)) return &refused_;
  return nullptr;
}

}  // namespace dibs::scheduler
