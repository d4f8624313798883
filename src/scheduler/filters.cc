#include "scheduler/filters.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/strings.h"

namespace dibs::scheduler {
namespace {

constexpr const char* kUnschedulableTaint = "node.kubernetes.io/unschedulable";

bool taints_ok(const Pod& pod, const NodeInfo& node) {
  return std::all_of(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") return true;
    return tolerates(pod.shape->tolerations, taint);
  });
}

}  // namespace

const char* words_of(Cause cause) {
  constexpr std::array<const char*, kCauses> kWords = {
      "node(s) didn't satisfy plugin(s) [NodeAffinity]",
      "node(s) were unschedulable",
      "node(s) didn't match the requested node name",
      "node(s) had untolerated taint(s)",
      "node(s) didn't match scheduler-enforced node affinity",
      "node(s) didn't match Pod's node affinity/selector",
      "node(s) didn't have free ports for the requested pod ports",
      "",
      "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access "
      "mode",
      "node(s) exceed max volume count",
      "node(s) didn't match PersistentVolume's node affinity",
      "node(s) didn't find available persistent volumes to bind",
      "node(s) did not have enough free storage",
      "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
      "node(s) had no available volume zone",
      "node(s) wait for the pod's volumes",
      "node(s) didn't match pod topology spread constraints (missing required label)",
      "node(s) didn't match pod topology spread constraints",
      "node(s) didn't match pod affinity rules",
      "node(s) didn't match pod anti-affinity rules",
      "node(s) didn't satisfy existing pods anti-affinity rules",
      "node(s) didn't match Pod's required features",
  };
  return kWords[static_cast<std::size_t>(cause)];
}

const char* words_of_lack(std::size_t number) {
  constexpr std::array<const char*, kShort> kWords = {
      "Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage"};
  return kWords[number];
}

std::string words_of_scalar(const Pod& pod, std::uint32_t place) {
  return cat("Insufficient ", pod.shape->requests.scalars[place].first);
}

std::vector<std::string> words_of(const Refused& refused, const Pod& pod) {
  if (refused.cause != Cause::resources) return {words_of(refused.cause)};
  std::vector<std::string> made;
  for (std::size_t i = 0; i < kShort; ++i) {
    if ((refused.lacks >> i & 1) != 0) made.emplace_back(words_of_lack(i));
  }
  for (const std::uint32_t place : refused.lacks_scalars) {
    made.push_back(words_of_scalar(pod, place));
  }
  return made;
}

bool matches_node(const Pod& pod, const NodeInfo& node) {
  for (const auto& [key, value] : pod.shape->node_selector.members()) {
    const json::Value* label = node.label(key);
    if (label == nullptr || label->as_string() != value.as_string()) return false;
  }
  return !pod.shape->has_node_affinity || pod.shape->node_affinity.matches(node.place);
}

std::vector<std::string> missing_features(const Pod& pod, const NodeInfo& node) {
  std::vector<std::string> missing;
  for (const std::string& feature : pod.shape->features) {
    const auto declared = node.object["status"]["declaredFeatures"].items();
    const bool has = std::any_of(declared.begin(), declared.end(), [&](const json::Value& one) {
      return one.as_string() == feature;
    });
    if (!has) missing.push_back(feature);
  }
  return missing;
}

FilterRun::FilterRun(ClusterState& state, const Pod& pod, const Profile& profile,
                     ServedByDevices served_by_devices, PluginSet only)
    : state_(state),
      pod_(pod),
      shape_(*pod.shape),
      profile_(profile),
      fit_(profile.fit),
      enabled_(profile.filters() & only),
      served_by_devices_(std::move(served_by_devices)) {
  const auto on = [this](Plugin plugin) { return (enabled_ & bit(plugin)) != 0; };
  tolerates_cordon_ = !on(Plugin::node_unschedulable) ||
                      tolerates(shape_.tolerations, {kUnschedulableTaint, "", "NoSchedule"});
  names_nodes_ = shape_.names_nodes && (only & bit(Plugin::node_affinity)) != 0 &&
                 profile.has(Point::pre_filter, Plugin::node_affinity);
  if (on(Plugin::topology_spread)) {
    const bool may_refuse = !shape_.spread.empty() || profile.spread_refuses();
    if (may_refuse) count_spread(state_.owners().spread_of(pod_, profile, default_spread_));
  }
  if (on(Plugin::inter_pod_affinity)) find_forbidden();
  if (pod_.claims_volumes && (enabled_ & kVolumePlugins) != 0)
    volumes_ = state_.volumes().prepare(pod_, enabled_);
  const bool by_node = shape_.names_nodes || shape_.node_selector.size() > 0 ||
                       shape_.has_node_affinity || profile.added_affinity ||
                       !pod_.node_name.empty() || !shape_.features.empty();
  const bool by_pods =
      on(Plugin::inter_pod_affinity) &&
      (!shape_.affinity.empty() || !shape_.anti_affinity.empty() || !forbidden_.empty());
  is_particular_ = by_node || by_pods || volumes_ || !shape_.ports.empty() || !spread_.empty();
}

