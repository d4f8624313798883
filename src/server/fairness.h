#pragma once
// Priority and fairness: how many requests are worked on at once, and whose.
//
// A request takes seats of its priority level (flow_schemas.h) until it is answered; a long list
// takes several. Where there are none it waits its turn (fair_queues.h), for a quarter of a minute
// at most, or is refused with 429 and Retry-After. So whoever opens hundreds of connections waits
// behind himself.
//
// The seats of a level are its share of all. What a level may lend of them, and does not use,
// others may take, up to what they may borrow; the rest is there for it at any moment. A seat that
// is given back goes to whoever has less than his share before it goes to a borrower. Nobody is
// interrupted: what was lent comes back when the borrower is answered.
//
// Not here: what it costs to send answers, the GET of one object, which is answered where it is
// read, streams to nodes, and calls from inside of the process.
//
// Thread-safe. Outlives its seats.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/mutex.h"
#include "runtime/runtime.h"
#include "server/fair_queues.h"
#include "server/flow_schemas.h"

namespace dibs::server {

class Fairness {
  struct Level;
  struct Setup;

 public:
  /// `seats` of all levels together. Begins with the levels that every server has.
  Fairness(runtime::Runtime& runtime, metrics::Registry& metrics, unsigned seats);
  ~Fairness();
  /// Refuses whoever waits, and from then on whoever would have to.
  void stop();

  /// From now on. Whoever waits goes on waiting; a level that is gone ends with its requests.
  void configure(FlowTable table);

  /// Where a request belongs.
  class Flow {
   public:
    const FlowSchema& schema() const { return *schema_; }
    const PriorityLevel& level() const;

   private:
    friend class Fairness;
    std::shared_ptr<const Setup> setup_;
    const FlowSchema* schema_ = nullptr;
    std::uint64_t hash_ = 0;
  };
  Flow flow_of(const auth::UserInfo& user, const RequestInfo& info) const;

  /// Its seats, while it lives.
  using Seat = std::shared_ptr<void>;
  /// Calls `start` with seats, perhaps before this returns, or `refused`; one of them, once.
  void enter(const Flow& flow, unsigned seats, std::function<void(Seat)> start,
             std::function<void()> refused);

  /// The levels as text, a line each, as kube-apiserver shows them.
  std::string dump() const;

 private:
  using LevelPtr = std::shared_ptr<Level>;

  /// Where a request enters that was sorted before: its level may be gone by now.
  LevelPtr level_now(const LevelPtr& level) const DIBS_REQUIRES(mutex_);
  bool may_start(const Level& level, unsigned seats) const DIBS_REQUIRES(mutex_);
  void take(Level& level, unsigned seats) DIBS_REQUIRES(mutex_);
  /// Those who wait and may start now.
  std::vector<Waiting> pick() DIBS_REQUIRES(mutex_);
  Seat seat(LevelPtr level, unsigned seats);
  void leave(Level& level, unsigned seats);
  void set_limits(const FlowTable& table) DIBS_REQUIRES(mutex_);
  /// Forgets levels that are gone and have come to their end.
  void drop_ended() DIBS_REQUIRES(mutex_);
  void sweep_later() DIBS_REQUIRES(mutex_);
  void sweep();
  void refuse(Level& level, const Waiting& waiting, std::string_view why);

  runtime::Runtime& runtime_;
  metrics::Registry& metrics_;
  const unsigned seats_;
  metrics::CounterFamily rejected_;
  metrics::CounterFamily dispatched_;
  metrics::HistogramFamily waited_;
  mutable Mutex mutex_;
  std::shared_ptr<const Setup> setup_ DIBS_GUARDED_BY(mutex_);
  std::vector<LevelPtr> levels_ DIBS_GUARDED_BY(mutex_);  // also those that are going
  unsigned total_ DIBS_GUARDED_BY(mutex_) = 0;            // seats of all levels
  unsigned reserved_ DIBS_GUARDED_BY(mutex_) = 0;         // taken, or kept for their levels
  runtime::TimerId timer_ DIBS_GUARDED_BY(mutex_) = 0;
  bool sweeps_ DIBS_GUARDED_BY(mutex_) = false;
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::server
