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
  std::vector<json::Value> rules;  // DeviceTaintRules
  /// PersistentVolumes, claims on them, StorageClasses and what drivers say; only where pods have
  /// such volumes.
  std::vector<json::Value> volumes;
  // Of the classic model alone.
  std::vector<json::Value> resource_classes;
  std::vector<json::Value> contexts;  // PodSchedulingContexts
  std::vector<json::Value> claim_parameters;
  std::vector<json::Value> class_parameters;
  /// Warnings of the namespace in question, as core/v1 has them.
  std::vector<json::Value> events;

  /// Sorts an object in by its kind; others are left out.
  void add(const json::Value& object);
};

/// Lists everything, by the newest version of resource.k8s.io that the server has. Errors: the
/// server's, naming what was asked for.
Result<WhyObjects> fetch_objects(client::Client& client);

/// Warnings in a namespace; none where they may not be seen.
std::vector<json::Value> fetch_warnings(client::Client& client, const std::string& name_space);

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
  scheduler::Devices devices;
};

/// `without`: as if this pod were not there yet, and the claims that it alone uses not allocated.
std::unique_ptr<WhyState> make_state(const WhyWorld& world, const json::Value* without = nullptr);

}  // namespace dibs::cli
