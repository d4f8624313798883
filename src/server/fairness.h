#pragma once
// Priority and fairness: how many requests are worked on at once, and whose.
//
// A request takes seats of its priority level (flow_schemas.h) until it is answered; a long list
// takes several. Where there are none it waits its turn (fair_queues.h), for a quarter of a minute
// at most, or is refused with 429 and Retry-After. So whoever opens hundreds of connections waits
// behind himself. The seats of a level are its share of all; idle ones are not lent.
//
// Not here: what it costs to send answers, the GET of one object, which is answered where it is
// read, streams to nodes, and calls from inside of the process.
//
// Thread-safe. Outlives its seats.

#include <functional>
#include <memory>
#include <vector>

#include "base/metrics.h"
#include "base/mutex.h"
#include "runtime/runtime.h"
#include "server/fair_queues.h"
#include "server/flow_schemas.h"

namespace dibs::server {

class Fairness {
 public:
  /// `seats` of all levels together.
  Fairness(runtime::Runtime& runtime, metrics::Registry& metrics, unsigned seats);
  ~Fairness() { stop(); }
  /// Refuses whoever waits, and from then on whoever would have to.
  void stop();

  /// Its seats, while it lives.
  using Seat = std::shared_ptr<void>;
  /// Calls `start` with seats, perhaps before this returns, or `refused`; one of them, once.
  void enter(const Flow& flow, unsigned seats, std::function<void(Seat)> start,
             std::function<void()> refused);

 private:
  struct Level {
    Level(const PriorityLevel& level, unsigned seats, metrics::Registry& metrics);
    const PriorityLevel& about;
    FairQueues queues;
    std::size_t executing = 0;  // requests
    metrics::Gauge& executing_requests;
    metrics::Gauge& executing_seats;
    metrics::Gauge& waiting_requests;
    void show() const;
  };

  static std::vector<std::unique_ptr<Level>> make_levels(metrics::Registry& metrics,
                                                         unsigned seats);
  Seat seat(std::size_t level, unsigned seats);
  void leave(std::size_t level, unsigned seats);
  void sweep_later() DIBS_REQUIRES(mutex_);
  void sweep();
  void refuse(const Level& level, const Waiting& waiting, std::string_view why);

  runtime::Runtime& runtime_;
  metrics::CounterFamily rejected_;
  metrics::CounterFamily dispatched_;
  metrics::HistogramFamily waited_;
  Mutex mutex_;
  const std::vector<std::unique_ptr<Level>> levels_;  // their state is guarded by the mutex
  runtime::TimerId timer_ DIBS_GUARDED_BY(mutex_) = 0;
  bool sweeps_ DIBS_GUARDED_BY(mutex_) = false;
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::server
