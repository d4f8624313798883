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
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace dibs::server {

/// Two flows of one schema wait in different queues, as a rule.
std::uint64_t flow_hash(std::string_view schema, std::string_view distinguisher);

struct Waiting {
  unsigned seats = 1;
  std::uint64_t flow = 0;
  std::function<void()> start;
  std::function<void()> refuse;
  std::string schema = {};
  Duration since = {};  // of a clock that never goes back
};

class FairQueues {
 public:
  struct Shape {
    unsigned queues = 0;  // 0: nobody can wait
    unsigned hand = 0;
    unsigned length = 0;
    friend bool operator==(const Shape&, const Shape&) = default;
  };
  explicit FairQueues(Shape shape) : shape_(shape) {}

  /// False: the queues of the flow's hand are full.
  bool put(Waiting& waiting);
  /// Seats of whose turn it is; 0: nobody waits.
  unsigned next() const;
  /// Requires that somebody waits.
  Waiting take();
  /// Takes out of the queues what has waited since that time or longer.
  std::vector<Waiting> withdraw(Duration since);
  /// Whoever waits goes on waiting, in the queues of its new hand.
  void reshape(Shape shape);

  std::size_t waiting() const { return waiting_; }
  /// Queues that somebody waits in.
  std::size_t active() const;
  bool has_queues() const { return shape_.queues > 0; }

 private:
  struct Queue {
    std::deque<Waiting> items;
    std::uint64_t time = 0;  // virtual
    unsigned seats = 0;      // of all items
  };

  Queue& shortest_of_hand(std::uint64_t flow);
  void append(Queue& queue, Waiting waiting);
  std::map<std::size_t, Queue>::iterator first();

  Shape shape_;
  std::size_t waiting_ = 0;
  std::uint64_t time_ = 0;               // of the queue that started last
  std::map<std::size_t, Queue> queues_;  // those that are in use
};

}  // namespace dibs::server
