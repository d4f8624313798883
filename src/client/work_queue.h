#pragma once
// Keys waiting to be worked on: each at most once in the queue, and never worked on twice at a
// time.
//
// A key added while it is being worked on is worked on again afterwards. Failures come back with a
// delay that doubles per key; the whole queue's retries are bounded by a token bucket too, so that
// a thousand failing keys do not become a storm.
//
// Work runs on the runtime's executor, at most `concurrency` keys at once. It may go on after its
// function has returned, waiting for an answer without a thread. Thread-safe.

#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "client/gate.h"
#include "runtime/runtime.h"

namespace dibs::client {

struct WorkQueueOptions {
  unsigned concurrency = 1;
  Duration first_delay = std::chrono::milliseconds(5);
  Duration longest_delay = std::chrono::seconds(1000);
  /// Retries per second over all keys, and how many may come at once; 0: no such bound.
  double retries_per_second = 10;
  unsigned burst = 100;
  /// Under the names that Kubernetes has for queues of controllers, with the label `name`; null:
  /// nothing is counted. Must outlive the queue.
  metrics::Registry* metrics = nullptr;
  std::string name = {};
};

/// What became of a key.
struct WorkOutcome {
  enum class Kind : std::uint8_t { done, retry, again_after };
  Kind kind = Kind::done;
  Duration after{0};

  /// The delay of later failures starts over.
  static WorkOutcome done() { return {}; }
  static WorkOutcome retry() { return {Kind::retry, Duration(0)}; }
  /// Not a failure: look again then.
  static WorkOutcome again_after(Duration delay) { return {Kind::again_after, delay}; }
};

class WorkQueue {
 public:
  using Work = std::function<WorkOutcome(const std::string& key)>;
  /// Told once, by any thread; until then the key counts as being worked on.
  using Done = std::function<void(WorkOutcome outcome)>;
  /// What it does after returning it does behind gate().
  using LongWork = std::function<void(const std::string& key, Done done)>;

  /// `runtime` must outlive it.
  WorkQueue(runtime::Runtime& runtime, WorkQueueOptions options, Work work);
  WorkQueue(runtime::Runtime& runtime, WorkQueueOptions options, LongWork work);
  /// As stop().
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(const std::string& key);
  /// The earlier of two delays of one key counts.
  void add_after(const std::string& key, Duration delay);
  /// With the delay the key has earned by its failures.
  void add_rate_limited(const std::string& key);
  void forget(const std::string& key);
  unsigned failures(const std::string& key) const;

  /// Keys ready, delayed ones not counted.
  std::size_t size() const;
  std::size_t delayed() const;

  /// Closed by stop(). Outlives the queue.
  std::shared_ptr<Gate> gate() const;

  /// Drops what waits. No work runs when it returns, except one that called it.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::client
