#pragma once
// What the messages of a watch mean for the state in memory.

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "store/at_rest.h"
#include "store/etcd/keys.h"
#include "store/mvcc.h"

namespace etcdserverpb {
class KeyValue;
class WatchResponse;
}  // namespace etcdserverpb

namespace dibs::store::etcd {

/// What the writer of a value has of it already.
struct OwnValue {
  SharedBytes value;
  AttachmentPtr attachment;
};
/// Of a value that this store wrote to the key in these bytes just now; null value: it did not.
/// The hand of a removal is its own key.
using FindOwn =
    std::function<OwnValue(const std::string& key, const std::string& bytes, Revision modified)>;

/// Names whose object is kept apart (Keys). Thread-safe.
class ApartNames {
 public:
  bool contains(const std::string& key) const;
  void set(const std::string& key, bool apart);

 private:
  mutable Mutex mutex_;
  std::set<std::string> keys_ DIBS_GUARDED_BY(mutex_);  // as a rule few or none
};

/// Told of each value that AtRest calls stale.
using NoteStale = std::function<void(const std::string& key, Revision modified)>;

/// Makes records of what is on etcd. What cannot be read is kept as such (at_rest.h), with a line
/// in the log.
class Reader {
 public:
  Reader(Commons& commons, std::shared_ptr<const AtRest> at_rest, FindOwn own, NoteStale stale = {})
      : commons_(commons),
        at_rest_(std::move(at_rest)),
        own_(std::move(own)),
        stale_(std::move(stale)) {}
  RecordPtr record(const std::string& key, const etcdserverpb::KeyValue& kv) const;
  void take_hand(const etcdserverpb::KeyValue& kv) const;

 private:
  Commons& commons_;
  const std::shared_ptr<const AtRest> at_rest_;
  const FindOwn own_;
  const NoteStale stale_;
};

/// Gathers messages, in the order they came, on top of a state.
class Digest {
 public:
  struct Parts {
    const Keys& keys;
    const Reader& reader;
    ApartNames& apart;
    /// A message without events says that all before its revision were sent.
    bool trusts_progress = false;
  };
  Digest(const Parts& parts, Revision from) : parts_(parts), from_(from), reached_(from) {}

  /// False when the watch is over with it, and fault() says why.
  bool add(const etcdserverpb::WatchResponse& message);

  bool was_created() const { return created_; }
  const std::string& fault() const { return fault_; }
  /// The history to go on from is gone.
  bool is_expired() const { return expired_; }
  Revision reached() const { return reached_; }
  std::vector<Change> take_changes() { return std::move(changes_); }

 private:
  bool fail(std::string why);

  const Parts parts_;
  const Revision from_;
  Revision reached_;
  std::vector<Change> changes_;
  std::string fault_;
  bool created_ = false;
  bool expired_ = false;
};

}  // namespace dibs::store::etcd
