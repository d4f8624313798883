#pragma once
// How scheduler and drivers agree on a node for claims of resource.k8s.io/v1alpha2 that controllers
// of drivers allocate.
//
// They talk through a PodSchedulingContext, which has the name of the pod and belongs to it. The
// scheduler proposes in its spec: nodes that could take the pod (potentialNodes), and the one that
// it wants (selectedNode). Drivers answer in its status, claim by claim, which of these nodes are
// unsuitable, and allocate for the selected one.
//
//     scheduler                         drivers
//     potentialNodes ────────────────▶  unsuitableNodes of their claims
//     selectedNode   ────────────────▶  allocation of their claims
//     reservation, binding, end of the context
//
// A pod with one such claim and nothing else to look for selects at once: there is nobody to
// disagree. Otherwise a node is selected when every driver has answered, so that no driver
// allocates where another cannot. The selected node stands until a driver refuses it or the pod
// cannot run there any more; moving it would only set one driver against another. Nodes that were
// asked about stay in the list while there is room, for what is asked about no more is forgotten;
// and other nodes are asked about only when none of these will do (attempt.h).
//
// Everything here is a function of its arguments: what to write and what to tell the pod.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/release.h"
#include "json/value.h"
#include "runtime/runtime.h"
#include "scheduler/reasons.h"

namespace dibs::scheduler {

// Newer releases than 1.30 handle claims of v1alpha2 as that one does.

/// 1.27: a claim made from a template is called POD-ENTRY, pods are tried before their claims are
/// there, and several things are told in other words.
inline constexpr bool is_early(int release) { return release <= 27; }
/// Releases of v1alpha2: a profile without DynamicResources binds pods as if they had no claims,
/// and every pod without a node is told what was found to deallocate.
inline constexpr bool is_classic_release(int release) { return release <= 30; }

inline constexpr std::size_t kMostPotentialNodes = 128;

/// The spec of a context.
struct Proposal {
  std::string selected_node = {};
  std::vector<std::string> potential_nodes = {};  // sorted

  static Proposal read(const json::Value& context);
  json::Value to_json() const;
  friend bool operator==(const Proposal&, const Proposal&) = default;
};

/// What a driver said about the claim of this entry of the pod; null while it has not.
const json::Value* answer_of(const json::Value& context, std::string_view entry);

/// Where a pod stands.
struct Talk {
  Proposal standing;      // null context: empty
  std::size_t asked = 0;  // claims that drivers have to allocate
  std::size_t heard = 0;  // of these, answered
  bool searches = false;  // the pod has claims, too, that the scheduler allocates
  std::string chosen;     // node
  /// Nodes that could take the pod, the chosen one among them.
  std::vector<std::string> candidates;
  /// Nodes that were asked about and are still there.
  std::vector<std::string> known;
};

/// What follows for the pod, which waits in any case.
struct Step {
  /// To be written into the context; none: what stands is right.
  std::optional<Proposal> propose;
  /// A node is selected, and it is for the drivers to allocate; else to say which nodes would do.
  bool selected = false;
};

Step negotiate(const Talk& talk, runtime::Random& random);

/// What the pod is told, in the words of the release.
Failure told(const Step& step, int release);

/// The body of a new context.
json::Value make_context(const json::Value& pod, const Proposal& proposal, int release);

}  // namespace dibs::scheduler
