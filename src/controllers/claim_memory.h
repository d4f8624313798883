#pragma once
// What the controller of claims knows before its informers do. Thread-safe; bounded: what is
// forgotten is asked of the server.

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/mutex.h"

namespace dibs::controllers {

class ClaimMemory {
 public:
  /// The claim that was made for an entry of a pod; "" when none is remembered.
  std::string made(const std::string& entry) const;
  void note_made(const std::string& entry, const std::string& claim);

  /// Pods that are gone, by uid.
  bool is_gone(std::string_view uid) const;
  void note_gone(std::string_view uid);

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::string> made_ DIBS_GUARDED_BY(mutex_);
  std::deque<std::string> made_order_ DIBS_GUARDED_BY(mutex_);
  std::unordered_set<std::string> gone_ DIBS_GUARDED_BY(mutex_);
  std::deque<std::string> gone_order_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::controllers
