#include "client/work_queue.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/mutex.h"

namespace dibs::client {

namespace {

struct QueueMetrics {
  QueueMetrics(metrics::Registry& registry, const std::string& name)
      : adds(registry.counter("workqueue_adds_total", "Keys added to a queue.", {"name"})
                 .with({name})),
        depth(
            registry.gauge("workqueue_depth", "Keys that wait in a queue.", {"name"}).with({name})),
        retries(registry.counter("workqueue_retries_total", "Keys that came back.", {"name"})
                    .with({name})),
        waited(registry
                   .histogram("workqueue_queue_duration_seconds",
                              "How long a key waited in a queue.",
                              metrics::exponential_bounds(1e-8, 10, 12), {"name"})
                   .with({name})),
        worked(registry
                   .histogram("workqueue_work_duration_seconds", "How long a key was worked on.",
                              metrics::exponential_bounds(1e-8, 10, 12), {"name"})
                   .with({name})) {}

  metrics::Counter& adds;
  metrics::Gauge& depth;
  metrics::Counter& retries;
  metrics::Histogram& waited;
  metrics::Histogram& worked;
};

}  // namespace

struct WorkQueue::State : std::enable_shared_from_this<WorkQueue::State> {
  State(runtime::Runtime& world, WorkQueueOptions how, LongWork what)
      : runtime(world), options(std::move(how)), work(std::move(what)), tokens(options.burst) {
    if (options.metrics != nullptr) metrics.emplace(*options.metrics, options.name);
  }

  struct Waiting {
    Duration due;  // on the steady clock
    runtime::TimerId timer;
  };

  runtime::Runtime& runtime;
  const WorkQueueOptions options;
  const LongWork work;
  std::optional<QueueMetrics> metrics;
  Gate gate;

  struct Ready {
    std::string key;
    Duration since;
  };

  mutable Mutex mutex;
  std::deque<Ready> ready DIBS_GUARDED_BY(mutex);
  /// To be worked on: in `ready`, or running and added again.
  std::unordered_set<std::string> dirty DIBS_GUARDED_BY(mutex);
  std::unordered_set<std::string> running DIBS_GUARDED_BY(mutex);
  std::unordered_map<std::string, Waiting> waiting DIBS_GUARDED_BY(mutex);
  std::unordered_map<std::string, unsigned> failed DIBS_GUARDED_BY(mutex);
  unsigned workers DIBS_GUARDED_BY(mutex) = 0;
  bool stopped DIBS_GUARDED_BY(mutex) = false;
  double tokens DIBS_GUARDED_BY(mutex);
  Duration refilled DIBS_GUARDED_BY(mutex){0};

  void add(const std::string& key) {
    {
      const MutexLock lock(mutex);
      if (stopped || !dirty.insert(key).second) return;
      if (metrics) metrics->adds.add();
      if (running.contains(key)) return;
      make_ready(key);
      if (workers >= options.concurrency) return;
      ++workers;
    }
    runtime.executor.post([self = shared_from_this()] { self->run(); });
  }

  void make_ready(const std::string& key) DIBS_REQUIRES(mutex) {
    ready.push_back({key, runtime.clock.steady()});
    tell_depth();
  }

  void tell_depth() DIBS_REQUIRES(mutex) {
    if (metrics) metrics->depth.set(static_cast<double>(ready.size()));
  }

  void add_after(const std::string& key, Duration delay) {
    if (delay.count() <= 0) return add(key);
    const MutexLock lock(mutex);
    if (stopped) return;
    const Duration due = runtime.clock.steady() + delay;
    if (const auto found = waiting.find(key); found != waiting.end()) {
      if (found->second.due <= due) return;
      runtime.timers.cancel(found->second.timer);
      waiting.erase(found);
    }
    const std::weak_ptr<State> weak = weak_from_this();
    const auto timer = runtime.timers.after(delay, [weak, key, due] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      {
        const MutexLock inner(self->mutex);
        const auto found = self->waiting.find(key);
        if (found == self->waiting.end() || found->second.due != due) return;
        self->waiting.erase(found);
      }
      self->add(key);
    });
    waiting.emplace(key, Waiting{due, timer});
  }

