#include "scheduler/explain_fixes.h"

#include <algorithm>
#include <map>

#include "base/strings.h"

namespace dibs::scheduler {
namespace {

/// What a change costs whoever makes it, in thousandths: amounts count below that. Several cost
/// their sum.
enum Cost : int {
  kTolerate = 1000,
  kUncordon = 1000,
  kAskLess = 2000,
  kDropRule = 3000,
  kWait = 4000,
  kRepair = 5000
};

constexpr std::size_t kMostFixes = 6;

/// Taints that say that something is wrong with the node itself.
bool is_ill(std::string_view taints) {
  return taints.find("node.kubernetes.io/") != std::string_view::npos;
}

class FixFinder {
 public:
  FixFinder(Explanation& made, const Devices& devices, const Pod& pod, const ExplainScope& scope)
      : made_(made), devices_(devices), pod_(pod), scope_(scope) {}

  void run() {
    std::map<std::string, Fix> found;
    for (const NodeGroup& group : made_.groups) {
      // Everything that speaks against the node has to go: alternatives for the one that has
      // several, the cheapest for each of the others.
      std::vector<std::vector<Fix>> ways;
      for (const Obstacle& obstacle : group.obstacles) {
        ways.push_back(ways_around(obstacle, group));
        std::stable_sort(ways.back().begin(), ways.back().end(),
                         [](const Fix& a, const Fix& b) { return a.cost < b.cost; });
      }
      if (std::any_of(ways.begin(), ways.end(), [](const auto& some) { return some.empty(); })) {
        continue;
      }
      const std::size_t variants = ways.size() == 1 ? ways.front().size() : 1;
      for (std::size_t v = 0; v < variants; ++v) {
        Fix whole;
        for (const std::vector<Fix>& some : ways) {
          const Fix& one = some[std::min(v, some.size() - 1)];
          whole.changes.insert(whole.changes.end(), one.changes.begin(), one.changes.end());
          whole.cost += one.cost;
          whole.family = ways.size() == 1 ? one.family : "";
        }
        Fix& known = found[whole.text()];
        whole.nodes.swap(known.nodes);
        whole.nodes.insert(whole.nodes.end(), group.nodes.begin(), group.nodes.end());
        known = std::move(whole);
      }
    }
    for (auto& [text, fix] : found) {
      std::sort(fix.nodes.begin(), fix.nodes.end());
      made_.fixes.push_back(std::move(fix));
    }
    std::stable_sort(made_.fixes.begin(), made_.fixes.end(), [](const Fix& a, const Fix& b) {
      return a.cost != b.cost ? a.cost < b.cost : a.nodes.size() > b.nodes.size();
    });
    leave_out_worse();
    if (made_.fixes.size() > kMostFixes) made_.fixes.resize(kMostFixes);
  }

 private:
  /// Ways around one obstacle, cheapest first; none: nothing that can be named.
  std::vector<Fix> ways_around(const Obstacle& obstacle, const NodeGroup& group) const {
    const auto only = [&](std::string change, int cost) {
      return std::vector<Fix>{{{std::move(change)}, group.nodes, cost}};
    };
    switch (obstacle.plugin) {
      case Plugin::node_unschedulable:
        return only("uncordon the node", kUncordon);
      case Plugin::taint_toleration:
        return is_ill(obstacle.subject)
                   ? only(cat("bring the node back into order (", obstacle.subject, ")"), kRepair)
                   : only(cat("tolerate the taint ", obstacle.subject, " in the pod"), kTolerate);
      case Plugin::node_affinity:
        if (pod_.shape->names_nodes) return {};
        return only(obstacle.subject.empty()
                        ? std::string("change the pod's node affinity")
                        : cat("label the node ", obstacle.subject, ", or drop that node selector"),
                    kDropRule);
      case Plugin::node_declared_features:
        return only("use a node whose agent has these features, or do without them", kRepair);
      case Plugin::node_ports:
        return only(cat("free the host port ", obstacle.subject), kWait);
      case Plugin::resources_fit:
        return ways_to_fit(obstacle, group);
      case Plugin::volume_restrictions:
        return only("wait until the other pod that has the claim is gone", kWait);
      case Plugin::node_volume_limits:
        return only("remove a pod with volumes from the node", kWait);
      case Plugin::volume_binding:
        if (obstacle.reason == words_of(Cause::no_volume)) {
          return only(
              cat("add a PersistentVolume for ", obstacle.subject, " that the node can reach"),
              kRepair);
        }
        return obstacle.reason == words_of(Cause::no_storage)
                   ? only("ask for less storage", kAskLess)
                   : std::vector<Fix>();
      case Plugin::topology_spread:
        return only(cat("relax the pod's topology spread over ", obstacle.subject), kDropRule);
      case Plugin::inter_pod_affinity:
        return only("change the pod's affinity to other pods, or theirs to it", kDropRule);
      case Plugin::dynamic_resources:
        return ways_to_devices(obstacle, group);
      default:
        return {};
    }
  }

  /// How much of something a change takes, below a thousand.
  static int share(std::int64_t part, std::int64_t whole) {
    return whole > 0
               ? static_cast<int>(999.0 * static_cast<double>(part) / static_cast<double>(whole))
               : 0;
  }

