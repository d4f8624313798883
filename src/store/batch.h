#pragma once
// Transactions checked one after the other against the state and against each other, before any is
// written.

#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/mvcc.h"
#include "store/store.h"

namespace dibs::store {

/// At most this many operations share a revision; the SQLite log counts them in 16 bits.
constexpr std::size_t kMaxOps = 65536;

/// What does not depend on the state: some operation, no key twice or empty, not too large.
Result<> check_ops(const std::vector<Op>& ops, std::size_t max_bytes);
std::size_t bytes_of(const std::vector<Op>& ops);
/// `is`: the revision of the key's value; 0: it does not exist.
Error conflict_error(const Op& op, Revision is);

class Batch {
 public:
  /// Nobody else may write to `state` while the batch lives.
  explicit Batch(const Mvcc& state) : state_(state), revision_(state.revision()) {}

  /// The revision that these operations will have. On conflict the batch is as before.
  Result<Revision> add(std::vector<Op> ops);

  const std::vector<Change>& changes() const { return changes_; }
  std::vector<Change> take_changes() { return std::move(changes_); }
  Revision revision() const { return revision_; }

 private:
  RecordPtr find(const std::string& key) const;

  const Mvcc& state_;
  Revision revision_;
  std::vector<Change> changes_;
  /// The last change of a key in this batch; null: removed.
  std::unordered_map<std::string, RecordPtr> changed_;
};

}  // namespace dibs::store
