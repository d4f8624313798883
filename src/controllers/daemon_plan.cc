#include "controllers/daemon_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "controllers/node_fit.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr std::string_view kHashLabel = "controller-revision-hash";
constexpr std::string_view kGenerationLabel = "pod-template-generation";
constexpr std::string_view kGenerationAnnotation = "deprecated.daemonset.template.generation";

/// A daemon stays where others leave: on nodes that are silent, short of something, or cordoned.
Value daemon_tolerations(const Value& pod_spec) {
  Value tolerations = pod_spec["tolerations"];
  const auto add = [&](const char* condition, const char* effect) {
    const Value wanted = Value::object({{"key", cat("node.kubernetes.io/", condition)},
                                        {"operator", "Exists"},
                                        {"effect", effect}});
    for (const Value& there : tolerations.items())
      if (there == wanted) return;
    tolerations.push(wanted);
  };
  add("not-ready", "NoExecute");
  add("unreachable", "NoExecute");
  add("disk-pressure", "NoSchedule");
  add("memory-pressure", "NoSchedule");
  add("pid-pressure", "NoSchedule");
  add("unschedulable", "NoSchedule");
  if (pod_spec["hostNetwork"].as_bool()) add("network-unavailable", "NoSchedule");
  return tolerations;
}

class Planner {
 public:
  explicit Planner(const DaemonInput& input)
      : input_(input),
        set_(input.set),
        spec_(set_["spec"]),
        min_ready_(spec_["minReadySeconds"].as_int()) {
    for (const Value& pod : input.pods) pods_[daemon_node(pod)].push_back(pod);
    for (auto& [node, pods] : pods_) std::sort(pods.begin(), pods.end(), oldest_first);
    for (const Value& node : input.nodes) {
      fits_.emplace_back(&node, daemon_fit(set_, node));
      names_.emplace(name_of(node));
      if (fits_.back().second.start) ++desired_;
    }
    const Value& strategy = spec_["updateStrategy"];
    rolling_ = strategy["type"].as_string() != "OnDelete";
    surge_ = scaled_value(strategy["rollingUpdate"]["maxSurge"], desired_, true);
    unavailable_ = scaled_value(strategy["rollingUpdate"]["maxUnavailable"], desired_, true);
    if (surge_ == 0 && unavailable_ == 0) unavailable_ = 1;
  }

  DaemonPlan run() {
    if (!is_deleting(set_)) {
      for (const auto& [node, fit] : fits_) place(std::string(name_of(*node)), fit);
      drop_lost();
      if (rolling_ && plan_.create.empty() && plan_.remove.empty()) roll();
    }
    write_status();
    plan_.again = next_available(input_.pods, min_ready_, input_.now);
    return std::move(plan_);
  }

 private:
  const std::vector<Value>& pods_on(const std::string& node) const {
    static const std::vector<Value> kNone;
    const auto found = pods_.find(node);
    return found == pods_.end() ? kNone : found->second;
  }
  bool is_new(const Value& pod) const { return label_of(pod, kHashLabel) == input_.hash; }
  bool available(const Value& pod) const { return pod_available(pod, min_ready_, input_.now); }

  void place(const std::string& node, const DaemonFit& fit) {
    const std::vector<Value>& pods = pods_on(node);
    if (!fit.stay) {
      for (const Value& pod : pods)
        if (!is_deleting(pod)) plan_.remove.push_back(pod);
      return;
    }
    if (pods.empty()) {
      if (fit.start) plan_.create.push_back(node);
      return;
    }
    std::vector<Value> running;
    for (const Value& pod : pods) {
      if (is_deleting(pod)) continue;
      if (is_pod_terminal(pod))
        replace_ended(pod, node);
      else
        running.push_back(pod);
    }
    if (surge_ == 0 || !rolling_) {
      for (std::size_t i = 1; i < running.size(); ++i) plan_.remove.push_back(running[i]);
      return;
    }
    // Beside an old pod a new one may stand until it is available; more than that are too many.
    const Value* old_one = nullptr;
    const Value* new_one = nullptr;
    for (const Value& pod : running) {
      const Value*& place = is_new(pod) ? new_one : old_one;
      if (place == nullptr)
        place = &pod;
      else
        plan_.remove.push_back(pod);
    }
    if (old_one != nullptr && new_one != nullptr && available(*new_one))
      plan_.remove.push_back(*old_one);
  }

  void replace_ended(const Value& pod, const std::string& node) {
    const bool failed = pod["status"]["phase"].as_string() == "Failed";
    plan_.notes.push_back(
        {failed, failed ? "FailedDaemonPod" : "SucceededDaemonPod",
         cat("Found ", failed ? "failed" : "succeeded", " daemon pod ", client::key_of(pod),
             " on node ", node, ", will try to ", failed ? "kill" : "delete", " it")});
    plan_.remove.push_back(pod);
  }

  /// Pods meant for a node that is gone would wait for it forever. Those that ran there are the
  /// node's.
  void drop_lost() {
    for (const auto& [node, pods] : pods_) {
      if (names_.count(node) > 0) continue;
      for (const Value& pod : pods)
        if (!is_deleting(pod) && pod["spec"]["nodeName"].as_string().empty())
          plan_.remove.push_back(pod);
    }
  }

