#pragma once
// The embedded store: the log in one SQLite file, written in groups.
//
// The life of a commit: queued by its caller; taken by the writer thread together with all others
// that queued up while the disk was busy; checked in order; written in one SQLite transaction and
// one fsync; applied to memory; watchers are woken; each caller returns. When the disk fails, the
// whole group is rolled back and each of its callers gets the error; reads go on, and the next
// write tries again.
//
// A second thread moves the write-ahead log into the file and forgets old history. close() (or the
// destructor) writes what is queued and stops both.

#include <memory>
#include <string>

#include "base/result.h"
#include "store/at_rest.h"
#include "store/mvcc.h"
#include "store/store.h"

namespace dibs::store {

struct SqliteOptions {
  std::string path = {};  // the file; PATH-wal, PATH-shm and PATH.lock stand beside it
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
  /// Reads the whole file at open and checks its structure.
  bool check = false;
  /// Bounds the file, for tests of a full disk; 0: no bound.
  int max_pages = 0;
};

/// Opens or makes the file. Errors: see SqliteLog::open.
Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteOptions& options);

}  // namespace dibs::store
