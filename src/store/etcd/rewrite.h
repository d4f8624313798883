#pragma once
// Values that are on etcd in a way that AtRest would not write them today, above all with a key
// that is not the first any more: they are written anew, once, after the start, as the file of
// SQLite is. On etcd each is a change with a revision of its own.

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "store/store.h"

namespace dibs::store::etcd {

/// Which they are, as they are read. Thread-safe.
class StaleValues {
 public:
  using Entry = std::pair<std::string, Revision>;  // key, and the revision of the value

  void note(const std::string& key, Revision modified);
  /// What is noted later is not kept: whoever wrote it has other keys, and starts again with these.
  std::vector<Entry> take();

 private:
  Mutex mutex_;
  std::map<std::string, Revision> noted_ DIBS_GUARDED_BY(mutex_);
  bool taken_ DIBS_GUARDED_BY(mutex_) = false;
};

/// Some at a time; a line in the log when all are through. `write` calls back once, from any
/// thread, perhaps at once: with 0 where there was nothing to do.
void rewrite(std::vector<StaleValues::Entry> stale,
             std::function<void(const StaleValues::Entry& one, Store::Done done)> write);

}  // namespace dibs::store::etcd
