#pragma once
// Profiles of a scheduler, as KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) has them:
// which plugins judge the pods that name the profile, with which weight and arguments, and the
// timings shared by all profiles.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/features.h"
#include "base/result.h"
#include "base/time.h"
#include "client/leader_election.h"
#include "scheduler/extender_config.h"
#include "scheduler/plugins.h"
#include "scheduler/pod.h"

namespace dibs::scheduler {

struct Score;  // scores/score.h

struct WeightedScore {
  const Score* score = nullptr;
  std::int64_t weight = 1;
};

/// A resource that counts in the scores of resources.
struct ScoredResource {
  enum class Kind : std::uint8_t { cpu, memory, storage, scalar };
  Kind kind = Kind::scalar;
  std::string name;
  std::int64_t weight = 1;

  static ScoredResource of(std::string_view name, std::int64_t weight = 1);
};

/// What a node is worth, by its use in percent; in between it is drawn as lines.
struct ShapePoint {
  std::int64_t use = 0;
  std::int64_t score = 0;
};

/// Arguments of NodeResourcesFit.
struct FitArgs {
  enum class Strategy : std::uint8_t { least_allocated, most_allocated, requested_to_capacity };
  Strategy strategy = Strategy::least_allocated;
  std::vector<ScoredResource> resources = {ScoredResource::of("cpu"), ScoredResource::of("memory")};
  std::vector<ShapePoint> shape;  // of requested_to_capacity
  // Extended resources that need not fit, by name and by what stands before the slash.
  std::vector<std::string> ignored;
  std::vector<std::string> ignored_groups;

  bool ignores(std::string_view resource) const;
};

struct Profile {
  std::string name = "default-scheduler";
  std::array<PluginSet, kPoints> plugins{};  // by Point
  std::vector<WeightedScore> scores;
  /// Of all nodes, so many that can take a pod are compared, but never fewer than 100. 0: 100.
  std::int64_t percentage_to_score = 0;

  // Arguments of plugins.
  FitArgs fit;
  std::vector<ScoredResource> balanced = {ScoredResource::of("cpu"), ScoredResource::of("memory")};
  /// What the required affinity of an assigned pod towards the new one is worth.
  std::int64_t hard_affinity_weight = 1;
  /// Preferences of assigned pods do not count for a pod without such of its own.
  bool ignore_preferred_terms = false;
  /// Of NodeAffinity: what nodes must be for any pod, and what speaks for them.
  std::optional<alloc::NodeSelector> added_affinity;
  std::vector<PreferredNodes> added_preferences;
  /// Of PodTopologySpread, for pods without constraints of their own (owners.h). The system's:
  /// nodes need not have all the labels.
  bool system_spread = true;
  std::vector<SpreadConstraint> spread = system_constraints();
  /// Preemption compares so many nodes, of all those that could help the larger of the two.
  std::int64_t victims_percentage = 0;
  std::int64_t victims_absolute = 100;
  Duration binding_timeout = std::chrono::seconds(600);
  /// Of VolumeBinding: how long volumes may take to be bound.
  Duration volume_timeout = std::chrono::seconds(600);
  /// Of the same: what a node is worth by how much of its storage the pod's volumes would take.
  /// Empty: nothing.
  std::vector<ShapePoint> volume_shape = {{0, 100}, {100, 0}};

  /// All default plugins.
  static Profile standard();
  static std::vector<SpreadConstraint> system_constraints();
  /// Pods may be kept from nodes by the spread that the profile has for them.
  bool spread_refuses() const;
  bool has(Point point, Plugin plugin) const {
    return (plugins[static_cast<std::size_t>(point)] & bit(plugin)) != 0;
  }
  PluginSet filters() const { return plugins[static_cast<std::size_t>(Point::filter)]; }
  bool devices() const { return has(Point::filter, Plugin::dynamic_resources); }
  /// Of a score by its name; 0: the profile does not have it.
  std::int64_t weight(std::string_view score) const;
};

struct Configuration {
  std::vector<Profile> profiles = {Profile::standard()};
  std::vector<ExtenderConfig> extenders = {};
  Duration initial_backoff = std::chrono::seconds(1);
  Duration longest_backoff = std::chrono::seconds(10);
  std::string kubeconfig;  // file; "": wherever the flags say
  bool leader_elect = true;
  client::LeaderElectionOptions election = {.name = "kube-scheduler"};
  /// What was asked for and has no effect here, a sentence each.
  std::vector<std::string> warnings = {};

  /// YAML or JSON. Errors: bad_request, in the words of kube-scheduler, which refuses the same:
  /// what is misspelled, out of range, or names plugins that do not exist or do not belong there.
  /// Also refused is what upstream would do and this scheduler cannot. `gates`: some arguments may
  /// be given only where their features are on.
  static Result<Configuration> parse(std::string_view text, const api::Features& gates);
};

}  // namespace dibs::scheduler
