#include "scheduler/explain.h"

#include <algorithm>
#include <map>

#include "api/volumes/volumes.h"
#include "base/strings.h"
#include "scheduler/explain_fixes.h"
#include "scheduler/scores/scores.h"

namespace dibs::scheduler {
namespace {

std::string text_of(const Taint& taint) {
  return cat(taint.key, taint.value.empty() ? "" : "=", taint.value, ":", taint.effect);
}

std::string taints_of(const Pod& pod, const NodeInfo& node) {
  std::vector<std::string> made;
  for (const Taint& taint : node.taints) {
    const bool matters = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    if (matters && !tolerates(pod.shape->tolerations, taint)) made.push_back(text_of(taint));
  }
  return join(made, ", ");
}

/// Labels that the pod's node selector wants and the node does not have.
std::string labels_of(const Pod& pod, const NodeInfo& node) {
  std::vector<std::string> made;
  for (const auto& [key, value] : pod.shape->node_selector.members()) {
    const json::Value* label = node.label(key);
    if (label == nullptr || label->as_string() != value.as_string()) {
      made.push_back(cat(key, "=", value.as_string()));
    }
  }
  return join(made, ", ");
}

/// Which device an error is about differs from node to node, what is wrong does not.
std::string without_device(std::string_view error) {
  constexpr std::string_view kNamed = "checking structured parameters failed: checking node ";
  constexpr std::string_view kDriver = "resources of driver ";
  if (error.starts_with(kNamed)) {
    const std::size_t driver = error.find(kDriver);
    if (driver != std::string_view::npos) {
      return cat("checking structured parameters failed: ", error.substr(driver));
    }
  }
  constexpr std::string_view kOn = " on device ";
  const std::size_t at = error.find(kOn);
  if (at == std::string_view::npos) return std::string(error);
  const std::size_t end = error.find(": ", at);
  return cat(error.substr(0, at), end == std::string_view::npos ? "" : error.substr(end));
}

std::string ports_of(const Pod& pod, const NodeInfo& node) {
  std::vector<std::string> made;
  for (const HostPort& wanted : pod.shape->ports) {
    const bool taken = std::any_of(node.ports.begin(), node.ports.end(),
                                   [&](const HostPort& other) { return wanted.clashes(other); });
    if (taken) made.push_back(cat(wanted.port, "/", wanted.protocol));
  }
  return join(made, ", ");
}

std::string topology_keys(const std::vector<PodTerm>& terms) {
  std::vector<std::string> made;
  for (const PodTerm& term : terms) made.push_back(term.topology_key);
  return join(made, ", ");
}

std::string spread_keys(const Pod& pod) {
  std::vector<std::string> made;
  for (const SpreadConstraint& constraint : pod.shape->spread) {
    if (constraint.required) made.push_back(constraint.topology_key);
  }
  return join(made, ", ");
}

std::string volume_claims(const Pod& pod) {
  std::vector<std::string> made;
  for (const api::PodVolume& volume : api::pod_volumes(pod.object)) made.push_back(volume.claim);
  return cat(made.size() > 1 ? "claims " : "claim ", join(made, ", "));
}

/// Asks every filter by itself.
class Filters {
 public:
  Filters(ClusterState& state, Devices& devices, const Pod& pod, const Profile& profile)
      : pod_(pod) {
    for (unsigned i = 0; i < static_cast<unsigned>(Plugin::dynamic_resources); ++i) {
      const auto plugin = static_cast<Plugin>(i);
      if (!profile.has(Point::filter, plugin)) continue;
      const auto served = [&devices, &profile](std::string_view resource) {
        return profile.devices() && devices.serves(resource);
      };
      runs_.emplace_back(state, pod, profile, served, bit(plugin));
    }
  }

  std::vector<Obstacle> check(const NodeInfo& node) {
    std::vector<Obstacle> made;
    for (FilterRun& run : runs_) {
      const Refused* refused = run.check(node);
      if (refused == nullptr) continue;
      for (const std::string& reason : words_of(*refused, pod_)) {
        made.push_back(about(refused->plugin, reason, node));
      }
    }
    return made;
  }

