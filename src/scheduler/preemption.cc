#include "scheduler/preemption.h"

#include <algorithm>
#include <limits>

#include "base/strings.h"
#include "scheduler/reasons.h"

namespace dibs::scheduler {
namespace {

std::int64_t highest(const Victims& option) {
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (const PodPtr& victim : option.pods) most = std::max(most, victim->priority);
  return most;
}

std::int64_t sum(const Victims& option) {
  std::int64_t total = 0;
  // Shifted as upstream does, so that many of negative priority are not the cheapest.
  for (const PodPtr& victim : option.pods) total += victim->priority + (std::int64_t{1} << 31);
  return total;
}

/// The earliest start among the most important victims.
std::string start(const Victims& option) {
  std::string earliest;
  for (const PodPtr& victim : option.pods) {
    if (victim->priority != highest(option)) continue;
    const std::string at = victim->object["status"]["startTime"].str();
    if (earliest.empty() || at < earliest) earliest = at;
  }
  return earliest;
}

bool better(const Victims& a, const Victims& b) {
  if (a.violations != b.violations) return a.violations < b.violations;
  if (highest(a) != highest(b)) return highest(a) < highest(b);
  if (sum(a) != sum(b)) return sum(a) < sum(b);
  if (a.pods.size() != b.pods.size()) return a.pods.size() < b.pods.size();
  return start(a) > start(b);
}

bool more_important(const PodPtr& a, const PodPtr& b) {
  if (a->priority != b->priority) return a->priority > b->priority;
  return a->object["status"]["startTime"].as_string() <
         b->object["status"]["startTime"].as_string();
}

class Trial {
 public:
  Trial(ClusterState& state, Devices& devices, const PodPtr& pod, const Profile& profile,
        DeviceRun& run, const std::map<std::string, DisruptionBudget>& budgets)
      : state_(state),
        devices_(devices),
        pod_(pod),
        profile_(profile),
        run_(run),
        budgets_(budgets) {}

  /// False with the reasons when the node cannot be made to fit.
  bool on(NodeInfo& node, Victims& option, Reasons& reasons) {
    std::vector<PodPtr> lower;
    for (const PodPtr& other : node.pods) {
      if (other->priority < pod_->priority) lower.push_back(other);
    }
    if (lower.empty()) {
      reasons.add(kNoVictims, Plugin::resources_fit);
      return false;
    }
    for (const PodPtr& victim : lower) state_.remove_pod(victim->key);
    if (!fits(node, &reasons)) {
      for (const PodPtr& victim : lower) state_.add_pod(victim, node.name);
      return false;
    }
    option.node = node.name;
    std::sort(lower.begin(), lower.end(), more_important);
    const std::vector<PodPtr> protected_ones = split_protected(lower);
    reprieve(node, protected_ones, option, true);
    reprieve(node, lower, option, false);
    for (const PodPtr& victim : option.pods) state_.add_pod(victim, node.name);
    // All could stay: pods are not what keeps this one from the node.
    if (option.pods.empty()) reasons.add(kNoVictims, Plugin::resources_fit);
    return !option.pods.empty();
  }

 private:
  bool fits(NodeInfo& node, Reasons* reasons) {
    FilterRun filters(state_, *pod_, profile_,
                      [this](std::string_view name) { return devices_.serves(name); });
    if (const Refused* refused = filters.check(node)) {
      if (reasons != nullptr) reasons->add(*refused);
      return false;
    }
    if (run_.ready != DeviceRun::Ready::go) return true;
    const NodeDevices found = devices_.check(run_, node);
    if (found.kind == NodeDevices::Kind::fits) return true;
    if (reasons != nullptr) reasons->add(found.reason, Plugin::dynamic_resources);
    return false;
  }

  /// Moves the pods out of `pods` whose budgets would not allow their going.
  std::vector<PodPtr> split_protected(std::vector<PodPtr>& pods) {
    std::vector<PodPtr> made;
    std::vector<PodPtr> rest;
    std::map<std::string, std::int64_t> left;
    for (const auto& [key, budget] : budgets_) left[key] = budget.allowed;
    for (const PodPtr& pod : pods) {
      bool violates = false;
      for (const auto& [key, budget] : budgets_) {
        if (budget.name_space != pod->name_space || !budget.selector.matches(pod->labels)) continue;
        if (--left[key] < 0) violates = true;
      }
      (violates ? made : rest).push_back(pod);
    }
    pods = std::move(rest);
    return made;
  }

  void reprieve(NodeInfo& node, const std::vector<PodPtr>& pods, Victims& option, bool violate) {
    for (const PodPtr& pod : pods) {
      state_.add_pod(pod, node.name);
      if (fits(node, nullptr)) continue;
      state_.remove_pod(pod->key);
      option.pods.push_back(pod);
      if (violate) ++option.violations;
    }
  }

  ClusterState& state_;
  Devices& devices_;
  const PodPtr& pod_;
  const Profile& profile_;
  DeviceRun& run_;
  const std::map<std::string, DisruptionBudget>& budgets_;
};

}  // namespace

Preemption find_victims(ClusterState& state, Devices& devices, const PodPtr& pod,
                        const Profile& profile, DeviceRun& run,
                        const std::vector<NodeInfo*>& candidates,
                        const std::map<std::string, DisruptionBudget>& budgets) {
  Preemption made;
  if (!pod->may_preempt) {
    made.message = "preemption: not eligible due to preemptionPolicy=Never.";
    return made;
  }
  if (NodeInfo* nominated = state.find(state.nominated_node(pod->key))) {
    for (const PodPtr& other : nominated->pods) {
      if (other->priority >= pod->priority || !other->terminating) continue;
      made.message = "preemption: not eligible due to a terminating pod on the nominated node.";
      made.node = nominated->name;
      return made;
    }
  }
  const std::size_t nodes = state.nodes().size();
  Reasons reasons(*pod);
  reasons.add(kNotHelpful, Plugin::resources_fit, nodes - candidates.size());
  std::vector<Victims> options;
  Trial trial(state, devices, pod, profile, run, budgets);
  const std::size_t enough = static_cast<std::size_t>(
      std::max(static_cast<std::int64_t>(candidates.size()) * profile.victims_percentage / 100,
               profile.victims_absolute));
  for (NodeInfo* node : candidates) {
    Victims option;
    if (trial.on(*node, option, reasons)) options.push_back(std::move(option));
    if (options.size() >= enough) break;
  }
  if (options.empty()) {
    made.message = cat("preemption: ", unavailable_message(nodes, reasons.text()));
    return made;
  }
  return choose_victims(std::move(options));
}

Preemption choose_victims(std::vector<Victims> options) {
  Preemption made;
  if (options.empty()) {
    made.message = "preemption: no candidate node for preemption";
    return made;
  }
  const auto best = std::min_element(options.begin(), options.end(), better);
  made.node = best->node;
  made.victims = best->pods;
  made.message = cat("preemption: found a potential placement for pod on node ", made.node,
                     ", preempting ", made.victims.size(), " victims");
  made.options = std::move(options);
  return made;
}

}  // namespace dibs::scheduler
