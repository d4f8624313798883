#pragma once
// The order in which Kubernetes goes through a demand: request after request, alternative after
// alternative, device after device. What both searches have in common; they differ in which devices
// of a request they try, and in what they look at before.

#include <bit>
#include <cstdint>
#include <optional>

#include "alloc/attempt.h"
#include "alloc/search.h"

namespace dibs::alloc {

/// How a walk, or a part of it, ended.
enum class End : std::uint8_t {
  found,
  nothing,
  too_many,  // more results than a claim may have; other alternatives may need fewer
  fault,     // Attempt::error() says what
  gave_up,   // too many steps
};

/// `Self` has
///   End choose(alternative, index, slot)    takes the devices of an alternative from number
///   `index`
///                                           on, of those from `slot` on: each_candidate() and
///                                           all()
///   End try_device(alternative, index, slot)    takes one of them and goes on: take()
///   void took(alternative, slot), void gives_back(alternative, slot)    around what take() goes on
///   to
template <typename Self>
class RequestOrder {
 protected:
  RequestOrder(Attempt& attempt, SearchStats& stats)
      : attempt_(attempt),
        demand_(attempt.demand()),
        stats_(stats),
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
        demand_.most_results) {
      return End::too_many;
    }
    return self().choose(alternative, index, slot);
  }

  /// Of an alternative that wants all: its device of this number, without a choice.
  End all(std::uint32_t alternative, std::int64_t index) {
    const Slot next = attempt_.all_of(alternative)[static_cast<std::size_t>(index)];
    if (!attempt_.candidate(alternative, next)) return End::nothing;
    return self().try_device(alternative, index, next);
  }

  /// Hands the devices that the alternative could have, from `from` on, to `look` until it gives an
  /// end: std::optional<End>.
  template <typename Look>
  End each_candidate(std::uint32_t alternative, Slot from, Look look) {
    const std::size_t words = (attempt_.slots() + 63) / 64;
    for (std::size_t w = from / 64; w < words; ++w) {
      const std::uint64_t fatal = attempt_.fatal(alternative, w);
      std::uint64_t left = attempt_.candidates(alternative, w) | fatal;
      if (w == from / 64) left &= ~std::uint64_t{0} << (from % 64);
      left &= ~attempt_.taken_for(alternative).word(w);
      for (; left != 0; left &= left - 1) {
        const int bit = std::countr_zero(left);
        const auto at = static_cast<Slot>(w * 64 + static_cast<std::size_t>(bit));
        if ((fatal >> bit & 1) != 0) {
          attempt_.explain_fatal(alternative, at);
          return End::fault;
        }
        if (const std::optional<End> end = look(at)) return *end;
      }
    }
    return End::nothing;
  }
  /// For `look`: nothing is no end as long as there are others to try.
  static std::optional<End> unless_nothing(End end) {
    return end == End::nothing ? std::nullopt : std::optional(end);
  }

  /// Takes the device and goes on to the next; gives it back where that leads to nothing.
  End take(std::uint32_t alternative, std::int64_t index, Slot slot) {
    const Refusal refusal = attempt_.take(alternative, slot);
    if (refusal == Refusal::error) return End::fault;
    if (refusal != Refusal::none) return End::nothing;
    ++stats_.takes;
    self().took(alternative, slot);
    const End end = fill(alternative, index + 1, slot + 1);
    if (end != End::found) {
      self().gives_back(alternative, slot);
      attempt_.undo();
    }
    return end;
  }

  Attempt& attempt_;
  const Demand& demand_;
  SearchStats& stats_;
  // Positions that are walked through; the others are as if they were not there.
  std::uint32_t first_ = 0;
  std::uint32_t end_ = 0;

 private:
  Self& self() { return *static_cast<Self*>(this); }

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
