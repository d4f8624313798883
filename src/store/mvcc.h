#pragma once
// The state that all backends share: every key with its versions back to the last compaction, the
// history of events since then, and the watchers.
//
// A backend decides what is written and when it is durable, then calls apply(); from that moment
// reads and watchers see it. Reads take a shared lock for a moment only: never for as long as a
// disk write takes, and a long listing releases it between pieces, reading on at the same revision.
//
// Thread-safe, but apply() is for one thread at a time, and so is compact(); the two may overlap.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "store/commons.h"
#include "store/key_index.h"
#include "store/store.h"
#include "store/watch_hub.h"

namespace dibs::store {

/// How much history to keep at most, whatever its age.
struct HistoryLimits {
  std::size_t events = 100'000;
  /// Of what is in memory for the history alone, about: events, and the values that they replaced
  /// or removed.
  std::size_t bytes = std::size_t{64} << 20;
};

/// One operation with its outcome: `now` as it will be read, or null and the key that goes.
struct Change {
  Revision revision = 0;
  RecordPtr now;
  std::string removed;

  std::string_view key() const { return now ? now->key : std::string_view(removed); }
};

/// A version that no read can reach any more.
struct Garbage {
  Revision revision = 0;
  std::string key;
};

class Mvcc : public std::enable_shared_from_this<Mvcc> {
 public:
  explicit Mvcc(const HistoryLimits& limits = {}) : limits_(limits) {}

  RecordPtr get(std::string_view key) const;
  Result<Listing> range(const RangeQuery& query) const;
  std::size_t count(std::string_view prefix) const;
  /// The watch keeps this Mvcc alive.
  Result<std::unique_ptr<Watch>> watch(std::string_view prefix, Revision from,
                                       std::function<void()> ready);
  /// For the records that a backend makes.
  Commons& commons() const { return *commons_; }

  Revision revision() const { return revision_.load(std::memory_order_acquire); }
  Revision compacted() const { return compacted_.load(std::memory_order_acquire); }

  /// Makes changes visible, in ascending order of revision, and moves to `revision` at the end (a
  /// transaction may have no effect on any key). The caller fires what it returns.
  [[nodiscard]] Wakeups apply(std::vector<Change> changes, Revision revision);

  /// The same for changes with others missing in between: watchers that have not read up to here
  /// see none of them, but that they missed something.
  [[nodiscard]] Wakeups jump(std::vector<Change> changes, Revision revision);

  /// For opening: the state is compacted up to `revision`. Requires an empty Mvcc.
  void start_at(Revision compacted);
  /// For opening: the next change of the log, in order. Appends to `garbage` what it makes
  /// unreachable, when that was not compacted away. False when it cannot follow on those before.
  bool load(Change change, std::vector<Garbage>& garbage);

  /// Forgets, in small steps, and returns what a backend may delete. Errors: invalid for a revision
  /// in the future. Going back is no error and does nothing.
  Result<std::vector<Garbage>> compact(Revision revision);
  /// The revision to compact to so that the limits hold again with room to spare; 0 when they hold.
  Revision compaction_due() const;

 private:
  class Cursor;

  /// Appends up to `limit` more records and moves `from` behind what it has seen. True when done.
  bool read_piece(const RangeQuery& query, Revision at, std::string& from, Listing& listing) const
      DIBS_REQUIRES_SHARED(lock_);
  void apply_one(Change change, Wakeups& wakeups) DIBS_REQUIRES(lock_);
  /// What a piece of trimming took out. It outlives the lock: freeing a thousand values takes
  /// longer than unlinking them.
  struct Trimmed {
    std::vector<EventPtr> events;
    std::vector<RecordPtr> dropped;
  };
  void trim(Revision revision, std::size_t limit, Trimmed& trimmed, std::vector<Garbage>& garbage)
      DIBS_REQUIRES(lock_);

  const HistoryLimits limits_;
  const std::unique_ptr<Commons> commons_ = std::make_unique<Commons>();
  mutable SharedMutex lock_;
  KeyIndex index_ DIBS_GUARDED_BY(lock_);
  std::deque<EventPtr> history_ DIBS_GUARDED_BY(lock_);
  std::size_t history_bytes_ DIBS_GUARDED_BY(lock_) = 0;
  std::deque<RecordPtr> attached_ DIBS_GUARDED_BY(lock_);  // those with an attachment
  WatchHub hub_ DIBS_GUARDED_BY(lock_);
  std::atomic<Revision> revision_{0};   // written with lock_ held
  std::atomic<Revision> compacted_{0};  // written with lock_ held
};

}  // namespace dibs::store
