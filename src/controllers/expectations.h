#pragma once
// What a controller has just done and its informers have not shown yet.
//
// A controller that decides from a cache would create a pod twice when the cache lags behind its
// own writes. So it notes before each batch how many children it is about to create, and which ones
// it removes, and does not decide again until all of that has come back. A note that stays
// unanswered for five minutes is void: an event may have been lost with a watch.
//
// Thread-safe.

#include <map>
#include <set>
#include <string>

#include "base/mutex.h"
#include "base/time.h"

namespace dibs::controllers {

class Expectations {
 public:
  /// Nothing is outstanding for this owner, or for too long.
  bool satisfied(const std::string& owner, Time now) const;

  void expect_creations(const std::string& owner, int count, Time now);
  /// Also for one that failed and will not come.
  void creation_seen(const std::string& owner);
  void expect_deletion(const std::string& owner, const std::string& uid, Time now);
  void deletion_seen(const std::string& owner, const std::string& uid);
  void forget(const std::string& owner);

 private:
  struct Outstanding {
    int creations = 0;
    std::set<std::string> deletions;
    Time since;
  };

  mutable Mutex mutex_;
  std::map<std::string, Outstanding> owners_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::controllers
