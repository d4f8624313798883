#pragma once
// One transaction on its way to etcd, and what its answer means.
//
// It becomes one Txn: compares of mod_revision for what is expected, puts and deletions, and in the
// other branch reads of what was compared.
//
// When an answer is lost, the transaction may have been done, or may still be done: a member that
// hangs, or a message that is late, brings it up when everybody else has gone on. Two keys of ours
// make it known which. Every Txn compares the revision of the barrier; once that key was written
// anew, no Txn from before can be done any more, whatever becomes of the objects. And from then on
// the watch has shown the transaction if it was done: by its bytes, which are nobody else's, or,
// where it removes something, which shows nobody's hand, by what it put to a key for that. So it
// was done at a revision that is known, or it is sent again.

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/at_rest.h"
#include "store/etcd/keys.h"
#include "store/store.h"

namespace dibs::store::etcd {

struct Write {
  std::vector<Op> ops;
  std::vector<SharedBytes> sealed;   // by operation; null removes
  std::vector<bool> apart;           // by operation: where its value goes
  std::vector<std::int64_t> leases;  // by operation; 0: none
  bool keeps_leases = false;         // of what is replaced, instead of those
  SharedBytes hand;                  // null: none is put
  Store::Done done;
  std::chrono::steady_clock::time_point until = {};
  int attempts = 0;
  Revision known = 0;    // in memory when it was tried
  Revision barrier = 0;  // it is done only if that is still the barrier's

  /// Every operation expects something. What does not, could be taken for another's, who writes the
  /// same: where it may have been done, nobody knows.
  bool can_be_settled() const;
  bool puts() const;
  /// It cannot be done without removing something.
  bool removes() const;
};

/// Errors: of AtRest.
Result<> seal(Write& write, const AtRest* at_rest);

/// The bytes of the Txn. `is_apart`: where the objects are now.
std::string encode(const Write& write, const Keys& keys, const AtRest* at_rest,
                   const std::function<bool(const std::string&)>& is_apart);

struct Outcome {
  enum class Kind { done, conflict, behind_barrier, nonsense } kind = Kind::nonsense;
  std::uint64_t cluster = 0;
  Revision answered = 0;  // etcd's revision
  Revision revision = 0;  // of the write, or of what beat it
  Revision barrier = 0;   // where it is, for what was not done
  /// The revision may be of a key that is not ours.
  bool ask = false;
  Error conflict = Error::conflict("");
};
Outcome decode(const Write& write, const Keys& keys, std::string_view bytes);

}  // namespace dibs::store::etcd
