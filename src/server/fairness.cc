#include "server/fairness.h"

#include <algorithm>
#include <utility>

namespace dibs::server {
namespace {

/// A quarter of the time that a request has.
constexpr Duration kLongestWait = std::chrono::seconds(15);
constexpr Duration kSweep = std::chrono::seconds(1);

unsigned total_shares() {
  unsigned sum = 0;
  for (const PriorityLevel& level : priority_levels()) sum += level.shares;
  return sum;
}

/// Rounded up, so that each level has one at least.
unsigned part_of(unsigned seats, const PriorityLevel& level) {
  const unsigned shares = total_shares();
  return (seats * level.shares + shares - 1) / shares;
}

double seconds(Duration time) { return static_cast<double>(time.count()) / 1e9; }

}  // namespace

Fairness::Level::Level(const PriorityLevel& level, unsigned seats, metrics::Registry& metrics)
    : about(level),
      queues(level, seats),
      executing_requests(metrics
                             .gauge("apiserver_flowcontrol_current_executing_requests",
                                    "Requests that are worked on now.", {"priority_level"})
                             .with({level.name})),
      executing_seats(metrics
                          .gauge("apiserver_flowcontrol_current_executing_seats",
                                 "Seats that are taken now.", {"priority_level"})
                          .with({level.name})),
      waiting_requests(metrics
                           .gauge("apiserver_flowcontrol_current_inqueue_requests",
                                  "Requests that wait for seats now.", {"priority_level"})
                           .with({level.name})) {
  metrics
      .gauge("apiserver_flowcontrol_nominal_limit_seats", "Seats of a priority level.",
             {"priority_level"})
      .with({level.name})
      .set(seats);
}

void Fairness::Level::show() const {
  executing_requests.set(static_cast<double>(executing));
  executing_seats.set(queues.in_use());
  waiting_requests.set(static_cast<double>(queues.waiting()));
}

Fairness::Fairness(runtime::Runtime& runtime, metrics::Registry& metrics, unsigned seats)
    : runtime_(runtime),
      rejected_(metrics.counter("apiserver_flowcontrol_rejected_requests_total",
                                "Requests that were refused with 429.",
                                {"priority_level", "flow_schema", "reason"})),
      dispatched_(metrics.counter("apiserver_flowcontrol_dispatched_requests_total",
                                  "Requests that got seats.", {"priority_level", "flow_schema"})),
      waited_(metrics.histogram("apiserver_flowcontrol_request_wait_duration_seconds",
                                "Time that requests waited for seats.",
                                {0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30},
                                {"priority_level", "flow_schema", "execute"})),
      levels_(make_levels(metrics, seats)) {}

std::vector<std::unique_ptr<Fairness::Level>> Fairness::make_levels(metrics::Registry& metrics,
                                                                    unsigned seats) {
  std::vector<std::unique_ptr<Level>> levels;
  for (const PriorityLevel& level : priority_levels()) {
    levels.push_back(std::make_unique<Level>(level, part_of(seats, level), metrics));
  }
  return levels;
}

void Fairness::enter(const Flow& flow, unsigned seats, std::function<void(Seat)> start,
                     std::function<void()> refused) {
  Level& level = *levels_[flow.level];
  const std::string_view name = level.about.name;
  // What takes more than there is would wait for ever.
  if (level.queues.is_limited()) seats = std::min(seats, level.queues.seats());
  const Duration began = runtime_.clock.steady();
  Waiting waiting;
  waiting.seats = seats;
  waiting.schema = flow.schema;
  waiting.since = began;
  waiting.refuse = std::move(refused);
  waiting.start = [this, at = flow.level, seats, start = std::move(start), schema = flow.schema,
                   name, began] {
    dispatched_.with({name, schema}).add();
    waited_.with({name, schema, "true"}).observe(seconds(runtime_.clock.steady() - began));
    start(seat(at, seats));
  };
  FairQueues::Place place = FairQueues::Place::none;
  {
    const MutexLock lock(mutex_);
    place = level.queues.enter(flow, waiting, !stopped_);
    if (place == FairQueues::Place::seat) ++level.executing;
    if (place == FairQueues::Place::queue) sweep_later();
    level.show();
  }
  if (place == FairQueues::Place::seat) return waiting.start();
  if (place == FairQueues::Place::none) {
    refuse(level, waiting, level.about.queues == 0 ? "concurrency-limit" : "queue-full");
  }
}

Fairness::Seat Fairness::seat(std::size_t level, unsigned seats) {
  return {nullptr, [this, level, seats](void*) { leave(level, seats); }};
}

void Fairness::leave(std::size_t at, unsigned seats) {
  std::vector<Waiting> next;
  {
    const MutexLock lock(mutex_);
    Level& level = *levels_[at];
    level.queues.leave(seats);
    --level.executing;
    while (auto one = level.queues.next()) {
      ++level.executing;
      next.push_back(std::move(*one));
    }
    level.show();
  }
  for (Waiting& one : next) one.start();
}

void Fairness::refuse(const Level& level, const Waiting& waiting, std::string_view why) {
  rejected_.with({level.about.name, waiting.schema, why}).add();
  waited_.with({level.about.name, waiting.schema, "false"})
      .observe(seconds(runtime_.clock.steady() - waiting.since));
  waiting.refuse();
}

/// One timer for all, and none while nobody waits.
void Fairness::sweep_later() {
  if (sweeps_ || stopped_) return;
  sweeps_ = true;
  timer_ = runtime_.timers.after(kSweep, [this] { sweep(); });
}

void Fairness::sweep() {
  std::vector<std::pair<Level*, Waiting>> gone;
  {
    const MutexLock lock(mutex_);
    sweeps_ = false;
    for (const auto& level : levels_) {
      const Duration longest = stopped_ ? Duration(0) : kLongestWait;
      for (Waiting& one : level->queues.withdraw(runtime_.clock.steady() - longest)) {
        gone.emplace_back(level.get(), std::move(one));
      }
      level->show();
      if (level->queues.waiting() > 0) sweep_later();
    }
  }
  for (const auto& [level, waiting] : gone) refuse(*level, waiting, "time-out");
}

void Fairness::stop() {
  runtime::TimerId timer = 0;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    timer = timer_;
  }
  runtime_.timers.cancel(timer);
  sweep();
}

}  // namespace dibs::server