 private:
  Obstacle about(Plugin plugin, const std::string& reason, const NodeInfo& node) const {
    Obstacle made;
    made.plugin = plugin;
    made.reason = reason;
    switch (plugin) {
      case Plugin::taint_toleration:
        made.subject = taints_of(pod_, node);
        break;
      case Plugin::node_affinity:
        made.subject = labels_of(pod_, node);
        break;
      case Plugin::node_ports:
        made.subject = ports_of(pod_, node);
        break;
      case Plugin::node_declared_features:
        made.subject = join(missing_features(pod_, node), ", ");
        break;
      case Plugin::resources_fit:
        fill_amounts(node, made);
        break;
      case Plugin::topology_spread:
        made.subject = spread_keys(pod_);
        break;
      case Plugin::inter_pod_affinity:
        made.subject = reason.find("anti-affinity") == std::string::npos
                           ? topology_keys(pod_.shape->affinity)
                           : topology_keys(pod_.shape->anti_affinity);
        break;
      case Plugin::volume_restrictions:
      case Plugin::node_volume_limits:
      case Plugin::volume_binding:
      case Plugin::volume_zone:
        made.subject = volume_claims(pod_);
        break;
      default:
        break;
    }
    return made;
  }

  void fill_amounts(const NodeInfo& node, Obstacle& made) const {
    constexpr std::string_view kInsufficient = "Insufficient ";
    if (!made.reason.starts_with(kInsufficient)) {
      made.subject = "pods";
      made.wanted = 1;
      made.there = node.allocatable.pods;
      made.left = node.allocatable.pods - node.requested.pods;
      return;
    }
    made.subject = made.reason.substr(kInsufficient.size());
    made.wanted = pod_.shape->requests.amount(made.subject);
    made.there = node.allocatable.amount(made.subject);
    made.left = made.there - node.requested.amount(made.subject);
  }

  const Pod& pod_;
  std::vector<FilterRun> runs_;
};

class Explainer {
 public:
  Explainer(ClusterState& state, Devices& devices, const PodPtr& pod, const Profile& profile,
            const ExplainScope& scope)
      : state_(state), devices_(devices), pod_(*pod), profile_(profile), scope_(scope) {}

  Explanation run(Time now) {
    made_.nodes = state_.nodes().size();
    if (profile_.devices()) {
      made_.run = devices_.prepare(pod_, now, profile_.binding_timeout);
    } else if (!pod_.shape->claims.empty()) {
      made_.devices_enabled = false;
    }
    const bool hopeless = made_.run.ready == DeviceRun::Ready::wait ||
                          made_.run.ready == DeviceRun::Ready::rejected ||
                          made_.run.ready == DeviceRun::Ready::failed || !made_.devices_enabled;
    for (const std::size_t place : made_.run.asked) {
      made_.drivers.push_back(devices_.driver_of(made_.run.claims[place]));
    }
    if (pod_.claims_volumes)
      made_.volumes = state_.volumes().prepare(pod_, profile_.filters()).reason;
    if (hopeless || !made_.volumes.empty()) return std::move(made_);
    look_at_nodes();
    if (!held_.empty()) hold_back();
    rank_able();
    for (NodeGroup& group : made_.groups) std::sort(group.nodes.begin(), group.nodes.end());
    std::stable_sort(made_.groups.begin(), made_.groups.end(),
                     [](const NodeGroup& a, const NodeGroup& b) {
                       return a.nodes.size() != b.nodes.size() ? a.nodes.size() > b.nodes.size()
                                                               : a.nodes < b.nodes;
                     });
    explain_groups();
    find_empty_classes();
    find_fixes(made_, devices_, pod_, scope_);
    return std::move(made_);
  }

