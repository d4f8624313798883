#include "alloc/search.h"

#include <algorithm>

#include "alloc/deep.h"
#include "alloc/walk.h"

namespace dibs::alloc {
namespace {

/// On nodes with more devices it pays to look at them only as far as needed.
constexpr Slot kQuickSlots = 512;

/// Whether some request is short of devices whatever the others take.
bool obviously_short(Attempt& attempt) {
  if (attempt.slots() > kQuickSlots) return false;
  const Demand& demand = attempt.demand();
  const std::size_t words = (attempt.slots() + 63) / 64;
  for (const Position& position : demand.positions) {
    bool enough = false;
    for (std::uint32_t a = position.first; a < position.first + position.count; ++a) {
      const Alternative& wanted = demand.alternatives[a];
      std::int64_t found = 0;
      // A fault ends the attempt where it is met; what comes after it does not count.
      if (wanted.all() && !wanted.constraints.empty()) return false;
      for (const BoundConstraint& bound : wanted.constraints) {
        if (bound.derived) return false;
      }
      if (wanted.all()) {
        const std::vector<Slot>& all = attempt.all_of(a);
        found = std::count_if(all.begin(), all.end(),
                              [&](Slot slot) { return attempt.candidate(a, slot); });
        enough = enough || (!all.empty() && found == attempt.count(a));
        continue;
      }
      for (std::size_t w = 0; w < words; ++w) {
        if (attempt.fatal(a, w) != 0) return false;
        found += std::popcount(attempt.candidates(a, w));
      }
      enough = enough || found >= attempt.count(a);
    }
    if (!enough) return true;
  }
  return false;
}

End find_end(Attempt& attempt, const Limits& limits, SearchStats& stats) {
  if (limits.quick_check && obviously_short(attempt)) return End::nothing;
  if (limits.plain_steps == 0) return deep_search(attempt, limits.steps, stats);
  const End end = walk(attempt, limits.plain_steps, stats);
  return end == End::gave_up ? deep_search(attempt, limits.steps, stats) : end;
}

}  // namespace

Answer search(Attempt& attempt, const Limits& limits, SearchStats& stats) {
  switch (find_end(attempt, limits, stats)) {
    case End::found:
      return Answer::allocated;
    case End::fault:
      return Answer::failed;
    case End::gave_up:
      return Answer::undecided;
    case End::nothing:
    case End::too_many:
      break;
  }
  return attempt.view().invalid_pools > 0 ? Answer::node_invalid : Answer::unavailable;
}

namespace {

/// With `share_ids` the allocations are made, too.
Outcome attempt_on(Inventory& inventory, const Node& node, const Demand& demand,
                   const ShareIds* share_ids, const Limits& limits) {
  Outcome made;
  const NodeView& view = inventory.view(node);
  if (!view.error.empty()) {
    made.answer = Answer::failed;
    made.error = view.error;
    return made;
  }
  Attempt attempt(inventory, node, view, demand);
  if (!attempt.prepare()) {
    made.answer = Answer::failed;
    made.error = attempt.error();
    return made;
  }
  made.answer = search(attempt, limits, made.stats);
  if (made.answer == Answer::failed) made.error = attempt.error();
  if (made.answer == Answer::node_invalid) made.error = kInvalidPools;
  if (made.answer != Answer::allocated || share_ids == nullptr) return made;
  Result<std::vector<json::Value>> allocations = make_allocations(attempt, *share_ids);
  if (!allocations.ok()) {
    made.answer = Answer::failed;
    made.error = allocations.error().message();
    return made;
  }
  made.allocations = std::move(allocations).value();
  return made;
}

}  // namespace

Outcome allocate(Inventory& inventory, const Node& node, const Demand& demand,
                 const ShareIds& share_ids, const Limits& limits) {
  return attempt_on(inventory, node, demand, &share_ids, limits);
}

Outcome probe(Inventory& inventory, const Node& node, const Demand& demand, const Limits& limits) {
  return attempt_on(inventory, node, demand, nullptr, limits);
}

}  // namespace dibs::alloc
