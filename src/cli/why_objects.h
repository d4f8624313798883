#pragma once
// The objects of a cluster that a decision about a pod reads, and the scheduler's state made of
// them. For dibs why, which looks once and keeps nothing.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "alloc/features.h"
#include "base/release.h"
#include "base/result.h"
#include "client/client.h"
#include "json/value.h"
#include "scheduler/cluster_state.h"
#include "scheduler/devices.h"
#include "scheduler/profiles.h"

namespace dibs::cli {

struct WhyObjects {
  std::vector<json::Value> nodes;
  std::vector<json::Value> namespaces;
  std::vector<json::Value> pods;
  // resource.k8s.io, in the form of v1; what is of the classic model as in v1alpha2.
  std::vector<json::Value> claims;
  std::vector<json::Value> templates;
  std::vector<json::Value> classes;
  std::vector<json::Value> slices;
  std::vector<json::Value> rules;       // DeviceTaintRules
  std::vector<json::Value> groups;      // PodGroups, in any version
  bool has_groups = false;              // the server has PodGroups
  std::vector<json::Value> composites;  // CompositePodGroups
  bool has_composites = false;          // the server has CompositePodGroups
  /// PersistentVolumes, claims on them, StorageClasses and what drivers say; only where pods have
  /// such volumes.
  std::vector<json::Value> volumes;
  // Of the classic model alone.
  std::vector<json::Value> resource_classes;
  std::vector<json::Value> contexts;  // PodSchedulingContexts
  std::vector<json::Value> claim_parameters;
  std::vector<json::Value> class_parameters;
  /// Deployments and whatever else makes pods; only where asked for.
  std::vector<json::Value> workloads;
  /// Warnings of the namespace in question, as core/v1 has them.
  std::vector<json::Value> events;
  /// What the user may not see, with the server's words: "nodes (… is forbidden …)".
  std::vector<std::string> refused;
  /// Something without which nobody can say where a pod fits: nodes, classes, slices, claims.
  bool blind = false;

  /// Sorts an object in by its kind; others are left out.
  void add(const json::Value& object);
};

/// What is read beside the objects that scheduling needs.
struct FetchScope {
  std::string name_space = {};  // where events are looked for, and all where rights end; "": all
  bool workloads = false;
  bool storage = false;     // CSINodes and so on, whether pods have volumes or not
  bool all_events = false;  // of every namespace
  /// Nodes, devices, claims and pods alone: nothing is to be placed.
  bool inventory = false;
  std::string node_labels = {};  // a selector: only these nodes
};

/// Lists everything, by the newest version of resource.k8s.io that the server has. What may not be
/// listed is named in `refused`; of kinds with namespaces the one in question is tried then.
/// Errors: the server's, naming what was asked for.
Result<WhyObjects> fetch_objects(client::Client& client, const FetchScope& scope);

/// Devices for the claim come from its driver, not from slices.
bool is_classic(const json::Value& claim);

/// Null: none.
const json::Value* find_object(const std::vector<json::Value>& objects, std::string_view name_space,
                               std::string_view name);

/// How pods are placed in the cluster, and what time it is.
struct WhyWorld {
  WhyObjects objects;
  scheduler::Configuration configuration;
  alloc::Features features = alloc::Features::all();
  int release = kNewestRelease;
  Time now{};

  /// Null: no profile has the name.
  const scheduler::Profile* profile(std::string_view name) const;
};

struct WhyState {
  WhyState(const alloc::Features& features, int release);
  scheduler::ClusterState cluster;
  scheduler::PodGroups groups;
  scheduler::Devices devices;
};

/// `without`: as if this pod were not there yet, and the claims that it alone uses not allocated.
std::unique_ptr<WhyState> make_state(const WhyWorld& world, const json::Value* without = nullptr);
/// For an attempt to place the pod: a claim made of its extended resources in an earlier one, which
/// would be replaced, is left out.
std::unique_ptr<WhyState> make_state_for(const WhyWorld& world, const json::Value& pod);

}  // namespace dibs::cli