 private:
  void look_at_nodes() {
    Filters filters(state_, devices_, pod_, profile_);
    for (NodeInfo* node : state_.nodes()) {
      if (made_.nodes_looked_at == scope_.most_nodes) return;
      ++made_.nodes_looked_at;
      std::vector<Obstacle> obstacles = filters.check(*node);
      std::optional<alloc::NodeFailure> failure;
      NodeDevices found;
      // A pod that names its nodes has nothing to do with others.
      const auto other = std::find_if(obstacles.begin(), obstacles.end(), [&](const Obstacle& one) {
        return one.plugin == Plugin::node_affinity && pod_.shape->names_nodes;
      });
      if (other != obstacles.end()) {
        obstacles = {*other};
      } else if (made_.run.ready == DeviceRun::Ready::go) {
        found = devices_.check(made_.run, *node);
        if (found.holds && made_.run.may_fail && obstacles.empty() && held_.empty()) {
          held_ = cat("the pod waits because of node ", node->name, ": ", found.reason);
        }
        if (found.kind != NodeDevices::Kind::fits)
          failure = look_at_devices(found, *node, obstacles);
      }
      if (obstacles.empty()) {
        candidates_.push_back({node->index});
        made_.able.push_back({node->name, 0, std::move(found)});
        continue;
      }
      join_group(*node, std::move(obstacles), std::move(failure), found);
    }
  }

  /// Adds what speaks against the node as far as devices go.
  std::optional<alloc::NodeFailure> look_at_devices(const NodeDevices& found, const NodeInfo& node,
                                                    std::vector<Obstacle>& obstacles) {
    Obstacle made;
    made.plugin = Plugin::dynamic_resources;
    made.reason = found.reason;
    if (!found.unavailable.empty()) {
      for (const std::size_t place : found.unavailable) {
        const PodClaim& claim = made_.run.claims[place];
        made.subject = claim.key;
        made.detail = claim.spoiled ? "has devices that did not become ready"
                      : claim.anywhere || claim.places.matches(node.place)
                          ? "has devices that need a node without preparation"
                          : "has its devices on other nodes";
        obstacles.push_back(made);
      }
      return std::nullopt;
    }
    if (look_at_drivers(made, node, obstacles)) return std::nullopt;
    obstacles.push_back(std::move(made));
    const bool searched =
        found.named || found.extended >= 0 || made_.run.open.size() > made_.run.named.size();
    if (!searched) return std::nullopt;
    // Counts alone tell groups apart; the rest is asked once for each of them.
    alloc::ExplainOptions counts;
    counts.conflict = false;
    counts.relaxations = false;
    alloc::NodeFailure failure = alloc::explain(inventory(found.named), node.place,
                                                demand(found.extended, found.named), counts);
    obstacles.back().reason = without_device(obstacles.back().reason);
    failure.error.clear();
    return failure;
  }

  /// Whether classes or drivers of claims of v1alpha2 refuse the node.
  bool look_at_drivers(Obstacle made, const NodeInfo& node,
                       std::vector<Obstacle>& obstacles) const {
    const std::size_t before = obstacles.size();
    for (const PodClaim& claim : made_.run.claims) {
      if (claim.allocated || claim.way == Way::devices) continue;
      made.subject = claim.key;
      if (!claim.anywhere && !claim.places.matches(node.place)) {
        made.reason = kExcludedByClass;
        made.detail = cat("is of class ", claim.object["spec"]["resourceClassName"].as_string(),
                          ", which leaves the node out");
        obstacles.push_back(made);
      } else if (std::binary_search(claim.unsuitable.begin(), claim.unsuitable.end(), node.name)) {
        made.reason = kUnsuitable;
        made.detail = cat("cannot be allocated there, says driver ", devices_.driver_of(claim));
        obstacles.push_back(made);
      }
    }
    return obstacles.size() > before;
  }

  alloc::Inventory& inventory(bool named) const {
    return named ? devices_.named_inventory() : devices_.inventory();
  }

  const alloc::Demand& demand(int extended, bool named) const {
    if (named) return made_.run.named_demand;
    return extended >= 0 ? made_.run.extended[static_cast<std::size_t>(extended)].demand
                         : made_.run.demand;
  }

  static bool same(const Obstacle& a, const Obstacle& b) {
    return a.plugin == b.plugin && a.reason == b.reason && a.subject == b.subject &&
           a.detail == b.detail;
  }

