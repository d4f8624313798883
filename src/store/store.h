#pragma once
// Revisioned key-value log with watch.
//
// Every transaction that changes something takes the next revision; revisions never repeat or go
// back, restarts included. A read at a revision sees exactly the writes up to it, until that
// revision is compacted. commit() returns when the write is durable, and a read that starts after
// it returned sees it.
//
// The current state and the history since the last compaction are in memory; backends differ in
// where the log is kept (memory: nowhere; SQLite: a file; etcd: a cluster whose watch feeds the
// memory). Thread-safe.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/time.h"
#include "store/value_bytes.h"

namespace dibs::store {

using Revision = std::int64_t;

class Commons;  // commons.h

/// What somebody has made of a value already. The store does not know what it is.
using AttachmentPtr = std::shared_ptr<const void>;

/// One version of one key. Immutable but for what is attached to it; only that needs the store that
/// the record is of.
class Record {
 public:
  Record(Commons& commons, std::string_view key_bytes, std::string_view value_bytes,
         Revision created_at, Revision modified_at);

  const ValueBytes value;
  const std::string_view key;
  const Revision created;   // the revision that made the key (again)
  const Revision modified;  // the revision of this value

  /// What the writer left, which the last few thousand records have, or else what a reader left,
  /// where that was lately.
  AttachmentPtr attachment() const;
  /// By the writer.
  void attach(AttachmentPtr what) const;
  /// By a reader, for those who read the same again.
  void remember(AttachmentPtr what) const;

 private:
  friend class Event;
  Commons& commons_;
  mutable AttachmentPtr written_;
};
using RecordPtr = std::shared_ptr<const Record>;

/// One change of one key. `now` is null for a removal, `before` null for a creation.
class Event {
 public:
  Event(Revision at, RecordPtr is, RecordPtr was)
      : revision(at), now(std::move(is)), before(std::move(was)) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  const Revision revision;
  const RecordPtr now;
  const RecordPtr before;

  std::string_view key() const { return now ? now->key : before->key; }

  /// An encoded form of the event, made once by whoever asks first and shared by all watchers.
  SharedBytes encoded(std::uint64_t form, const std::function<std::string()>& make) const;
  /// Who asks again makes it again.
  void forget_encoded() const;

