#pragma once
// Pods that wait for a node.
//
// A pod is in one of four places: active (by priority, then age), backing off after a failed
// attempt, parked (nothing can be done until something changes), or gated (not to be tried, by its
// scheduling gates or because a claim is missing). Taken out by pop() it is nobody's until it comes
// back through fail(), park() or remove().
//
// Parked pods stand in groups of equals: what helps one may help all, what does not help the first
// helps none. An event therefore looks at one pod of each group that it could help and wakes just
// that; when this one finds a node, next_of() wakes the next of its group. So an event costs as
// much as there are different pods, not as many as wait.
//
// A pod whose attempt found no node is tried before its backoff ends when nothing else is to do;
// one whose attempt failed by an error waits.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "scheduler/filters.h"
#include "scheduler/pod.h"

namespace dibs::scheduler {

struct QueueOptions {
  Duration initial_backoff = std::chrono::seconds(1);
  Duration longest_backoff = std::chrono::seconds(10);
  /// Parked pods are tried again after so long whatever happens.
  Duration patience = std::chrono::minutes(5);
};

class Queue {
 public:
  explicit Queue(const QueueOptions& options) : options_(options) {}

  /// Called when a pod enters the queue "active", "backoff" or "unschedulable", and why.
  using Entered = std::function<void(const char* queue, const char* why)>;
  void on_entered(Entered entered) { entered_ = std::move(entered); }

  /// Called when a pod is parked, and when it is parked no more, with the plugins that said no.
  using Parked = std::function<void(const Pod& pod, PluginSet rejected_by, bool parked)>;
  void on_parked(Parked parked) { on_parked_ = std::move(parked); }

  struct Popped {
    PodPtr pod;
    int attempts = 0;   // this one included
    Duration since{0};  // entered the queue
  };

  /// A new pod, or a new state of one that waits (which stays where it is).
  void add(const PodPtr& pod, Duration now);
  /// Not to be tried until release().
  void hold(const PodPtr& pod, Duration now);
  void release(std::string_view key, Duration now);
  void remove(std::string_view key);
  bool contains(std::string_view key) const { return entries_.contains(std::string(key)); }
  bool held(std::string_view key) const;
  /// Taken out by pop(), and not back yet.
  bool is_out(const Pod& pod) const;
  /// The pod, which is out, is judged by the cluster as it is now: what happened before does not
  /// help it any more.
  void judged(std::string_view key);

  /// Null pod: nothing to try now.
  Popped pop(Duration now);
  /// The attempt failed by an error, or what it asked for while the pod is parked: again after a
  /// backoff.
  void fail(const PodPtr& pod, Duration now);
  /// It was added just now, though so many attempts have failed: their backoff counts.
  void delay(const PodPtr& pod, int attempts, Duration now);
  /// No node was found, and these plugins said no. It does not stay where something that may help
  /// has happened since it was judged.
  void park(const PodPtr& pod, const std::string& group, PluginSet rejected_by, Duration now);

  /// Wakes one pod of each group that one of the plugins rejected and `helps` holds for.
  std::size_t wake(PluginSet plugins, const std::function<bool(const Pod&)>& helps, Duration now,
                   const char* why = "ClusterEvent");
  /// Wakes the pod if it is parked, or will be. `patient`: its backoff is waited for even if
  /// nothing else is to do.
  bool wake_pod(std::string_view key, Duration now, const char* why = "ClusterEvent",
                bool patient = false);
  void next_of(const std::string& group, Duration now);
  /// Wakes those that have been parked for too long.
  void flush(Duration now);

  /// When pop() may have something again although nothing happens; negative: never.
  Duration next_due(Duration now) const;

  struct Sizes {
    std::size_t active = 0;
    std::size_t backoff = 0;
    std::size_t unschedulable = 0;
    std::size_t gated = 0;
  };
  Sizes sizes() const;

 private:
  enum class Place : std::uint8_t { active, backoff, parked, held, out };
  struct Order {
    std::int64_t negative_priority = 0;
    std::uint64_t number = 0;
    friend auto operator<=>(const Order&, const Order&) = default;
  };
  struct Entry {
    PodPtr pod;
    Place place = Place::out;
    Order order;
    Duration entered{0};
    int attempts = 0;
    Duration tried{0};
    bool error = false;
    Duration until{0};  // of a backoff
    std::string group;
    PluginSet rejected_by = 0;
    std::uint64_t judged = 0;  // the last event that counted
    bool missed = false;       // one for it alone, after that
  };
  struct Group {
    PluginSet rejected_by = 0;
    std::map<Order, Entry*> pods;
  };

  Entry& enter(const PodPtr& pod, Duration now);
  bool missed_any(const Entry& entry) const;
  void take_out(Entry& entry);
  void make_ready(Entry& entry, Duration now, const char* why);
  void enters(const char* queue, const char* why) const {
    if (entered_) entered_(queue, why);
  }
  Duration backoff_of(const Entry& entry) const;

  QueueOptions options_;
  Entered entered_;
  Parked on_parked_;
  std::uint64_t numbers_ = 0;
  std::unordered_map<std::string, Entry> entries_;
  std::map<Order, Entry*> active_;
  std::map<std::pair<Duration, Order>, Entry*> backoff_;  // errors
  std::map<Order, Entry*> early_;                         // backing off without an error
  std::unordered_map<std::string, Group> groups_;
  std::map<std::pair<Duration, Order>, Entry*> parked_;  // by time of the last attempt
  std::size_t held_ = 0;
  std::uint64_t events_ = 0;
  std::array<std::uint64_t, 32> last_event_ = {};  // that could help against a plugin, by its bit
};

}  // namespace dibs::scheduler