  void join_group(const NodeInfo& node, std::vector<Obstacle> obstacles,
                  std::optional<alloc::NodeFailure> failure, const NodeDevices& found) {
    for (NodeGroup& group : made_.groups) {
      const bool equal = group.extended == found.extended && group.named == found.named &&
                         group.devices == failure &&
                         std::equal(group.obstacles.begin(), group.obstacles.end(),
                                    obstacles.begin(), obstacles.end(), same);
      if (!equal) continue;
      group.nodes.push_back(node.name);
      for (std::size_t i = 0; i < obstacles.size(); ++i) {
        if (obstacles[i].left <= group.obstacles[i].left) continue;
        group.obstacles[i].left = obstacles[i].left;
        group.obstacles[i].there = obstacles[i].there;
      }
      return;
    }
    made_.groups.push_back(
        {{node.name}, std::move(obstacles), std::move(failure), found.extended, found.named});
  }

  /// A selector that fails anywhere keeps the pod from nodes that could take it.
  void hold_back() {
    Obstacle obstacle;
    obstacle.plugin = Plugin::dynamic_resources;
    obstacle.reason = held_;
    for (const AbleNode& node : made_.able) {
      join_group(*state_.find(node.name), {obstacle}, std::nullopt, {});
    }
    made_.able.clear();
    candidates_.clear();
  }

  void rank_able() {
    if (candidates_.empty()) return;
    score_nodes(state_, pod_, profile_, candidates_);
    if (made_.run.prioritized) {
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        candidates_[i].preference = Devices::preference(made_.run, made_.able[i].devices);
      }
      score_devices(state_, pod_, profile_, candidates_);
    }
    for (std::size_t i = 0; i < candidates_.size(); ++i) made_.able[i].score = candidates_[i].score;
    std::stable_sort(made_.able.begin(), made_.able.end(),
                     [](const AbleNode& a, const AbleNode& b) {
                       return a.score != b.score ? a.score > b.score : a.name < b.name;
                     });
  }

  void explain_groups() {
    std::size_t done = 0;
    for (NodeGroup& group : made_.groups) {
      if (!group.devices.has_value()) continue;
      if (done++ == scope_.most_groups) return;
      const NodeInfo* node = state_.find(group.nodes.front());
      group.devices =
          alloc::explain(inventory(group.named), node->place, demand(group.extended, group.named));
    }
  }

  /// Where a request finds nothing anywhere because no device is of its class.
  void find_empty_classes() {
    if (!made_.able.empty()) return;
    std::map<std::string, bool> empty;
    for (const NodeGroup& group : made_.groups) {
      if (!group.devices.has_value()) continue;
      for (const alloc::RequestFindings& found : group.devices->requests) {
        std::uint32_t lost = 0;
        for (const alloc::Loss& loss : found.losses) {
          if (loss.cause == alloc::Cause::class_selector) lost += loss.devices;
        }
        const alloc::Demand& wanted = made_.demand(group);
        const auto first = wanted.claims[found.claim].first_position + found.request;
        const alloc::Alternative& alternative =
            wanted.alternatives[wanted.positions[first].first + found.alternative];
        if (alternative.device_class == nullptr) continue;
        const auto [at, added] = empty.try_emplace(alternative.device_class->name, true);
        if (lost < found.seen) at->second = false;
      }
    }
    for (const auto& [name, none] : empty) {
      if (none) made_.empty_classes.push_back(name);
    }
  }

  ClusterState& state_;
  Devices& devices_;
  const Pod& pod_;
  const Profile& profile_;
  const ExplainScope& scope_;
  std::string held_;                   // why the pod goes nowhere
  std::vector<Candidate> candidates_;  // in the order of made_.able, until that is sorted
  Explanation made_;
};

}  // namespace

const alloc::Demand& Explanation::demand(const NodeGroup& group) const {
  if (group.named) return run.named_demand;
  return group.extended >= 0 ? run.extended[static_cast<std::size_t>(group.extended)].demand
                             : run.demand;
}

Explanation explain_placement(ClusterState& state, Devices& devices, const PodPtr& pod,
                              const Profile& profile, Time now, const ExplainScope& scope) {
  return Explainer(state, devices, pod, profile, scope).run(now);
}

}  // namespace dibs::scheduler
