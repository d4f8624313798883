#include "runtime/real_runtime.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <unordered_map>

#include "base/mutex.h"
#include "runtime/thread_pool.h"

namespace dibs::runtime {

namespace {

class SystemClock : public Clock {
 public:
  Time now() const override {
    return {
        std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch())
            .count()};
  }
  Duration steady() const override {
    return std::chrono::duration_cast<Duration>(
        std::chrono::steady_clock::now().time_since_epoch());
  }
};

class SystemRandom : public Random {
 public:
  void fill(std::span<std::uint8_t> bytes) override {
    thread_local Buffer buffer;
    if (bytes.size() > buffer.bytes.size()) {
      read_entropy(bytes);
      return;
    }
    if (bytes.size() > buffer.bytes.size() - buffer.used) {
      read_entropy(buffer.bytes);
      buffer.used = 0;
    }
    std::memcpy(bytes.data(), buffer.bytes.data() + buffer.used, bytes.size());
    // What was handed out must not be found here again, it may be a key.
    std::memset(buffer.bytes.data() + buffer.used, 0, bytes.size());
    buffer.used += bytes.size();
  }

 private:
  struct Buffer {
    std::array<std::uint8_t, 256> bytes{};
    std::size_t used = 256;
  };

  static void read_entropy(std::span<std::uint8_t> bytes) {
    while (!bytes.empty()) {
      ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) std::abort();  // going on with predictable identities would be worse
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
  }
};

/// A thread that hands due timers to an executor, and wakes the pool's stall check.
class TimerThread : public Timers {
 public:
  TimerThread(const Clock& clock, Duration stall) : clock_(clock), stall_(stall) {
    thread_ = std::thread([this] { run(); });
  }

  ~TimerThread() override { stop(); }

  void attach(ThreadPool& pool) { pool_ = &pool; }

  void stop() {
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  TimerId after(Duration delay, std::function<void()> task) override {
    const MutexLock lock(mutex_);
    Duration deadline = clock_.steady() + std::max(delay, Duration::zero());
    TimerId id = ++last_id_;
    bool first = waiting_.empty() || deadline < waiting_.begin()->first.first;
    waiting_.emplace(std::pair(deadline, id), std::move(task));
    deadlines_.emplace(id, deadline);
    if (first) wake_.notify_all();
    return id;
  }

  bool cancel(TimerId id) override {
    std::function<void()> dropped;  // destroyed after the lock: what it holds may call us
    const MutexLock lock(mutex_);
    if (auto due = due_.find(id); due != due_.end()) {
      dropped = std::move(due->second);
      due_.erase(due);
      return true;
    }
    auto found = deadlines_.find(id);
    if (found == deadlines_.end()) return false;
    auto entry = waiting_.find(std::pair(found->second, id));
    dropped = std::move(entry->second);
    waiting_.erase(entry);
    deadlines_.erase(found);
    return true;
  }

  void watch_pool() {
    const MutexLock lock(mutex_);
    check_at_ = clock_.steady() + stall_;
    wake_.notify_all();
  }

 private:
  void run() {
    MutexLock lock(mutex_);
    while (!stopping_) {
      Duration now = clock_.steady();
      if (now >= check_at_) {
        check_at_ = Duration::max();
        lock.unlock();
        bool again = pool_->check_stall();
        lock.lock();
        if (again) check_at_ = std::min(check_at_, now + stall_);
        continue;
      }
      if (!waiting_.empty() && waiting_.begin()->first.first <= now) {
        auto entry = waiting_.extract(waiting_.begin());
        TimerId id = entry.key().second;
        deadlines_.erase(id);
        due_.emplace(id, std::move(entry.mapped()));
        lock.unlock();
        pool_->post([this, id] { run_due(id); });
        lock.lock();
        continue;
      }
      Duration next = check_at_;
      if (!waiting_.empty()) next = std::min(next, waiting_.begin()->first.first);
      if (next == Duration::max()) {
        wake_.wait(lock);
      } else {
        wake_.wait_for(lock, next - now);
      }
    }
  }

  void run_due(TimerId id) {
    std::function<void()> task;
    {
      const MutexLock lock(mutex_);
      auto found = due_.find(id);
      if (found == due_.end()) return;
      task = std::move(found->second);
      due_.erase(found);
    }
    task();
  }

  const Clock& clock_;
  const Duration stall_;
  ThreadPool* pool_ = nullptr;
  Mutex mutex_;
  CondVar wake_;
  std::map<std::pair<Duration, TimerId>, std::function<void()>> waiting_ DIBS_GUARDED_BY(mutex_);
  std::unordered_map<TimerId, Duration> deadlines_ DIBS_GUARDED_BY(mutex_);
  std::unordered_map<TimerId, std::function<void()>> due_
      DIBS_GUARDED_BY(mutex_);  // posted, not yet begun
  TimerId last_id_ DIBS_GUARDED_BY(mutex_) = 0;
  Duration check_at_ DIBS_GUARDED_BY(mutex_) = Duration::max();
  bool stopping_ DIBS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

ThreadPool::Options pool_options(const RealRuntimeOptions& options) {
  std::size_t base = options.base_threads;
  if (base == 0) base = std::max(2u, std::thread::hardware_concurrency());
  base = std::min(base, options.max_threads);
  constexpr int kPatience = 5;
  return {base, options.max_threads, options.idle_timeout, kPatience};
}

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

Random& system_random() {
  static SystemRandom random;
  return random;
}

struct RealRuntime::State {
  explicit State(const RealRuntimeOptions& options)
      : timers(system_clock(), options.stall),
        pool(pool_options(options), [this] { timers.watch_pool(); }),
        runtime{system_clock(), system_random(), timers, pool} {
    timers.attach(pool);
  }

  ~State() { stop(); }

  void stop() {
    timers.stop();
    // Queued tasks may still cancel some.
    pool.stop();
  }

  TimerThread timers;
  ThreadPool pool;
  Runtime runtime;
};

RealRuntime::RealRuntime(const RealRuntimeOptions& options)
    : state_(std::make_unique<State>(options)) {}
RealRuntime::~RealRuntime() = default;

Runtime& RealRuntime::runtime() { return state_->runtime; }
void RealRuntime::stop() { state_->stop(); }

std::size_t RealRuntime::thread_count() const { return state_->pool.thread_count(); }

}  // namespace dibs::runtime
