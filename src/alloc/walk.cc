#include "alloc/walk.h"

#include <bit>

namespace dibs::alloc {
namespace {

class Walk {
 public:
  Walk(Attempt& attempt, std::uint64_t most_steps, SearchStats& stats)
      : attempt_(attempt), demand_(attempt.demand()), most_steps_(most_steps), stats_(stats) {}

  End position(std::uint32_t at) {
    if (at == demand_.positions.size()) return End::found;
    const Position& position = demand_.positions[at];
    const End end = position.prioritized ? alternatives(position) : fill(position.first, 0, 0);
    // Devices of another claim, chosen otherwise, may leave this one fewer to take.
    const bool next_claim = at > 0 && demand_.positions[at - 1].claim != position.claim;
    return end == End::too_many && next_claim ? End::nothing : end;
  }

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

  /// Takes the devices of an alternative from number `index` on, starting at `slot`.
  End fill(std::uint32_t alternative, std::int64_t index, Slot slot) {
    const Alternative& wanted = demand_.alternatives[alternative];
    const std::int64_t count = attempt_.count(alternative);
    if (wanted.all() && count == 0) return End::nothing;
    if (index >= count) return position(wanted.position + 1);
    if (static_cast<std::int64_t>(attempt_.picked_for(wanted.claim)) + count - index >
        static_cast<std::int64_t>(kMostResults)) {
      return End::too_many;
    }
    if (wanted.all()) {
      const Slot next = attempt_.all_of(alternative)[static_cast<std::size_t>(index)];
      if (!attempt_.candidate(alternative, next)) return End::nothing;
      return try_device(alternative, index, next);
    }
    const std::size_t words = (attempt_.slots() + 63) / 64;
    for (std::size_t w = slot / 64; w < words; ++w) {
      std::uint64_t left = attempt_.candidates(alternative, w) | attempt_.fatal(alternative, w);
      if (w == slot / 64) left &= ~std::uint64_t{0} << (slot % 64);
      left &= ~attempt_.taken_for(alternative).word(w);
      for (; left != 0; left &= left - 1) {
        const auto at =
            static_cast<Slot>(w * 64 + static_cast<std::size_t>(std::countr_zero(left)));
        if (!attempt_.candidate(alternative, at)) {
          if ((attempt_.fatal(alternative, w) >> (at % 64) & 1) != 0) {
            attempt_.explain_fatal(alternative, at);
            return End::fault;
          }
          continue;
        }
        const End end = try_device(alternative, index, at);
        if (end != End::nothing) return end;
      }
    }
    return End::nothing;
  }

  End try_device(std::uint32_t alternative, std::int64_t index, Slot slot) {
    if (stats_.steps++ >= most_steps_) return End::gave_up;
    const Refusal refusal = attempt_.take(alternative, slot);
    if (refusal == Refusal::error) return End::fault;
    if (refusal != Refusal::none) return End::nothing;
    ++stats_.takes;
    const End end = fill(alternative, index + 1, slot + 1);
    if (end != End::found) attempt_.undo();
    return end;
  }

  Attempt& attempt_;
  const Demand& demand_;
  std::uint64_t most_steps_;
  SearchStats& stats_;
};

}  // namespace

End walk(Attempt& attempt, std::uint64_t most_steps, SearchStats& stats) {
  return Walk(attempt, most_steps, stats).position(0);
}

}  // namespace dibs::alloc
