#pragma once
// The search: devices for a demand on a node, the same ones that Kubernetes picks.
//
// Kubernetes tries requests in order, alternatives of a request in order, devices in order, and
// takes the first combination that works; a fault met on the way (a selector that fails on a
// device, say) ends it. This search finds that first end of the same walk, but cuts off what
// provably has none; see docs/allocator.md. Work is counted in steps, and beyond a number of them
// it says that it does not know.

#include <cstdint>
#include <string>
#include <vector>

#include "alloc/attempt.h"
#include "alloc/demand.h"
#include "alloc/inventory.h"
#include "alloc/result.h"

namespace dibs::alloc {

struct Limits {
  /// Devices that the plain walk may try before the search for hard cases starts over. Most
  /// attempts end long before that, and cost nothing else.
  std::uint64_t plain_steps = 256;
  /// Whether numbers of candidates are compared before anything else.
  bool quick_check = true;
  /// Devices looked at, bounds computed and states remembered, as a measure of time.
  std::uint64_t steps = 750'000;
};

enum class Answer : std::uint8_t {
  allocated,
  unavailable,   // the node cannot serve the demand as things are
  node_invalid,  // likewise, and a pool of the node is in disorder
  failed,        // the demand or a device is faulty: see the error
  undecided,     // the limit was reached
};

struct SearchStats {
  std::uint64_t steps = 0;
  std::uint64_t takes = 0;  // devices taken and perhaps given back
  bool deep = false;        // the plain walk was not enough
};

struct Outcome {
  Answer answer = Answer::unavailable;
  std::string error;
  std::vector<json::Value> allocations;  // per claim
  SearchStats stats;
};

/// The same without the allocations: whether it would work.
Outcome probe(Inventory& inventory, const Node& node, const Demand& demand,
              const Limits& limits = {});

/// The answer alone; the attempt is prepared, and holds the devices when there are some.
Answer search(Attempt& attempt, const Limits& limits, SearchStats& stats);

/// Says the node-level fault of Answer::node_invalid.
inline constexpr const char* kInvalidPools = "invalid resource pools were encountered";

Outcome allocate(Inventory& inventory, const Node& node, const Demand& demand,
                 const ShareIds& share_ids, const Limits& limits = {});

}  // namespace dibs::alloc
