#pragma once
// A pod as scheduling reads it: decoded once, immutable, shared by queue, state and attempts.
//
// A cluster has many pods and few kinds of them, so what a spec asks for is a PodShape of its own,
// found again by its contents (pod_shapes.h), and a pod adds little more than its object.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "alloc/node.h"
#include "api/merge/selectors.h"
#include "scheduler/resources.h"

namespace dibs::scheduler {

struct Toleration {
  std::string key;
  std::string op;
  std::string value;
  std::string effect;
};

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
};

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

/// A term of pod affinity or anti-affinity: pods of some namespaces by label, and the node label
/// whose equal values mean "the same place".
struct PodTerm {
  std::vector<std::string> namespaces;
  bool has_namespace_selector = false;
  api::LabelSelector namespace_selector;
  api::LabelSelector selector;
  std::string topology_key;
  std::int64_t weight = 0;
  std::string id;  // equal terms have equal ids
};

struct SpreadConstraint {
  std::int64_t max_skew = 1;
  std::int64_t min_domains = 1;
  std::string topology_key;
  bool required = true;  // DoNotSchedule
  api::LabelSelector selector;
  bool honor_affinity = true;
  bool honor_taints = false;
};

struct PreferredNodes {
  std::int64_t weight = 0;
  alloc::NodeSelector selector;
};

/// Of a list of core/v1 PreferredSchedulingTerm.
std::vector<PreferredNodes> read_preferred_nodes(const json::Value& terms);
/// A core/v1 TopologySpreadConstraint of a pod with these labels.
SpreadConstraint read_spread_constraint(const json::Value& source, const json::Value& labels);

struct HostPort {
  std::string ip;
  std::string protocol;
  std::int64_t port = 0;
  bool clashes(const HostPort& other) const;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

struct PodClaimRef {
  std::string name;   // of the entry
  std::string claim;  // name of a ResourceClaim
  std::string template_name;
};

/// What pods of one origin have in common: all that a spec asks of nodes. Made once for as long as
/// a pod of that kind is known; a thousand replicas share it.
struct PodShape {
  std::string scheduler_name;
  Resources requests;
  ScoreRequests score;
  std::vector<HostPort> ports;
  json::Value node_selector;  // labels
  bool has_node_affinity = false;
  alloc::NodeSelector node_affinity;
  /// Names of nodes that every term of the required affinity limits the pod to; DaemonSets do.
  bool names_nodes = false;
  std::vector<std::string> named_nodes;
  std::vector<PreferredNodes> preferred_nodes;
  std::vector<Toleration> tolerations;
  std::vector<PodTerm> affinity;
  std::vector<PodTerm> anti_affinity;
  std::vector<PodTerm> preferred_affinity;  // anti-affinity has negative weights
  std::vector<SpreadConstraint> spread;
  std::vector<PodClaimRef> claims;
  /// What a node must have declared (status.declaredFeatures).
  std::vector<std::string> features;
  /// Of equal shapes equal, claims aside; see Pod::signature().
  std::string signature;

  static PodShape read(std::string_view name_space, const json::Value& labels,
                       const json::Value& spec);
};

class PodShapes;

/// One pod: its shape and what is its own. The views are into `object`.
struct Pod {
  json::Value object;
  std::string key;  // namespace/name
  std::string_view name;
  std::string_view name_space;
  std::string_view uid;
  std::string_view node_name;
  json::Value labels;
  std::shared_ptr<const PodShape> shape;  // never null
  std::int64_t priority = 0;
  bool may_preempt = true;
  bool gated = false;
  bool terminating = false;
  bool finished = false;
  bool claims_volumes = false;  // it has PersistentVolumeClaims as volumes
  std::string group = {};       // namespace/name of its PodGroup; "": none
  bool is_group = false;        // it stands for a whole group in the queue

  Pod() = default;
  Pod(const Pod&) = delete;
  Pod& operator=(const Pod&) = delete;

  static std::shared_ptr<const Pod> read(const json::Value& object, PodShapes& shapes);
  /// The same with a shape that no other pod has.
  static std::shared_ptr<const Pod> read(const json::Value& object);

  std::string_view nominated_node() const;
  /// Pods of equal signature ask for the same of every node; claims are not in it.
  std::string signature() const;
  bool same_signature(const Pod& other) const;
};

using PodPtr = std::shared_ptr<const Pod>;

}  // namespace dibs::scheduler
