#pragma once
// One transaction on its way to etcd, and what its answer means.
//
// It becomes one Txn: compares of mod_revision for what is expected, puts and deletions, and in the
// other branch reads of what was compared. When an answer is lost, the transaction may have been
// done: tried again, its compares then fail on its own work, which is recognized by the bytes.
// Where they fail and its work is not there, it may have been done and undone by another; to call
// that a conflict would let the writer do it a second time, so nobody is told more than that it is
// unknown.

#include <chrono>
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
  Store::Done done;
  std::chrono::steady_clock::time_point until = {};
  int attempts = 0;
  /// An earlier try may have been done.
  bool unsure = false;
  Revision known = 0;  // in memory when it was tried

  /// Every operation expects something, so that a second try can tell.
  bool can_be_repeated() const;
  bool puts() const;
  /// A second try of what only creates must not write: the first may have been done, and its object
  /// deleted by another since, so that it would be made twice. A version, in contrast, never comes
  /// back.
  bool only_looks() const;
};

/// Errors: of AtRest.
Result<> seal(Write& write, const AtRest* at_rest);

/// The bytes of the Txn. `is_apart`: where the objects are now.
std::string encode(const Write& write, const Keys& keys, const AtRest* at_rest,
                   const std::function<bool(const std::string&)>& is_apart);

struct Outcome {
  enum class Kind { done, conflict, unknown, nonsense } kind = Kind::nonsense;
  std::uint64_t cluster = 0;
  Revision answered = 0;  // etcd's revision
  Revision revision = 0;  // of the write, or of what beat it
  /// The revision may be of a key that is not ours.
  bool ask = false;
  Error conflict = Error::conflict("");
};
Outcome decode(const Write& write, const Keys& keys, std::string_view bytes);

}  // namespace dibs::store::etcd
