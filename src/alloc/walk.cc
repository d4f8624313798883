#include "alloc/walk.h"

namespace dibs::alloc {
namespace {

class Walk : public RequestOrder<Walk> {
 public:
  Walk(Attempt& attempt, std::uint64_t most_steps, SearchStats& stats)
      : RequestOrder(attempt, stats), most_steps_(most_steps) {}

  End run() { return position(0); }

  End choose(std::uint32_t alternative, std::int64_t index, Slot slot) {
    if (demand_.alternatives[alternative].all()) return all(alternative, index);
    return each_candidate(alternative, slot, [&](Slot at) {
      return unless_nothing(try_device(alternative, index, at));
    });
  }
  End try_device(std::uint32_t alternative, std::int64_t index, Slot slot) {
    return stats_.steps++ >= most_steps_ ? End::gave_up : take(alternative, index, slot);
  }
  void took(std::uint32_t, Slot) {}
  void gives_back(std::uint32_t, Slot) {}

 private:
  std::uint64_t most_steps_;
};

}  // namespace

End walk(Attempt& attempt, std::uint64_t most_steps, SearchStats& stats) {
  return Walk(attempt, most_steps, stats).run();
}

}  // namespace dibs::alloc
