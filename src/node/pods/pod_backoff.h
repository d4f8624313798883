#pragma once
// Delays of things that are tried again: ten seconds, doubling up to five minutes, forgotten after
// ten minutes without a try. One per container for restarts, one per image for pulls.
//
// A delay counts from a moment that the caller names: for a container from its end, so that one
// that ran for long is started again at once.

#include <algorithm>
#include <map>
#include <string>

#include "base/time.h"

namespace dibs::node {

class Backoff {
 public:
  explicit Backoff(Duration first = std::chrono::seconds(10),
                   Duration longest = std::chrono::minutes(5))
      : first_(first), longest_(longest) {}

  /// What is left of the delay since `moment`; 0: go on.
  Duration left(const std::string& key, Time moment, Time now) const {
    const auto found = entries_.find(key);
    if (found == entries_.end() || is_old(found->second, moment)) return Duration(0);
    const Duration passed = now - moment;
    return passed < found->second.delay ? found->second.delay - passed : Duration(0);
  }
  Duration delay(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? Duration(0) : found->second.delay;
  }
  Time last(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? Time() : found->second.last;
  }
  /// It was tried at `now`: the next one waits longer. `moment` as in left().
  void tried(const std::string& key, Time moment, Time now) {
    auto [entry, fresh] = entries_.try_emplace(key);
    if (fresh || is_old(entry->second, moment)) {
      entry->second.delay = first_;
    } else {
      entry->second.delay = std::min(entry->second.delay * 2, longest_);
    }
    entry->second.last = now;
  }
  void forget(const std::string& key) { entries_.erase(key); }

 private:
  struct Entry {
    Duration delay{0};
    Time last;
  };
  bool is_old(const Entry& entry, Time moment) const { return moment - entry.last > longest_ * 2; }

  Duration first_;
  Duration longest_;
  std::map<std::string, Entry> entries_;
};

}  // namespace dibs::node