  void roll() {
    std::int64_t missing = 0;
    std::vector<Value> at_once, later;
    for (const auto& [node, fit] : fits_) {
      if (!fit.start) continue;
      const std::string name(name_of(*node));
      const Value* old_one = nullptr;
      const Value* new_one = nullptr;
      for (const Value& pod : pods_on(name)) {
        if (is_deleting(pod)) continue;
        (is_new(pod) ? new_one : old_one) = &pod;
      }
      if (surge_ > 0) {
        if (old_one == nullptr || new_one != nullptr) {
          if (old_one != nullptr) ++missing;
        } else if (!available(*old_one)) {
          at_once.push_back(*old_one);
        } else {
          later.push_back(*old_one);
        }
      } else if (new_one != nullptr) {
        if (!available(*new_one)) ++missing;
      } else if (old_one == nullptr) {
        ++missing;
      } else if (!available(*old_one)) {
        at_once.push_back(*old_one);
      } else {
        later.push_back(*old_one);
      }
    }
    const std::int64_t budget = (surge_ > 0 ? surge_ : unavailable_) - missing;
    const std::size_t room = static_cast<std::size_t>(std::max<std::int64_t>(0, budget));
    if (later.size() > room) later.resize(room);
    at_once.insert(at_once.end(), later.begin(), later.end());
    for (const Value& pod : at_once) {
      if (surge_ > 0)
        plan_.create.push_back(daemon_node(pod));
      else
        plan_.remove.push_back(pod);
    }
  }

  void write_status() {
    std::int64_t current = 0, misplaced = 0, ready = 0, updated = 0, serving = 0;
    for (const auto& [node, fit] : fits_) {
      const std::vector<Value>& pods = pods_on(std::string(name_of(*node)));
      if (pods.empty()) continue;
      if (!fit.start) {
        ++misplaced;
        continue;
      }
      ++current;
      // Of several the oldest speaks for the node, unless a newer one is up.
      const Value* shown = &pods[0];
      for (const Value& pod : pods)
        if (is_new(pod) && available(pod)) shown = &pod;
      if (pod_ready(*shown)) {
        ++ready;
        if (available(*shown)) ++serving;
      }
      if (is_new(*shown)) ++updated;
    }
    Value status = Value::object({{"currentNumberScheduled", current},
                                  {"numberMisscheduled", misplaced},
                                  {"desiredNumberScheduled", desired_},
                                  {"numberReady", ready}});
    put(status, "observedGeneration", set_["metadata"]["generation"].as_int());
    put(status, "updatedNumberScheduled", updated);
    put(status, "numberAvailable", serving);
    put(status, "numberUnavailable", desired_ - serving);
    for (const char* kept : {"collisionCount", "conditions"})
      if (!set_["status"][kept].is_null()) status.set(kept, set_["status"][kept]);
    plan_.status = std::move(status);
  }

  static void put(Value& status, const char* field, std::int64_t count) {
    if (count != 0) status.set(field, count);
  }

  const DaemonInput& input_;
  const Value& set_;
  const Value& spec_;
  const std::int64_t min_ready_;
  std::map<std::string, std::vector<Value>> pods_;  // by node, oldest first
  std::vector<std::pair<const Value*, DaemonFit>> fits_;
  std::set<std::string, std::less<>> names_;
  std::int64_t desired_ = 0;
  bool rolling_ = true;
  std::int64_t surge_ = 0;
  std::int64_t unavailable_ = 0;
  DaemonPlan plan_;
};

}  // namespace

DaemonFit daemon_fit(const Value& set, const Value& node) {
  const Value& spec = set["spec"]["template"]["spec"];
  const std::string_view only = spec["nodeName"].as_string();
  if (!only.empty() && only != name_of(node)) return {};
  if (!node_selected(spec, node)) return {};
  const Value tolerations = daemon_tolerations(spec);
  const Value& taints = node["spec"]["taints"];
  return {tolerates_all(tolerations, taints, false), tolerates_all(tolerations, taints, true)};
}

std::string daemon_node(const Value& pod) {
  const std::string_view placed = pod["spec"]["nodeName"].as_string();
  if (!placed.empty()) return std::string(placed);
  const Value& required =
      pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  for (const Value& term : required["nodeSelectorTerms"].items())
    for (const Value& field : term["matchFields"].items())
      if (field["key"].as_string() == "metadata.name" && field["values"].size() == 1)
        return field["values"][0].str();
  return {};
}

Value daemon_pod(const Value& set, const std::string& node, const std::string& hash) {
  Value pod = pod_of_template(set["spec"]["template"], set);
  Value& labels = pod.mut("metadata").mut("labels");
  labels.set(kHashLabel, hash);
  const std::string_view generation = annotation_of(set, kGenerationAnnotation);
  if (!generation.empty()) labels.set(kGenerationLabel, generation);
  Value& spec = pod.mut("spec");
  spec.set("tolerations", daemon_tolerations(spec));
  const Value field = Value::object(
      {{"key", "metadata.name"}, {"operator", "In"}, {"values", Value::array({Value(node)})}});
  const Value term = Value::object({{"matchFields", Value::array({field})}});
  spec.mut("affinity")
      .mut("nodeAffinity")
      .set("requiredDuringSchedulingIgnoredDuringExecution",
           Value::object({{"nodeSelectorTerms", Value::array({term})}}));
  return pod;
}

DaemonPlan plan_daemon_set(const DaemonInput& input) { return Planner(input).run(); }

}  // namespace dibs::controllers
