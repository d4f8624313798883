#pragma once
// The key whose revision every write compares (write.h), shared by all servers on one etcd.
//
// It is written only when an answer was lost. Who does not know its revision learns it from the
// first write that is refused for it. Thread-safe.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "store/etcd/keys.h"
#include "store/store.h"

namespace dibs::store::etcd {

class Barrier {
 public:
  /// What a write is to compare: its revision, 0 where there is no such key, as far as is known.
  Revision at() const;
  /// An answer of etcd at `answered` showed it there.
  void learn(Revision at, Revision answered);

  /// The Txn that writes it, unless it is elsewhere than at `from` already: sent twice it does
  /// nothing more.
  static std::string encode_move(const Keys& keys, Revision from);
  struct Moved {
    std::uint64_t cluster = 0;  // 0: not a message of etcd
    Revision answered = 0;
    Revision at = 0;
    bool by_this = false;  // and so `answered` is its revision
  };
  static Moved decode_move(std::string_view bytes);

 private:
  mutable Mutex mutex_;
  Revision at_ DIBS_GUARDED_BY(mutex_) = 0;
  Revision answered_ DIBS_GUARDED_BY(mutex_) = 0;
};

}  // namespace dibs::store::etcd
