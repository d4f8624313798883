#pragma once
// Finds a node for every pod that has none.
//
// Life of a pod: an informer brings it; without gates and with its claims there it enters the
// queue. An attempt takes it out, asks the nodes in turn (filters.h), ranks those that can take it
// (scores.h), looks for devices in that order (devices.h), counts pod and devices on the node at
// once and hands the decision to binding.h, while the next attempt goes on. A pod that finds
// nothing gets a condition and an event with the reasons (reasons.h), perhaps victims
// (preemption.h), and waits until something happens that can help it (queue.h).
//
// All of that is one thread of control: a serial executor on the runtime. Nothing in it waits.

#include <functional>
#include <memory>
#include <string>

#include "alloc/features.h"
#include "api/schema/features.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "client/client.h"
#include "runtime/runtime.h"
#include "scheduler/negotiation.h"
#include "scheduler/profiles.h"

namespace dibs::scheduler {

struct Options {
  Configuration configuration = {};
  alloc::Features features = alloc::Features::all();
  int release = kNewestRelease;  // 30 for 1.30: whose words and ways are used
  /// The gate DynamicResourceAllocation; off: no profile has the plugin DynamicResources.
  bool claims = true;
  /// Pods of a PodGroup are placed together (the gate GenericWorkload), where the server has them.
  bool groups = true;
  /// Groups of groups as well (the gate CompositePodGroup), where the server has them.
  bool composites = true;
  /// The gates DRADeviceTaints and DRADeviceTaintRules.
  bool taint_rules = true;
  /// The gate NodeDeclaredFeatures, likewise.
  bool declared_features = true;
  /// The gate StorageCapacityScoring; off: volumes speak for no node.
  bool storage_scores = true;
  std::string instance = "dibs";  // this process, in events
  /// A second event, reason Explained, for every pod without a node (explain.h).
  bool explain_events = false;
  /// A way to each extender of the configuration (connect_extenders).
  std::vector<std::shared_ptr<client::Transport>> extender_ways = {};
  /// Null: nothing is counted. Must outlive the scheduler.
  metrics::Registry* metrics = nullptr;
  /// Called with the length of every attempt, one at a time.
  std::function<void(Duration)> attempt = {};
};

/// What gates say about it.
void follow_gates(const api::Features& gates, Options& options);

class Scheduler {
 public:
  /// `client` and `runtime` must outlive it.
  Scheduler(client::Client& client, runtime::Runtime& runtime, Options options);
  /// As stop().
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Again after a stop() is fine.
  void start();
  /// Nothing of it runs when it returns. What was being written may or may not arrive.
  void stop();
  /// Everything is read, attempts have begun.
  bool ready() const;

 private:
  struct Core;
  std::shared_ptr<Core> core() const;

  client::Client& client_;
  runtime::Runtime& runtime_;
  const Options options_;
  mutable Mutex mutex_;
  std::shared_ptr<Core> core_ DIBS_GUARDED_BY(mutex_);  // from start() to stop()
};

}  // namespace dibs::scheduler
