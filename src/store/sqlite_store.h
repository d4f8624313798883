#pragma once
// The embedded store: the log in one SQLite file, written in groups.
//
// The life of a commit: queued by its caller; taken by the writer thread together with all others
// that queued up while the disk was busy; checked in order; written in one SQLite transaction and
// one fsync; applied to memory; watchers are woken; each caller returns. When the disk fails, the
// whole group is rolled back and each of its callers gets the error; reads go on, health() says
// why, and the next write tries again. After a commit that failed it first has all that was
// acknowledged written anew: what the disk says of the rest is not believed.
//
// When the disk is full, the ballast is given up for deletions; all other writes are refused at
// once, until the ballast could be taken again or the file has as much room inside.
//
// A second thread moves the write-ahead log into the file and forgets old history. close() (or the
// destructor) writes what is queued and stops both.

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/at_rest.h"
#include "store/disk.h"
#include "store/mvcc.h"
#include "store/store.h"

namespace dibs::store {

struct SqliteOptions {
  std::string path = {};  // the file; PATH-wal, PATH-shm, PATH.lock and PATH.ballast beside it
  Disk* disk = &system_disk();  // outlives the store
  std::size_t max_transaction_bytes = std::size_t{8} << 20;
  HistoryLimits history = {};
  /// What was written in another way than it would be today is written anew when it is opened.
  std::shared_ptr<const AtRest> at_rest = {};
  /// Of an empty store. Servers begin high, so that a version is not taken for a small number of
  /// another kind.
  Revision first_revision = 1;
  /// A group ends at either.
  std::size_t group_transactions = 512;
  std::size_t group_bytes = std::size_t{8} << 20;
  /// The length of the write-ahead log, in pages of 16 KiB, at which it is moved into the file, and
  /// at which the writer waits for that.
  std::size_t checkpoint_pages = 512;
  std::size_t max_wal_pages = 4096;
  /// Kept aside in PATH.ballast for deletions on a full disk; 0: nothing is. It must hold what is
  /// moved from the write-ahead log into the file when the disk turns out to be full.
  std::size_t ballast_bytes = 0;
  /// How often a full disk is looked at for room.
  std::chrono::milliseconds room_interval = std::chrono::seconds(1);
  /// Bounds the file, for tests of a full disk; 0: no bound.
  int max_pages = 0;
};

/// Opens or makes the file. Errors: see SqliteLog::open.
Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteOptions& options);

}  // namespace dibs::store
