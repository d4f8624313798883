#include "store/stores.h"

#include "base/plug_points.h"
#include "store/batch.h"
#include "store/etcd/etcd_store.h"
#include "store/memory_store.h"
#include "store/sqlite_store.h"

namespace dibs::store {
namespace {

/// Unless its --max-txn-ops says otherwise.
constexpr std::size_t kEtcdOps = 128;
/// As long as the write-ahead log gets (max_wal_pages).
constexpr std::size_t kBallast = std::size_t{64} << 20;

Result<std::unique_ptr<Store>> open_sqlite(const StoreOptions& options) {
  SqliteOptions sqlite;
  sqlite.path = options.folder + "/store.db";
  sqlite.first_revision = options.first_revision;
  sqlite.max_transaction_bytes = options.max_transaction_bytes;
  sqlite.history = options.history;
  sqlite.at_rest = options.at_rest;
  sqlite.ballast_bytes = kBallast;
  return open_sqlite_store(sqlite);
}

Result<std::unique_ptr<Store>> open_memory(const StoreOptions& options) {
  MemoryOptions memory;
  memory.first_revision = options.first_revision;
  memory.max_transaction_bytes = options.max_transaction_bytes;
  memory.history = options.history;
  return make_memory_store(memory);
}

constexpr StoreKind kStores[] = {
    {"sqlite", "a file in the data folder", true, false, kMaxOps, open_sqlite},
    {"memory", "nowhere, gone at the end", false, false, kMaxOps, open_memory},
    {"etcd", "an etcd, which other servers may share", true, true, kEtcdOps, open_etcd_store},
};

}  // namespace

std::span<const StoreKind> store_kinds() { return kStores; }

Result<std::unique_ptr<Store>> open_store(std::string_view name, const StoreOptions& options) {
  const StoreKind* kind = find_named(store_kinds(), name);
  if (kind == nullptr) {
    return Error::bad_request(
        cat("unknown store ", quoted(name), ": must be ", any_name_of(store_kinds())));
  }
  return kind->open(options);
}

}  // namespace dibs::store
