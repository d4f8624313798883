#pragma once
// What one node can see of the inventory: its pools in the order in which they are tried, and in
// each the devices in theirs.
//
// Of a pool counts the highest generation among the slices that are relevant for the node. When
// these are fewer than the pool says, the other slices of the cluster are looked at: a higher
// generation there makes the pool obsolete, a wrong number makes it incomplete. A complete pool
// whose names or counters do not add up is invalid. Devices of incomplete and invalid pools are not
// handed out.

#include <cstdint>
#include <string>
#include <vector>

#include "alloc/bits.h"
#include "alloc/inventory.h"
#include "base/result.h"

namespace dibs::alloc {

using Slot = std::uint32_t;

struct PoolView {
  enum class State : std::uint8_t { complete, incomplete, invalid };
  const Pool* pool = nullptr;
  Generation* generation = nullptr;
  State state = State::complete;
  std::string reason;  // why it is invalid
  Slot first = 0;
  Slot count = 0;
};

struct NodeView {
  std::vector<PoolView> pools;
  std::vector<Row> rows;               // by slot
  std::vector<std::uint32_t> pool_of;  // by slot
  Bits away;                           // slots that the node cannot reach; empty: none
  std::uint32_t invalid_pools = 0;
  /// Set when a node selector could not be read: nothing else counts then.
  std::string error;

  /// The NodeSelector that names just this node; made when an allocation first needs it, and then
  /// shared by all.
  mutable json::Value selector;

  bool is_away(Slot slot) const { return away.word_count() != 0 && away.test(slot); }
};

/// A view as the inventory keeps it.
struct CachedView {
  NodeView view;
  Node node;
  std::uint64_t shared_epoch = 0;
  bool stale = true;
};

}  // namespace dibs::alloc
