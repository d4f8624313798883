#pragma once
// The log of a SQLite store: one file that only ever grows at its end, apart from compaction.
// The format is docs/formats/store.md.
//
// open() takes the file for this process alone. checkpoint() is for one thread, everything else for
// one other; they may run at the same time.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/at_rest.h"
#include "store/disk.h"
#include "store/mvcc.h"
#include "store/store.h"

namespace dibs::store {

struct SqliteLogOptions {
  Disk& disk;
  std::string path;
  /// Bounds the file, for tests of a full disk; 0: no bound.
  int max_pages = 0;
  /// How values are written; null: as they are.
  std::shared_ptr<const AtRest> at_rest = {};
};

class SqliteLog {
 public:
  /// What open() finds: first the compacted revision, then the rows in order.
  struct Loader {
    std::function<void(Revision compacted)> begin;
    /// False when it cannot follow on those before: then the file is damaged.
    std::function<bool(Change change)> change;
    Commons& commons;  // of the records
  };

  /// Opens or makes the file, checks its structure and hands its content to `loader`. Values that
  /// at_rest calls stale are written anew, and nothing of them is left behind. Errors say what is
  /// wrong with which file and what to do: unavailable (in use, read-only, disk full), invalid (not
  /// ours, newer format), internal (damaged).
  static Result<std::unique_ptr<SqliteLog>> open(const SqliteLogOptions& options,
                                                 const Loader& loader);
  ~SqliteLog();

  /// Appends the changes and deletes the garbage in one durable transaction. After an error nothing
  /// has changed; but where the disk did not say whether it has it, the transaction may be there,
  /// whole, when the file is opened again before the next one.
  /// `compacted` is noted with the garbage: what is deleted must not be needed above it. Errors:
  /// unavailable, internal.
  Result<> write(const std::vector<Change>& changes, std::span<const Garbage> garbage,
                 Revision compacted);

  /// Writes something and takes it back. Errors: as write(), which would fail, too.
  Result<> probe();

  /// Whether the last write() failed for want of room.
  bool was_full() const { return was_full_; }

  /// The length of the write-ahead log after the last write().
  std::size_t wal_pages() const { return wal_pages_; }
  /// Moves what it can of the write-ahead log into the file, without keeping write() waiting.
  /// Errors: of the disk; what could not be moved is still in the log.
  Result<> checkpoint();
  /// Moves the rest too, so that the next write() starts the write-ahead log from its beginning.
  /// Quick after checkpoint(). False when something kept it from getting all.
  bool checkpoint_all();

  /// Moves all of it and gives its room back to the disk.
  bool checkpoint_and_shrink();
  /// Room inside of the file, for the thread that calls write().
  std::size_t free_bytes() const;

 private:
  struct Impl;
  explicit SqliteLog(std::unique_ptr<Impl> impl);

  Result<> transaction(const std::function<int()>& body);
  Result<> settle();

  std::unique_ptr<Impl> impl_;
  std::size_t wal_pages_ = 0;
  bool was_full_ = false;
  bool unsettled_ = false;  // a commit failed, and settle() has not worked since
};

}  // namespace dibs::store
