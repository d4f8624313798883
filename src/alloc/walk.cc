#include "alloc/walk.h"

#include <bit>

namespace dibs::alloc {
namespace {

class Walk : public RequestOrder<Walk> {
 public:
  Walk(Attempt& attempt, std::uint64_t most_steps, SearchStats& stats)
      : RequestOrder(attempt), most_steps_(most_steps), stats_(stats) {}

  End run() { return position(0); }

  End choose(std::uint32_t alternative, std::int64_t index, Slot slot) {
    const Alternative& wanted = demand_.alternatives[alternative];
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

 private:
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

  std::uint64_t most_steps_;
  SearchStats& stats_;
};

}  // namespace

End walk(Attempt& attempt, std::uint64_t most_steps, SearchStats& stats) {
  return Walk(attempt, most_steps, stats).run();
}

}  // namespace dibs::alloc
