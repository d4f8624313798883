#include "server/fairness.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace dibs::server {
namespace {

/// A quarter of the time that a request has.
constexpr Duration kLongestWait = std::chrono::seconds(15);
constexpr Duration kSweep = std::chrono::seconds(1);

double seconds(Duration time) { return static_cast<double>(time.count()) / 1e9; }

unsigned percent_of(unsigned number, unsigned percent) {
  return static_cast<unsigned>((std::uint64_t{number} * percent + 50) / 100);
}

metrics::Gauge& gauge(metrics::Registry& metrics, const char* name, const char* help,
                      std::string_view level) {
  return metrics.gauge(cat("apiserver_flowcontrol_", name), help, {"priority_level"}).with({level});
}

}  // namespace

/// Guarded by the mutex of its Fairness, but for what never changes.
struct Fairness::Level {
  Level(const PriorityLevel& level, metrics::Registry& metrics)
      : name(level.name),
        queues({level.queues, level.hand, level.queue_length}),
        executing_requests(
            gauge(metrics, "current_executing_requests", "Requests that are worked on now.", name)),
        executing_seats(
            gauge(metrics, "current_executing_seats", "Seats that are taken now.", name)),
        waiting_requests(
            gauge(metrics, "current_inqueue_requests", "Requests that wait for seats now.", name)),
        nominal_seats(gauge(metrics, "nominal_limit_seats", "Seats of a priority level.", name)),
        lower_seats(gauge(metrics, "lower_limit_seats",
                          "Seats of a priority level that it does not lend.", name)),
        upper_seats(gauge(metrics, "upper_limit_seats",
                          "Seats that a priority level may have with what it borrows.", name)) {}

  const std::string name;
  bool limited = true;
  bool is_going = false;  // nobody enters any more
  unsigned nominal = 0;
  unsigned lower = 0;
  unsigned upper = 0;
  unsigned in_use = 0;
  std::size_t executing = 0;  // requests
  std::uint64_t dispatched = 0;
  std::uint64_t rejected = 0;
  std::uint64_t timed_out = 0;
  FairQueues queues;
  metrics::Gauge& executing_requests;
  metrics::Gauge& executing_seats;
  metrics::Gauge& waiting_requests;
  metrics::Gauge& nominal_seats;
  metrics::Gauge& lower_seats;
  metrics::Gauge& upper_seats;

  /// Taken, or kept for it. What is not limited keeps what it does not lend.
  unsigned reserves() const { return limited ? std::max(in_use, lower) : lower; }
  bool is_idle() const { return executing == 0 && queues.waiting() == 0; }

  void show() const {
    executing_requests.set(static_cast<double>(executing));
    executing_seats.set(in_use);
    waiting_requests.set(static_cast<double>(queues.waiting()));
  }
};

/// The table of this moment with its levels.
struct Fairness::Setup {
  FlowTable table;
  std::vector<LevelPtr> levels;  // as the table has them
};

const PriorityLevel& Fairness::Flow::level() const {
  return setup_->table.levels()[schema_->level];
}

Fairness::Fairness(runtime::Runtime& runtime, metrics::Registry& metrics, unsigned seats)
    : runtime_(runtime),
      metrics_(metrics),
      seats_(seats),
      rejected_(metrics.counter("apiserver_flowcontrol_rejected_requests_total",
                                "Requests that were refused with 429.",
                                {"priority_level", "flow_schema", "reason"})),
      dispatched_(metrics.counter("apiserver_flowcontrol_dispatched_requests_total",
                                  "Requests that got seats.", {"priority_level", "flow_schema"})),
      waited_(metrics.histogram("apiserver_flowcontrol_request_wait_duration_seconds",
                                "Time that requests waited for seats.",
                                {0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30},
                                {"priority_level", "flow_schema", "execute"})) {
  configure(FlowTable::initial());
}

Fairness::~Fairness() { stop(); }

void Fairness::configure(FlowTable table) {
  std::vector<Waiting> next;
  {
    const MutexLock lock(mutex_);
    set_limits(table);
    auto setup = std::make_shared<Setup>(Setup{std::move(table), {}});
    for (const PriorityLevel& level : setup->table.levels()) {
      setup->levels.push_back(*std::find_if(
          levels_.begin(), levels_.end(),
          [&](const LevelPtr& one) { return !one->is_going && one->name == level.name; }));
    }
    setup_ = std::move(setup);
    next = pick();
  }
  for (Waiting& one : next) one.start();
}