 private:
  struct Forms;
  Mutex& forms_mutex() const;
  mutable std::atomic<Forms*> forms_{nullptr};  // as a rule nobody asks
};
using EventPtr = std::shared_ptr<const Event>;

struct Op {
  std::string key;
  SharedBytes value;  // null removes the key
  /// The key's `modified` revision before this write; 0: it must not exist; unset: anything.
  std::optional<Revision> expected;
  /// Goes with the record: the same as `value` says, in a form that is cheaper to read.
  AttachmentPtr attachment = {};
  /// Part of a deletion, though it writes something: taken on a full disk too.
  bool frees = false;
  /// How long the key may stay, counted from this write, where the store removes such keys itself
  /// (Store::expires); others keep it.
  std::optional<Duration> lifetime = {};
  /// Nothing is written: the transaction only expects the key to be as `expected` says.
  bool only_expects = false;
};

struct Listing {
  std::vector<RecordPtr> records;  // in byte order of the key
  Revision revision = 0;           // the state they were read at
  bool more = false;               // the limit cut the listing
  std::size_t remaining = 0;       // how many were cut
};

struct RangeQuery {
  std::string prefix = {};
  std::string from = {};  // first key, when not empty; must lie under the prefix
  std::size_t limit = 0;  // 0: no limit
  Revision at = 0;        // 0: the current state
};

/// What every store takes in one transaction, and some operations more that go with it. An etcd
/// takes 128 of them by default, 128 comparisons, and 1.5 MB; of a key that may lie in two places
/// (AtRest) it compares both.
inline constexpr std::size_t kGroupOps = 120;       // none of which expects anything
inline constexpr std::size_t kGroupExpecting = 60;  // that expect something
inline constexpr std::size_t kGroupBytes = std::size_t{1} << 20;

/// A cursor over the changes below a prefix. Holds no queue: events stay in the shared history
/// until compacted, and a watcher that has fallen behind that gets Code::expired.
class Watch {
 public:
  /// After it, `ready` is not called any more. It waits for a call of `ready` in another thread to
  /// end, so do not hold a lock that `ready` takes. It may be run by `ready` itself.
  virtual ~Watch() = default;
  /// Up to `limit` (at least 1) next events in revision order; empty when there is none yet, and
  /// then `ready` is called (once, from any thread, without locks held) when there is one. Also
  /// reports in `revision` up to where the prefix is known to be complete, for bookmarks. One
  /// caller at a time.
  virtual Result<std::vector<EventPtr>> next(std::size_t limit, Revision* revision = nullptr) = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  /// All operations under one revision, or none. Removing a key that does not exist, without an
  /// expectation, is no error and no event; a transaction of nothing else takes no revision and
  /// returns the current one. Errors: conflict when an expectation does not hold, invalid for no
  /// operation at all or two on one key, too_large, unavailable (the disk is full, and not every
  /// operation removes or frees; read-only, closed): then nothing was written. Where the disk
  /// failed in the midst of it, nothing of it is visible, but it may turn up, whole, when the store
  /// is opened again. timeout: the answer of a shared store was lost, and it may have been written.
  virtual Result<Revision> commit(std::vector<Op> ops) = 0;
  /// The same without waiting: `done` is called once with the outcome, from any thread, perhaps
  /// before this returns, and must not block. Many writers then need no thread each.
  using Done = std::function<void(Result<Revision>)>;
  virtual void commit_async(std::vector<Op> ops, Done done) { done(commit(std::move(ops))); }

  /// The current record, or null.
  virtual RecordPtr get(std::string_view key) const = 0;
  /// Errors: expired when `at` is compacted, timeout when it lies in the future.
  virtual Result<Listing> range(const RangeQuery& query) const = 0;
  virtual std::size_t count(std::string_view prefix) const = 0;

  /// Changes below `prefix` with a revision above `from`. `ready` must not block.
  /// Errors: expired when some of them are compacted.
  virtual Result<std::unique_ptr<Watch>> watch(std::string_view prefix, Revision from,
                                               std::function<void()> ready) = 0;

  virtual Revision revision() const = 0;
  virtual Revision compacted() const = 0;
  /// Others write to it as well, in processes of their own: what is read here may be older than
  /// what they have committed, until sync(). A conflict is told when the newer state is visible
  /// here.
  virtual bool shared() const { return false; }
  /// Removes keys whose lifetime is over.
  virtual bool expires() const { return false; }
  /// Makes sure that what other writers had committed before this call is visible here. Errors:
  /// unavailable, while the others cannot be asked.
  virtual Result<> sync() = 0;
  /// The same without waiting, as commit_async().
  virtual void sync_async(std::function<void(Result<>)> done) { done(sync()); }
  /// Errors: unavailable, while nothing can be written, with the reason. Ends by itself.
  virtual Result<> health() const { return success(); }
  /// Errors: unavailable while only deletions are taken. Ends by itself.
  virtual Result<> room() const { return success(); }
  /// Forgets the events up to and including `revision` and the states before it: the state at
  /// `revision` itself can still be read, and a watch from it can still be opened.
  virtual Result<> compact(Revision revision) = 0;
  /// The same for all who share the store, and for those who will open it: they have forgotten it
  /// when this returns. compact() of many servers is done by one of them, at some time. Errors:
  /// unavailable.
  virtual Result<> compact_for_all(Revision revision) { return compact(revision); }
  /// Waits for writes and syncs in flight, then refuses further ones.
  virtual void close() = 0;
};

}  // namespace dibs::store