void FilterRun::count_spread(const std::vector<SpreadConstraint>& constraints) {
  for (const SpreadConstraint& constraint : constraints) {
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
  first_of_its_kind_ = !shape_.affinity.empty();
  for (const PodTerm& term : shape_.affinity) {
    if (!state_.selected_by(term).empty() || !state_.selects(term, pod_)) {
      first_of_its_kind_ = false;
    }
  }
}

const Refused* FilterRun::refuse(Plugin plugin, Cause cause, bool resolvable) {
  refused_.plugin = plugin;
  refused_.cause = cause;
  refused_.resolvable = resolvable;
  return &refused_;
}

bool FilterRun::fits(std::size_t index, const NodeRow& row) {
  const Resources& wanted = shape_.requests;
  if (row.has(NodeRow::kNominated) || !wanted.scalars.empty()) {
    return fits_closely(*state_.nodes()[index]);
  }
  std::uint8_t lacks = 0;
  if (row.free_pods < 1) lacks |= Refused::kPods;
  if (wanted.cpu > 0 && wanted.cpu > row.cpu - row.used_cpu) lacks |= Refused::kCpu;
  if (wanted.memory > 0 && wanted.memory > row.memory - row.used_memory) lacks |= Refused::kMemory;
  if (wanted.storage > 0 && wanted.storage > row.free_storage) lacks |= Refused::kStorage;
  if (lacks == 0) return true;
  bool resolvable = true;
  if ((lacks & Refused::kCpu) != 0 && wanted.cpu > row.cpu) resolvable = false;
  if ((lacks & Refused::kMemory) != 0 && wanted.memory > row.memory) resolvable = false;
  if ((lacks & Refused::kStorage) != 0 &&
      wanted.storage > state_.nodes()[index]->allocatable.storage) {
    resolvable = false;
  }
  refuse(Plugin::resources_fit, Cause::resources, resolvable);
  refused_.lacks = lacks;
  refused_.lacks_scalars.clear();
  return false;
}

bool FilterRun::fits_closely(const NodeInfo& node) {
  Resources used = node.requested;
  for (const PodPtr& other : state_.nominated(node.name)) {
    if (other->key != pod_.key && other->priority >= pod_.priority &&
        state_.node_of(other->key) != &node) {
      used.add(other->shape->requests);
    }
  }
  bool resolvable = true;
  std::uint8_t lacks = 0;
  refused_.lacks_scalars.clear();
  const auto lacking = [&](std::int64_t wanted, std::int64_t taken, std::int64_t there) {
    if (wanted <= 0 || wanted <= there - taken) return false;
    if (wanted > there) resolvable = false;
    return true;
  };
  const Resources& wanted = shape_.requests;
  const Resources& there = node.allocatable;
  if (used.pods + 1 > there.pods) lacks |= Refused::kPods;
  if (lacking(wanted.cpu, used.cpu, there.cpu)) lacks |= Refused::kCpu;
  if (lacking(wanted.memory, used.memory, there.memory)) lacks |= Refused::kMemory;
  if (lacking(wanted.storage, used.storage, there.storage)) lacks |= Refused::kStorage;
  for (std::uint32_t i = 0; i < wanted.scalars.size(); ++i) {
    const auto& [name, amount] = wanted.scalars[i];
    if (fit_.ignores(name)) continue;
    const std::int64_t has = there.scalar(name);
    if (has == 0 && served_by_devices_ && served_by_devices_(name)) continue;
    if (lacking(amount, used.scalar(name), has)) refused_.lacks_scalars.push_back(i);
  }
  if (lacks == 0 && refused_.lacks_scalars.empty()) return true;
  refuse(Plugin::resources_fit, Cause::resources, resolvable);
  refused_.lacks = lacks;
  return false;
}

const Refused* FilterRun::against_volumes(const NodeInfo& node) {
  if (!volumes_->reason.empty()) return refuse(volumes_->plugin, Cause::volumes, false);
  if ((enabled_ & bit(Plugin::volume_restrictions)) != 0) {
    for (const std::string& claim : volumes_->single) {
      if (state_.volume_users(claim) > 0)
        return refuse(Plugin::volume_restrictions, Cause::volume_in_use, true);
    }
  }
  const auto against = state_.volumes().check(*volumes_, node);
  return against ? refuse(against->plugin, against->cause, against->resolvable) : nullptr;
}

const Refused* FilterRun::against_spread(const NodeInfo& node) {
  for (const SpreadCounts& counts : spread_) {
    const json::Value* value = node.label(counts.constraint->topology_key);
    if (value == nullptr) return refuse(Plugin::topology_spread, Cause::no_topology_label, false);
    const auto found = counts.domains.find(value->str());
    const std::int64_t here = found != counts.domains.end() ? found->second : 0;
    if (here + (counts.self ? 1 : 0) - counts.smallest > counts.constraint->max_skew) {
      return refuse(Plugin::topology_spread, Cause::spread, true);
    }
  }
  return nullptr;
}

const Refused* FilterRun::against_pods(const NodeInfo& node) {
  for (const PodTerm& term : shape_.affinity) {
    const json::Value* value = node.label(term.topology_key);
    const bool near =
        value != nullptr && (first_of_its_kind_ || state_.selected_by(term).contains(value->str()));
    if (!near) return refuse(Plugin::inter_pod_affinity, Cause::pod_affinity, false);
  }
  for (const PodTerm& term : shape_.anti_affinity) {
    const json::Value* value = node.label(term.topology_key);
    if (value != nullptr && state_.selected_by(term).contains(value->str())) {
      return refuse(Plugin::inter_pod_affinity, Cause::pod_anti_affinity, true);
    }
  }
  for (const auto& [key, values] : forbidden_) {
    const json::Value* value = node.label(key);
    if (value != nullptr && values.contains(value->str())) {
      return refuse(Plugin::inter_pod_affinity, Cause::existing_anti_affinity, true);
    }
  }
  return nullptr;
}

const Refused* FilterRun::check_at(std::size_t index) {
  const auto on = [&](Plugin plugin) { return (enabled_ & bit(plugin)) != 0; };
  const NodeRow& row = state_.rows()[index];
  const NodeInfo* node = is_particular_ ? state_.nodes()[index] : nullptr;
  // A pod that names its nodes is not even tried on others.
  if (names_nodes_ && std::find(shape_.named_nodes.begin(), shape_.named_nodes.end(), node->name) ==
                          shape_.named_nodes.end()) {
    return refuse(Plugin::node_affinity, Cause::not_among_named, false);
  }
  if (row.has(NodeRow::kCordoned) && !tolerates_cordon_) {
    return refuse(Plugin::node_unschedulable, Cause::unschedulable, false);
  }
  if (!pod_.node_name.empty() && pod_.node_name != node->name && on(Plugin::node_name)) {
    return refuse(Plugin::node_name, Cause::other_name, false);
  }
  if (row.has(NodeRow::kTainted) && on(Plugin::taint_toleration) &&
      !taints_ok(pod_, *state_.nodes()[index])) {
    return refuse(Plugin::taint_toleration, Cause::taints, false);
  }
  if (node != nullptr && on(Plugin::node_affinity)) {
    if (profile_.added_affinity && !profile_.added_affinity->matches(node->place)) {
      return refuse(Plugin::node_affinity, Cause::added_affinity, false);
    }
    if (!matches_node(pod_, *node)) return refuse(Plugin::node_affinity, Cause::affinity, false);
  }
  if (!shape_.ports.empty() && on(Plugin::node_ports)) {
    for (const HostPort& wanted : shape_.ports) {
      for (const HostPort& taken : node->ports) {
        if (wanted.clashes(taken)) return refuse(Plugin::node_ports, Cause::ports, true);
      }
    }
  }
  if (on(Plugin::resources_fit) && !fits(index, row)) return &refused_;
  if (node == nullptr) return nullptr;
  if (volumes_) {
    if (const Refused* refused = against_volumes(*node)) return refused;
  }
  if (const Refused* refused = against_spread(*node)) return refused;
  if (on(Plugin::inter_pod_affinity)) {
    if (const Refused* refused = against_pods(*node)) return refused;
  }
  // Upstream asks this after devices; it is cheaper, and a node that fails both is told of once.
  if (on(Plugin::node_declared_features) && !missing_features(pod_, *node).empty()) {
    return refuse(Plugin::node_declared_features, Cause::features, false);
  }
  return nullptr;
}

}  // namespace dibs::scheduler
