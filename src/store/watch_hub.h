#pragma once
// Who watches what: one channel of events per watched prefix.
//
// A channel is made at the first watch of its prefix, filled from the history as far back as that
// watch asks, and fed by every later change below the prefix; watchers are cursors into it. So a
// change costs one lookup per '/' of its key and one call per watcher that waits, however many
// prefixes are watched.
//
// Guarded by the lock of Mvcc: feed(), trim(), open() and leave() need its exclusive side, read()
// its shared one.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "store/store.h"

namespace dibs::store {

/// A watcher's callback, shared by the watch and by whoever is about to call it.
class Waker {
 public:
  explicit Waker(std::function<void()> ready) : ready_(std::move(ready)) {}
  /// Calls `ready`, unless closed. Without locks held.
  void wake();
  /// After it, `ready` is not called any more; waits for calls in other threads.
  void close();

  /// In Channel::waiting, and changed under that channel's mutex, which cannot be named here.
  bool waiting = false;

 private:
  const std::function<void()> ready_;
  Mutex mutex_;
  CondVar idle_;
  bool closed_ DIBS_GUARDED_BY(mutex_) = false;
  int calls_ DIBS_GUARDED_BY(mutex_) = 0;
};
using WakerPtr = std::shared_ptr<Waker>;

/// The watchers to wake for changes that are visible already. Fired after all locks are released.
class Wakeups {
 public:
  void fire() {
    for (const auto& waker : wakers_) waker->wake();
    wakers_.clear();
  }

 private:
  friend class WatchHub;
  std::vector<WakerPtr> wakers_;
};

struct Channel {
  std::string prefix;
  std::deque<EventPtr> events;
  std::int64_t first = 0;  // the number of events.front(); goes on counting as events come and go
  Revision since = 0;      // every event of the prefix above it, and above compaction, is here
  std::size_t watchers = 0;

  Mutex mutex;
  std::vector<WakerPtr> waiting DIBS_GUARDED_BY(mutex);
};

class WatchHub {
 public:
  /// The channel of `prefix`, complete above `from`; one more watcher. `history`: all events kept.
  Channel& open(std::string_view prefix, Revision from, const std::deque<EventPtr>& history);
  void leave(Channel& channel);
  void feed(const EventPtr& event, Wakeups& wakeups);
  /// `event` leaves the history.
  void trim(const Event& event);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  template <typename T>
  using ByText = std::unordered_map<std::string, T, Hash, std::equal_to<>>;

  template <typename Visit>
  void each_channel_of(std::string_view key, Visit visit);

  ByText<std::unique_ptr<Channel>> channels_;
  /// Prefixes that do not end with '/': their directory to the lengths that occur there.
  ByText<std::map<std::size_t, std::size_t>> partial_;
};

}  // namespace dibs::store
