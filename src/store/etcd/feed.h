#pragma once
// Keeps the state in memory as etcd has it: loads it once, then follows one watch.
//
// The life of the feed, on a thread of its own: connect to a member; the first time, load the state
// at an old revision, so that watches from before can go on; watch from the next revision on;
// apply what comes, in groups as large as have gathered; when the watch or the connection ends,
// begin again at another member. Where etcd has forgotten the revision to go on from, the whole
// state is listed and the difference applied, and watchers that were behind are told so.
//
// reach() tells when a revision is in memory. A watch shows only changes of our keys: where a
// revision may be of another key, etcd is asked how far the watch is (a progress request), or,
// where its answer cannot be trusted, a key of ours is written, which the watch must show.

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "store/at_rest.h"
#include "store/etcd/client.h"
#include "store/etcd/digest.h"
#include "store/etcd/keys.h"
#include "store/mvcc.h"

namespace dibs::store::etcd {

class Feed {
 public:
  struct Parts {
    Client& client;
    const Keys& keys;
    Mvcc& mvcc;
    std::shared_ptr<const AtRest> at_rest;
    FindOwn own;
    NoteStale stale = {};
  };
  explicit Feed(Parts parts);
  ~Feed();

  /// Begins, and waits until the state as it was at the call is in memory. Errors: unavailable.
  Result<> start(std::chrono::milliseconds limit);
  void stop();

  /// Null while there is none, which why_not() then tells.
  ConnectionPtr connection() const;
  Error why_not() const;
  /// The connection failed: another one is made.
  void drop(const ConnectionPtr& connection, const std::string& why);

  /// Calls `done` when everything up to `revision` is in memory, from any thread, perhaps at once.
  /// `ask`: the revision may be of a key that is not ours. Errors: timeout.
  void reach(Revision revision, bool ask, std::function<void(Result<>)> done);
  /// Whether all changes since then have come, one by one: none was lost with forgotten history.
  bool has_seen_all_since(Revision revision) const { return jumped_ <= revision; }
  /// Where the object of a key lies (Keys).
  bool is_apart(const std::string& key) const { return apart_.contains(key); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiter {
    Clock::time_point asks;  // from then on etcd is asked
    Clock::time_point until;
    std::function<void(Result<>)> done;
  };
  class Inbox;

  void run();
  /// Until the watch ends, with the reason.
  Error follow(const ConnectionPtr& connection);
  Error take_messages(const ConnectionPtr& connection, Inbox& inbox, rpc::TwoWayStream& watch);
  Result<> load(const Connection& connection);
  Result<> list_again(const Connection& connection);
  Result<Revision> oldest_revision(const Connection& connection);
  template <typename Visit>
  Result<Revision> read_all(const Connection& connection, Revision at, const Visit& visit);
  /// False: somebody has waited too long.
  bool serve_waiters();
  bool wants_progress();
  void ask_progress(const ConnectionPtr& connection, rpc::TwoWayStream& watch);
  void publish(ConnectionPtr connection, Error why);
  bool stopping() const;
  void pause(std::chrono::milliseconds how_long);

  const Parts parts_;
  const Reader reader_;
  ApartNames apart_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ DIBS_GUARDED_BY(mutex_) = false;
  ConnectionPtr connection_ DIBS_GUARDED_BY(mutex_);
  Error why_not_ DIBS_GUARDED_BY(mutex_) = Error::unavailable("etcd: not connected yet");
  std::multimap<Revision, Waiter> waiters_ DIBS_GUARDED_BY(mutex_);
  std::shared_ptr<Inbox> inbox_ DIBS_GUARDED_BY(mutex_);  // of the watch that is open

  std::atomic<Revision> target_ = 0;  // etcd's when it was loaded
  std::atomic<Revision> jumped_ = 0;  // to where everything was listed again last
  // Of the thread alone.
  bool loaded_ = false;
  Clock::time_point asked_ = {};
  bool begun_ = false;  // the watch that ended last had begun
  std::thread thread_;
};

}  // namespace dibs::store::etcd