void Fairness::set_limits(const FlowTable& table) {
  std::uint64_t shares = 0;
  for (const PriorityLevel& level : table.levels()) shares += level.shares;
  for (const LevelPtr& level : levels_) level->is_going = true;
  total_ = 0;
  for (const PriorityLevel& about : table.levels()) {
    LevelPtr known;
    for (const LevelPtr& one : levels_) {
      if (one->name == about.name) known = one;
    }
    if (!known) {
      known = std::make_shared<Level>(about, metrics_);
      levels_.push_back(known);
    }
    Level& level = *known;
    level.is_going = false;
    level.limited = about.limited;
    // Rounded up, so that each level with a share has one at least.
    level.nominal =
        shares == 0
            ? 0
            : static_cast<unsigned>((std::uint64_t{seats_} * about.shares + shares - 1) / shares);
    level.lower = level.nominal - percent_of(level.nominal, about.lendable);
    total_ += level.nominal;
    level.queues.reshape({about.queues, about.hand, about.queue_length});
  }
  for (const PriorityLevel& about : table.levels()) {
    const auto level = std::find_if(levels_.begin(), levels_.end(),
                                    [&](const LevelPtr& one) { return one->name == about.name; });
    (*level)->upper =
        about.borrowing
            ? std::min(total_, (*level)->nominal + percent_of((*level)->nominal, *about.borrowing))
            : total_;
  }
  reserved_ = 0;
  const auto show_limits = [](const Level& level) {
    level.nominal_seats.set(level.is_going ? 0 : level.nominal);
    level.lower_seats.set(level.is_going ? 0 : level.lower);
    level.upper_seats.set(level.is_going ? 0 : level.upper);
  };
  for (const LevelPtr& level : levels_) show_limits(*level);
  std::erase_if(levels_, [](const LevelPtr& level) { return level->is_going && level->is_idle(); });
  for (const LevelPtr& level : levels_) {
    if (level->is_going) {
      // With one seat, and what is left over, it comes to its end.
      level->nominal = level->lower = 1;
      level->upper = std::max(1U, total_);
    }
    reserved_ += level->reserves();
  }
}

Fairness::Flow Fairness::flow_of(const auth::UserInfo& user, const RequestInfo& info) const {
  Flow flow;
  {
    const MutexLock lock(mutex_);
    flow.setup_ = setup_;
  }
  flow.schema_ = &flow.setup_->table.find(user, info);
  flow.hash_ = flow_hash(flow.schema_->name, flow.schema_->distinguisher(user, info));
  return flow;
}

/// What is kept for a level is its own at any moment; more may be taken while enough is left to
/// keep everybody else's.
bool Fairness::may_start(const Level& level, unsigned seats) const {
  if (!level.limited) return true;
  const unsigned after = level.in_use + seats;
  if (after <= level.lower) return true;
  if (after > level.upper) return false;
  return reserved_ - level.reserves() + after <= total_;
}

void Fairness::take(Level& level, unsigned seats) {
  reserved_ -= level.reserves();
  level.in_use += seats;
  reserved_ += level.reserves();
  ++level.executing;
  ++level.dispatched;
}

std::vector<Waiting> Fairness::pick() {
  std::vector<Waiting> out;
  const auto start_one = [&](bool borrows) DIBS_REQUIRES(mutex_) {
    for (const LevelPtr& level : levels_) {
      const unsigned seats = level->queues.next();
      if (seats == 0 || (level->in_use + seats > level->nominal) != borrows) continue;
      if (!may_start(*level, seats)) continue;
      take(*level, seats);
      out.push_back(level->queues.take());
      level->show();
      return true;
    }
    return false;
  };
  while (start_one(false) || start_one(true)) {
  }
  return out;
}

Fairness::LevelPtr Fairness::level_now(const LevelPtr& level) const {
  if (!level->is_going) return level;
  LevelPtr last;
  for (const LevelPtr& one : levels_) {
    if (one->is_going) continue;
    if (one->name == level->name) return one;
    if (one->name == "catch-all") last = one;  // every table has it
  }
  return last;
}

