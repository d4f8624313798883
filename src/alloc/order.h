#pragma once
// The order in which Kubernetes goes through a demand: request after request, alternative after
// alternative, device after device. What both searches have in common; they differ in which devices
// of a request they try (`Self::choose`), and in what they look at before.

#include <cstdint>

#include "alloc/attempt.h"

namespace dibs::alloc {

/// How a walk, or a part of it, ended.
enum class End : std::uint8_t {
  found,
  nothing,
  too_many,  // more results than a claim may have; other alternatives may need fewer
  fault,     // Attempt::error() says what
  gave_up,   // too many steps
};

/// `Self` has End choose(alternative, index, slot): takes the devices of an alternative from number
/// `index` on, of those from `slot` on, by means of fill() for the next one.
template <typename Self>
class RequestOrder {
 protected:
  explicit RequestOrder(Attempt& attempt)
      : attempt_(attempt),
        demand_(attempt.demand()),
        end_(static_cast<std::uint32_t>(attempt.demand().positions.size())) {}

  End position(std::uint32_t at) {
    if (at == end_) return End::found;
    const Position& position = demand_.positions[at];
    const End end = position.prioritized ? alternatives(position) : fill(position.first, 0, 0);
    // Devices of another claim, chosen otherwise, may leave this one fewer to take.
    const bool next_claim = at > first_ && demand_.positions[at - 1].claim != position.claim;
    return end == End::too_many && next_claim ? End::nothing : end;
  }

  End fill(std::uint32_t alternative, std::int64_t index, Slot slot) {
    const Alternative& wanted = demand_.alternatives[alternative];
    const std::int64_t count = attempt_.count(alternative);
    if (wanted.all() && count == 0) return End::nothing;
    if (index >= count) return position(wanted.position + 1);
    if (static_cast<std::int64_t>(attempt_.picked_for(wanted.claim)) + count - index >
        static_cast<std::int64_t>(kMostResults)) {
      return End::too_many;
    }
    return static_cast<Self*>(this)->choose(alternative, index, slot);
  }

  Attempt& attempt_;
  const Demand& demand_;
  // Positions that are walked through; the others are as if they were not there.
  std::uint32_t first_ = 0;
  std::uint32_t end_ = 0;

 private:
  End alternatives(const Position& position) {
    bool only_too_many = true;
    for (std::uint32_t a = position.first; a < position.first + position.count; ++a) {
      const End end = fill(a, 0, 0);
      if (end != End::nothing && end != End::too_many) return end;
      if (end == End::nothing) only_too_many = false;
    }
    return only_too_many ? End::too_many : End::nothing;
  }
};

}  // namespace dibs::alloc
