#pragma once
// The queues of one priority level: who waits, and whose turn it is.
//
// A flow may wait in a few of the queues, its hand, and takes the shortest; two flows rarely have
// the same hand, so one that fills its queues leaves the others theirs. Queues take turns by what
// they have been given: each has a virtual time, which moves by the seats of what it started, and
// the one that is furthest behind is next. A queue that was empty begins at the time of the others,
// so that nobody saves up turns.
//
// A data structure: no threads, no clock. Not thread-safe.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "server/flow_schemas.h"

namespace dibs::server {

struct Waiting {
  unsigned seats = 1;
  std::function<void()> start;
  std::function<void()> refuse;
  std::string_view schema = {};
  Duration since = {};  // of a clock that never goes back
};

class FairQueues {
 public:
  /// `seats` that may be taken at once.
  FairQueues(const PriorityLevel& level, unsigned seats);

  /// A seat at once, or a place in a queue of the flow's hand, or neither.
  enum class Place : char { seat, queue, none };
  Place enter(const Flow& flow, Waiting& waiting, bool may_wait = true);
  /// Gives seats back.
  void leave(unsigned seats);
  /// Whose turn it is, where there are seats for it; they are taken.
  std::optional<Waiting> next();
  /// Takes out of the queues what has waited since that time or longer.
  std::vector<Waiting> withdraw(Duration since);

  unsigned seats() const { return seats_; }
  unsigned in_use() const { return in_use_; }
  std::size_t waiting() const { return waiting_; }
  bool is_limited() const { return level_.shares > 0; }

 private:
  struct Queue {
    std::deque<Waiting> items;
    std::uint64_t time = 0;  // virtual
    unsigned seats = 0;      // of all items
  };

  bool has_room(unsigned seats) const { return in_use_ == 0 || in_use_ + seats <= seats_; }
  Queue* shortest_of_hand(const Flow& flow);

  const PriorityLevel& level_;
  const unsigned seats_;
  unsigned in_use_ = 0;
  std::size_t waiting_ = 0;
  std::uint64_t time_ = 0;  // of the queue that started last
  std::vector<Queue> queues_;
};

}  // namespace dibs::server