void Fairness::enter(const Flow& flow, unsigned seats, std::function<void(Seat)> start,
                     std::function<void()> refused) {
  LevelPtr level = flow.setup_->levels[flow.schema_->level];
  const std::string schema = flow.schema_->name;
  const Duration began = runtime_.clock.steady();
  Waiting waiting;
  waiting.flow = flow.hash_;
  waiting.schema = schema;
  waiting.since = began;
  waiting.refuse = std::move(refused);
  bool starts = false;
  bool waits = false;
  bool has_queues = false;
  {
    const MutexLock lock(mutex_);
    level = level_now(level);
    // What takes more than its level's own would wait for what others may never lend.
    if (level->limited) seats = std::min(seats, std::max(1U, level->nominal));
    waiting.seats = seats;
    waiting.start = [this, level, seats, start = std::move(start), schema, began] {
      dispatched_.with({level->name, schema}).add();
      waited_.with({level->name, schema, "true"}).observe(seconds(runtime_.clock.steady() - began));
      start(seat(level, seats));
    };
    starts = level->queues.waiting() == 0 && may_start(*level, seats);
    if (starts) {
      take(*level, seats);
    } else {
      waits = !stopped_ && level->queues.put(waiting);
      if (waits) sweep_later();
      has_queues = level->queues.has_queues();
    }
    level->show();
  }
  if (starts) return waiting.start();
  if (!waits) refuse(*level, waiting, has_queues ? "queue-full" : "concurrency-limit");
}

Fairness::Seat Fairness::seat(LevelPtr level, unsigned seats) {
  return {nullptr, [this, level = std::move(level), seats](void*) { leave(*level, seats); }};
}

void Fairness::leave(Level& level, unsigned seats) {
  std::vector<Waiting> next;
  {
    const MutexLock lock(mutex_);
    reserved_ -= level.reserves();
    level.in_use -= std::min(level.in_use, seats);
    reserved_ += level.reserves();
    --level.executing;
    next = pick();
    level.show();
    drop_ended();
  }
  for (Waiting& one : next) one.start();
}

void Fairness::drop_ended() {
  std::erase_if(levels_, [&](const LevelPtr& level) DIBS_REQUIRES(mutex_) {
    if (!level->is_going || !level->is_idle()) return false;
    reserved_ -= level->reserves();
    return true;
  });
}

void Fairness::refuse(Level& level, const Waiting& waiting, std::string_view why) {
  {
    const MutexLock lock(mutex_);
    ++(why == "time-out" ? level.timed_out : level.rejected);
  }
  rejected_.with({level.name, waiting.schema, why}).add();
  waited_.with({level.name, waiting.schema, "false"})
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
  std::vector<std::pair<LevelPtr, Waiting>> gone;
  std::vector<Waiting> next;
  {
    const MutexLock lock(mutex_);
    sweeps_ = false;
    for (const LevelPtr& level : levels_) {
      const Duration longest = stopped_ ? Duration(0) : kLongestWait;
      for (Waiting& one : level->queues.withdraw(runtime_.clock.steady() - longest)) {
        gone.emplace_back(level, std::move(one));
      }
      level->show();
    }
    drop_ended();
    // Who waited behind one that wants more seats may fit.
    next = pick();
    for (const LevelPtr& level : levels_) {
      if (level->queues.waiting() > 0) sweep_later();
    }
  }
  for (Waiting& one : next) one.start();
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

std::string Fairness::dump() const {
  std::string out =
      "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, "
      "DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests\n";
  const MutexLock lock(mutex_);
  std::vector<const Level*> sorted;
  for (const LevelPtr& level : levels_) sorted.push_back(level.get());
  std::sort(sorted.begin(), sorted.end(),
            [](const Level* a, const Level* b) { return a->name < b->name; });
  for (const Level* level : sorted) {
    append(out, level->name, ", ", level->queues.active(), ", ",
           level->is_idle() ? "true" : "false", ", ", level->is_going ? "true" : "false", ", ",
           level->queues.waiting(), ", ", level->executing, ", ", level->dispatched, ", ",
           level->rejected, ", ", level->timed_out, ", 0\n");
  }
  return out;
}

}  // namespace dibs::server