  static std::vector<Fix> ways_to_fit(const Obstacle& obstacle, const NodeGroup& group) {
    const std::string& name = obstacle.subject;
    std::vector<Fix> made;
    if (name != "pods" && obstacle.left > 0) {
      made.push_back({{cat("ask for no more than ", show_amount(name, obstacle.left), " ", name)},
                      group.nodes,
                      kAskLess + share(obstacle.wanted - obstacle.left, obstacle.wanted),
                      cat("less ", name)});
    }
    const std::int64_t missing = obstacle.wanted - std::max<std::int64_t>(obstacle.left, 0);
    if (obstacle.wanted <= obstacle.there) {
      made.push_back({{name == "pods" ? std::string("remove a pod from the node")
                                      : cat("free ", show_amount(name, missing), " ", name)},
                      group.nodes,
                      kWait + share(missing, obstacle.wanted)});
    }
    return made;
  }

  std::vector<Fix> ways_to_devices(const Obstacle& obstacle, const NodeGroup& group) const {
    if (obstacle.reason == kExcludedByClass) {
      return {{{cat("let the suitableNodes of the class of claim ", obstacle.subject,
                    " select the node")},
               group.nodes,
               kDropRule}};
    }
    if (obstacle.reason == kUnsuitable && !group.named) {
      return {{{cat("wait until claim ", obstacle.subject,
                    " can be allocated there: its driver says when")},
               group.nodes,
               kWait}};
    }
    if (!obstacle.subject.empty()) {
      return {{{cat("free claim ", obstacle.subject, ", which ", obstacle.detail)},
               group.nodes,
               kWait}};
    }
    if (!group.devices.has_value()) return {};
    if (group.devices->answer == alloc::Answer::failed) {
      return {{{"mend the claim, or the device that its selector fails on"}, group.nodes, kRepair}};
    }
    std::vector<Fix> made;
    for (const alloc::Relaxation& relaxation : group.devices->relaxations) {
      using Kind = alloc::Relaxation::Kind;
      Fix fix;
      fix.nodes = group.nodes;
      std::string change =
          made_.in_plain_words(group, alloc::describe(relaxation, made_.demand(group)));
      switch (relaxation.kind) {
        case Kind::tolerate:
          fix.cost = kTolerate;
          break;
        case Kind::fewer:
          fix.cost = kAskLess + 999 - std::min(999, static_cast<int>(relaxation.number));
          fix.family =
              cat("fewer ", relaxation.claim, " ", relaxation.request, " ", relaxation.alternative);
          break;
        case Kind::less:
          fix.cost = kAskLess;
          break;
        case Kind::release:
          fix.cost = kWait + std::min(999, static_cast<int>(relaxation.number));
          append(change, holders(relaxation.devices));
          break;
        default:
          fix.cost = kDropRule;
          break;
      }
      fix.changes.push_back(std::move(change));
      made.push_back(std::move(fix));
    }
    return made;
  }

  /// " by claim a (pod x)".
  std::string holders(const std::vector<std::string>& ids) const {
    std::vector<std::string> claims = devices_.holders(ids);
    if (scope_.names_own_only) {
      const std::string own = pod_.key.substr(0, pod_.key.find('/') + 1);
      const auto others =
          std::erase_if(claims, [&](const std::string& key) { return !key.starts_with(own); });
      if (claims.empty() && others > 0) return " by claims of other namespaces";
    }
    if (claims.empty()) return {};
    std::vector<std::string> named;
    for (const std::string& key : claims) {
      std::vector<std::string> pods;
      const json::Value claim = devices_.claim(key);
      for (const json::Value& user : claim["status"]["reservedFor"].items()) {
        if (user["resource"].as_string() == "pods") pods.push_back(user["name"].str());
      }
      named.push_back(
          cat(key, pods.empty() ? "" : " (pod ", join(pods, ", "), pods.empty() ? "" : ")"));
      if (named.size() == 3 && claims.size() > 3) {
        named.push_back(cat(claims.size() - 3, " more"));
        break;
      }
    }
    return cat(" by claim", claims.size() == 1 ? " " : "s ", join(named, ", "));
  }

  /// A fix that asks for everything that another one does, and more, is of no use.
  void leave_out_worse() {
    std::vector<Fix> kept;
    for (Fix& fix : made_.fixes) {
      const bool worse = std::any_of(kept.begin(), kept.end(), [&](const Fix& better) {
        if (!fix.family.empty() && fix.family == better.family) return true;
        return std::all_of(
            better.changes.begin(), better.changes.end(), [&](const std::string& change) {
              return std::find(fix.changes.begin(), fix.changes.end(), change) != fix.changes.end();
            });
      });
      if (!worse) kept.push_back(std::move(fix));
    }
    made_.fixes = std::move(kept);
  }

  Explanation& made_;
  const Devices& devices_;
  const Pod& pod_;
  const ExplainScope& scope_;
};

}  // namespace

void find_fixes(Explanation& made, const Devices& devices, const Pod& pod,
                const ExplainScope& scope) {
  FixFinder(made, devices, pod, scope).run();
}

std::string Fix::text() const { return join(changes, ", and "); }

}  // namespace dibs::scheduler