  /// How long this retry waits for its token.
  Duration take_token() DIBS_REQUIRES(mutex) {
    if (options.retries_per_second <= 0) return Duration(0);
    const Duration now = runtime.clock.steady();
    const double passed = std::chrono::duration<double>(now - refilled).count();
    tokens = std::min<double>(options.burst, tokens + passed * options.retries_per_second);
    refilled = now;
    tokens -= 1;
    if (tokens >= 0) return Duration(0);
    return std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(-tokens / options.retries_per_second));
  }

  void add_rate_limited(const std::string& key) {
    Duration delay;
    {
      const MutexLock lock(mutex);
      if (stopped) return;
      if (metrics) metrics->retries.add();
      const unsigned times = failed[key]++;
      delay = options.first_delay;
      for (unsigned i = 0; i < times && delay < options.longest_delay; ++i) delay *= 2;
      delay = std::max(std::min(delay, options.longest_delay), take_token());
    }
    add_after(key, delay);
  }

  /// One key, then back to the executor, so that others get their turn.
  void run() {
    GateEntry inside(gate);
    if (!inside) return;
    std::string key;
    {
      const MutexLock lock(mutex);
      if (ready.empty()) {
        --workers;
        return;
      }
      key = std::move(ready.front().key);
      if (metrics) metrics->waited.observe(runtime.clock.steady() - ready.front().since);
      ready.pop_front();
      tell_depth();
      dirty.erase(key);
      running.insert(key);
    }
    work(key, [self = shared_from_this(), key, began = runtime.clock.steady()](WorkOutcome done) {
      if (self->metrics) self->metrics->worked.observe(self->runtime.clock.steady() - began);
      self->finish(key, done);
    });
  }

  void finish(const std::string& key, WorkOutcome outcome) {
    {
      const MutexLock lock(mutex);
      running.erase(key);
      if (outcome.kind != WorkOutcome::Kind::retry) failed.erase(key);
      if (dirty.contains(key)) make_ready(key);
    }
    if (outcome.kind == WorkOutcome::Kind::retry) add_rate_limited(key);
    if (outcome.kind == WorkOutcome::Kind::again_after) add_after(key, outcome.after);
    {
      const MutexLock lock(mutex);
      if (ready.empty()) {
        --workers;
        return;
      }
    }
    runtime.executor.post([self = shared_from_this()] { self->run(); });
  }
};

WorkQueue::WorkQueue(runtime::Runtime& runtime, WorkQueueOptions options, Work work)
    : WorkQueue(
          runtime, std::move(options),
          [work = std::move(work)](const std::string& key, const Done& done) { done(work(key)); }) {
}

WorkQueue::WorkQueue(runtime::Runtime& runtime, WorkQueueOptions options, LongWork work)
    : state_(std::make_shared<State>(runtime, std::move(options), std::move(work))) {}

WorkQueue::~WorkQueue() { stop(); }

void WorkQueue::add(const std::string& key) { state_->add(key); }
void WorkQueue::add_after(const std::string& key, Duration delay) { state_->add_after(key, delay); }
void WorkQueue::add_rate_limited(const std::string& key) { state_->add_rate_limited(key); }

void WorkQueue::forget(const std::string& key) {
  const MutexLock lock(state_->mutex);
  state_->failed.erase(key);
}

unsigned WorkQueue::failures(const std::string& key) const {
  const MutexLock lock(state_->mutex);
  const auto found = state_->failed.find(key);
  return found == state_->failed.end() ? 0 : found->second;
}

std::size_t WorkQueue::size() const {
  const MutexLock lock(state_->mutex);
  return state_->ready.size();
}

std::size_t WorkQueue::delayed() const {
  const MutexLock lock(state_->mutex);
  return state_->waiting.size();
}

std::shared_ptr<Gate> WorkQueue::gate() const { return {state_, &state_->gate}; }

void WorkQueue::stop() {
  {
    const MutexLock lock(state_->mutex);
    state_->stopped = true;
    state_->ready.clear();
    state_->tell_depth();
    state_->dirty.clear();
    for (const auto& [key, entry] : state_->waiting) state_->runtime.timers.cancel(entry.timer);
    state_->waiting.clear();
  }
  state_->gate.close();
}

}  // namespace dibs::client
