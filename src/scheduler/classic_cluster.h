#pragma once
// For tests of this library: a cluster whose claims are of resource.k8s.io/v1alpha2, and the
// controller of a driver that allocates them when it is told to.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {

inline const Gvr kContextsOf = {"resource.k8s.io", "v1alpha2", "podschedulingcontexts"};
inline const Gvr kClassicClaimsOf = {"resource.k8s.io", "v1alpha2", "resourceclaims"};
inline const Gvr kResourceClasses = {"resource.k8s.io", "v1alpha2", "resourceclasses"};

inline Options at_release(int release) {
  Options made;
  made.release = release;
  return made;
}

class ClassicCluster : public TestCluster {
 public:
  explicit ClassicCluster(int release = kNewestRelease, const runtime::SimOptions& world = {},
                          bool remote = false)
      : TestCluster(at_release(release), world, remote), release_(release) {}

  void add_named_node(const std::string& name) {
    add_node(name, "{'cpu':'4','memory':'8Gi','pods':'10'}",
             cat("{'kubernetes.io/hostname':'", name, "'}"));
  }
  void add_resource_class(const std::string& name, const std::string& more = "") {
    create(
        kResourceClasses, "",
        cat("{'metadata':{'name':'", name, "'},'driverName':'", name, ".example.com'", more, "}"));
  }
  void add_classic_claim(const std::string& name, const std::string& resource_class = "cats",
                         const std::string& mode = "WaitForFirstConsumer") {
    create(kClassicClaimsOf, "default",
           cat("{'metadata':{'name':'", name, "'},'spec':{'resourceClassName':'", resource_class,
               "','allocationMode':'", mode, "'}}"));
  }
  /// Entries are called as the claims are.
  Value add_classic_pod(const std::string& name, const std::vector<std::string>& claims,
                        const std::string& more = "") {
    std::string entries;
    for (const std::string& claim : claims) {
      append(entries, entries.empty() ? "" : ",", "{'name':'", claim, "',",
             release_ <= 30 ? "'source':{" : "", "'resourceClaimName':'", claim, "'",
             release_ <= 30 ? "}" : "", "}");
    }
    return add_pod(name, cat("{'resourceClaims':[", entries, "]", more, "}"));
  }
  /// A class whose claims the scheduler allocates by their parameters, and an instance on each of
  /// the nodes.
  void add_structured(const std::string& name, const std::vector<std::string>& nodes) {
    add_resource_class(name, ",'structuredParameters':true");
    for (const std::string& node : nodes) {
      create(
          {"resource.k8s.io", "v1alpha2", "resourceslices"}, "",
          cat("{'metadata':{'name':'", node, "-", name, "'},'nodeName':'", node, "','driverName':'",
              name, ".example.com','namedResources':{'instances':[{'name':'i0'}]}}"));
    }
  }
  Value context(const std::string& pod) { return get(kContextsOf, "default", pod); }
  /// "selected|potential,potential" of a context; "none".
  std::string proposed(const std::string& pod) {
    const Value found = context(pod);
    if (found.is_null()) return "none";
    const Proposal proposal = Proposal::read(found);
    return cat(proposal.selected_node, "|", join(proposal.potential_nodes, ","));
  }
  Value classic_claim(const std::string& name) { return get(kClassicClaimsOf, "default", name); }
  std::vector<std::string> users_of(const std::string& claim) {
    std::vector<std::string> out;
    for (const Value& user : classic_claim(claim)["status"]["reservedFor"].items()) {
      out.push_back(user["name"].str());
    }
    return out;
  }

  // What a driver says and does, step by step.

  /// `answers`: entries of the list.
  void answer(const std::string& pod, const std::string& answers) {
    patch(kContextsOf, "default", pod, cat("{'status':{'resourceClaims':[", answers, "]}}"),
          "status");
    settle();
  }
  void allocate(const std::string& claim, const std::string& node, bool shareable = false,
                const std::string& reserved = "") {
    patch(kClassicClaimsOf, "default", claim,
          cat("{'metadata':{'finalizers':['cats.example.com/deletion-protection']}}"));
    patch(kClassicClaimsOf, "default", claim,
          cat("{'status':{'driverName':'cats.example.com','allocation':{'resourceHandles':[{"
              "'driverName':'cats.example.com','data':'x'}],",
              node.empty() ? ""
                           : cat("'availableOnNodes':{'nodeSelectorTerms':[{'matchExpressions':[{"
                                 "'key':'kubernetes.io/hostname','operator':'In','values':['",
                                 node, "']}]}]},"),
              "'shareable':", shareable ? "true" : "false", "}", reserved, "}}"),
          "status");
    settle();
  }
  void deallocate(const std::string& claim) {
    patch(kClassicClaimsOf, "default", claim,
          "{'status':{'driverName':null,'allocation':null,'deallocationRequested':null}}",
          "status");
    settle();
  }

 private:
  const int release_;
};

