#pragma once
// Writes that would only lose to each other, one after the other.
//
// A write takes the turn of a thing (a namespace's quota) just before it is committed, with all
// that may take long behind it, and has it until it is settled. Whoever comes meanwhile is called
// when it is his, in the order they came; no thread waits.
//
// Thread-safe. Held by a shared pointer, because turns outlast requests of a server that stops.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "server/write.h"

namespace dibs::server {

class WriteTurns : public std::enable_shared_from_this<WriteTurns> {
 public:
  /// True: it is the write's turn, which ends with its tickets. False: it will be, and `go_on`
  /// called then; the caller has nothing more to do with the write.
  bool take(const std::string& thing, Write& write, std::function<void()> go_on);

 private:
  class Turn;
  struct Waiting {
    Write& write;  // lives as long as what it waits with
    std::function<void()> go_on;
  };

  void end(const std::string& thing);

  Mutex mutex_;
  /// Of things whose turn somebody has: those who come next.
  std::map<std::string, std::deque<Waiting>> lines_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::server
