#pragma once
// A store that keeps its log nowhere: for tests, simulation and throw-away clusters.
//
// A commit is visible when it returns and lost when the store goes. Starts no thread: everything
// happens in the caller's, so it is as deterministic as its callers.

#include <memory>

#include "store/mvcc.h"
#include "store/store.h"

namespace dibs::store {

struct MemoryOptions {
  std::size_t max_transaction_bytes = std::size_t{8} << 20;
  HistoryLimits history = {};
  Revision first_revision = 1;  // as SqliteOptions
};

std::unique_ptr<Store> make_memory_store(const MemoryOptions& options = {});

}  // namespace dibs::store
