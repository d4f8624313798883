#include "client/work_queue.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/mutex.h"

namespace dibs::client {

struct WorkQueue::State : std::enable_shared_from_this<WorkQueue::State> {
  State(runtime::Runtime& world, WorkQueueOptions how, LongWork what)
      : runtime(world), options(how), work(std::move(what)), tokens(how.burst) {}

  struct Waiting {
    Duration due;  // on the steady clock
    runtime::TimerId timer;
  };

  runtime::Runtime& runtime;
  const WorkQueueOptions options;
  const LongWork work;
  Gate gate;

  mutable Mutex mutex;
  std::deque<std::string> ready DIBS_GUARDED_BY(mutex);
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
      if (running.contains(key)) return;
      ready.push_back(key);
      if (workers >= options.concurrency) return;
      ++workers;
    }
    runtime.executor.post([self = shared_from_this()] { self->run(); });
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
      key = std::move(ready.front());
      ready.pop_front();
      dirty.erase(key);
      running.insert(key);
    }
    work(key, [self = shared_from_this(), key](WorkOutcome done) { self->finish(key, done); });
  }

  void finish(const std::string& key, WorkOutcome outcome) {
    {
      const MutexLock lock(mutex);
      running.erase(key);
      if (outcome.kind != WorkOutcome::Kind::retry) failed.erase(key);
      if (dirty.contains(key)) ready.push_back(key);
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
          runtime, options,
          [work = std::move(work)](const std::string& key, const Done& done) { done(work(key)); }) {
}

WorkQueue::WorkQueue(runtime::Runtime& runtime, WorkQueueOptions options, LongWork work)
    : state_(std::make_shared<State>(runtime, options, std::move(work))) {}

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
    state_->dirty.clear();
    for (const auto& [key, entry] : state_->waiting) state_->runtime.timers.cancel(entry.timer);
    state_->waiting.clear();
  }
  state_->gate.close();
}

}  // namespace dibs::client