/// A driver's controller that acts by itself whenever turn() is called.
class TestDriver {
 public:
  /// Of the class of that name.
  TestDriver(ClassicCluster& cluster, std::string name)
      : cluster_(cluster), name_(std::move(name)) {}

  /// On these it cannot allocate.
  std::set<std::string> full;
  /// Units that a node has; none said: as many as are wanted.
  std::map<std::string, int> units;

  void turn() {
    for (const Value& claim : cluster_.list(kClassicClaimsOf, "default")) give_back(claim);
    for (const Value& context : cluster_.list(kContextsOf, "default")) serve(context);
  }
  int allocations() const { return allocations_; }

 private:
  bool mine(const Value& claim) const {
    return claim["spec"]["resourceClassName"].as_string() == name_;
  }
  static bool allocated(const Value& claim) { return claim["status"]["allocation"].is_object(); }
  bool refuses(const std::string& node) {
    if (full.contains(node)) return true;
    const auto limit = units.find(node);
    if (limit == units.end()) return false;
    int used = 0;
    for (const Value& claim : cluster_.list(kClassicClaimsOf, "default")) {
      if (mine(claim) && allocated(claim) &&
          claim["status"]["allocation"]["resourceHandles"][0]["data"].as_string() == node) {
        ++used;
      }
    }
    return used >= limit->second;
  }
  void give_back(const Value& claim) {
    if (!mine(claim) || !claim["status"]["reservedFor"].empty()) return;
    if (!claim["status"]["deallocationRequested"].as_bool()) return;
    cluster_.patch(kClassicClaimsOf, "default", claim["metadata"]["name"].str(),
                   "{'status':{'driverName':null,'allocation':null,'deallocationRequested':null}}",
                   "status");
  }
  void serve(const Value& context) {
    const std::string pod_name = context["metadata"]["name"].str();
    const Value pod = cluster_.get(kPodsOf, "default", pod_name);
    const Proposal proposal = Proposal::read(context);
    std::set<std::string> asked(proposal.potential_nodes.begin(), proposal.potential_nodes.end());
    if (!proposal.selected_node.empty()) asked.insert(proposal.selected_node);
    Value answers = context["status"]["resourceClaims"].is_array()
                        ? context["status"]["resourceClaims"]
                        : Value::array();
    bool changed = false;
    for (const Value& entry : pod["spec"]["resourceClaims"].items()) {
      const Value& source = entry["source"].is_object() ? entry["source"] : entry;
      const Value claim = cluster_.classic_claim(source["resourceClaimName"].str());
      if (!mine(claim) || allocated(claim)) continue;
      if (!proposal.selected_node.empty() && !refuses(proposal.selected_node)) {
        allocate(claim, pod, proposal.selected_node);
        continue;
      }
      Value unsuitable = Value::array();
      for (const std::string& node : asked) {
        if (refuses(node)) unsuitable.push(node);
      }
      Value mine = Value::object({{"name", entry["name"]}, {"unsuitableNodes", unsuitable}});
      bool there = false;
      for (std::size_t i = 0; i < answers.size(); ++i) {
        if (!(answers[i]["name"] == entry["name"])) continue;
        there = true;
        if (answers[i]["unsuitableNodes"] == unsuitable ||
            (answers[i]["unsuitableNodes"].empty() && unsuitable.empty())) {
          continue;
        }
        answers.mut(i) = mine;
        changed = true;
      }
      if (there) continue;
      answers.push(mine);
      changed = true;
    }
    if (!changed) return;
    cluster_.patch(
        kContextsOf, "default", pod_name,
        json::write(Value::object({{"status", Value::object({{"resourceClaims", answers}})}})),
        "status");
  }
  void allocate(const Value& claim, const Value& pod, const std::string& node) {
    ++allocations_;
    const std::string name = claim["metadata"]["name"].str();
    cluster_.patch(
        kClassicClaimsOf, "default", name,
        cat("{'metadata':{'finalizers':['", name_, ".example.com/deletion-protection'", "]}}"));
    cluster_.patch(kClassicClaimsOf, "default", name,
                   cat("{'status':{'driverName':'", name_,
                       ".example.com','allocation':{'resourceHandles':[{'driverName':'", name_,
                       ".example.com','data':'", node,
                       "'}],'availableOnNodes':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
                       "'kubernetes.io/hostname','operator':'In','values':['",
                       node, "']}]}]}},'reservedFor':[{'resource':'pods','name':'",
                       pod["metadata"]["name"].as_string(), "','uid':'",
                       pod["metadata"]["uid"].as_string(), "'}]}}"),
                   "status");
  }

  ClassicCluster& cluster_;
  const std::string name_;
  int allocations_ = 0;
};

/// Scheduler and drivers take turns.
inline void run_with(ClassicCluster& cluster, const std::vector<TestDriver*>& drivers,
                     int turns = 30) {
  for (int i = 0; i < turns; ++i) {
    for (TestDriver* driver : drivers) driver->turn();
    cluster.settle(std::chrono::seconds(1));
  }
}

}  // namespace dibs::scheduler::test
