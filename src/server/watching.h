#pragma once
// Watches: a cursor into the store's history for every client, one encoding for all.
//
// A stream holds no queue of its own beyond what its socket has not yet taken: it reads on in the
// history only when that is small, so a slow client falls behind there and is told 410 in the end,
// without holding up anybody.
//
// The state that a watch may begin with (initial_state.h) is read and sent by few tasks at a time,
// and in turns, while events of watches that have begun go by a task of their own: a thousand that
// begin at once make nobody's events late.

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "runtime/runtime.h"
#include "server/context.h"
#include "store/store.h"

namespace dibs::server {

class WatchStream;

/// All watches of a server. Thread-safe.
class Watches {
 public:
  /// Watches that name no time end after `least`, or up to twice as much.
  Watches(runtime::Runtime& runtime, store::Store& store, Duration least);
  ~Watches();

  /// Answers a watch request: with an error at once, or with a stream that lives on by itself.
  void open(std::shared_ptr<Context> context, std::shared_ptr<calls::Exchange> exchange);

  /// Ends the streams of what lies under the prefix, after what has happened there so far.
  void end(const std::string& prefix);
  /// Ends all streams properly and refuses new ones.
  void close();
  std::size_t count() const;

 private:
  friend class WatchStream;
  void ready(std::weak_ptr<WatchStream> stream);
  void serve_ready();
  void serve_starting();
  /// Of those that wait to begin.
  std::vector<std::shared_ptr<WatchStream>> alike_to(const WatchStream& stream);
  /// The same of those that call out, for `stream` to read what all of them begin with; nothing
  /// where another one is at it.
  std::optional<std::vector<std::shared_ptr<WatchStream>>> begin_reading(const WatchStream& stream);
  void end_reading(const WatchStream& stream);
  void forget(const std::shared_ptr<WatchStream>& stream);

  runtime::Runtime& runtime_;
  const std::int64_t least_seconds_;
  store::Store& store_;
  mutable Mutex mutex_;
  std::unordered_set<std::shared_ptr<WatchStream>> streams_ DIBS_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<WatchStream>> ready_ DIBS_GUARDED_BY(mutex_);
  bool serving_ DIBS_GUARDED_BY(mutex_) = false;
  const unsigned most_starters_;  // tasks at once
  std::deque<std::weak_ptr<WatchStream>> starting_ DIBS_GUARDED_BY(mutex_);
  unsigned starters_ DIBS_GUARDED_BY(mutex_) = 0;
  std::set<std::string> reading_ DIBS_GUARDED_BY(mutex_);  // what streams that call out begin with
  bool closed_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::server
