#pragma once
// The state that watches begin with, read once and encoded once for all that ask for the same at
// the same time: a thousand of them cost one pass over the objects, and one copy of what is on its
// way to them. Where a webhook converts, what is long is converted piece by piece, when somebody
// takes it.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/result.h"
#include "server/context.h"
#include "server/selection.h"
#include "store/store.h"

namespace dibs::server {

class InitialState {
 public:
  /// What the watch of the context begins with: all that the selection matches. It gives its seat
  /// up where a webhook is to be waited for. Errors: of the store, of that webhook.
  static Result<std::shared_ptr<InitialState>> read(const store::Store& store,
                                                    std::shared_ptr<Context> context,
                                                    const Selection& selection);

  store::Revision revision() const { return revision_; }
  std::size_t pieces() const { return starts_.size(); }
  /// Lines of events, as of now. Thread-safe. One that nobody has any more is made again. Errors:
  /// of a conversion webhook; too_many_requests as well where somebody else waits for it at the
  /// moment.
  Result<SharedBytes> piece(std::size_t index, Time now);

 private:
  std::string lines(std::size_t begin, std::size_t end, const Value* served, Time now) const;

  InitialState(std::shared_ptr<const Context> context, std::vector<store::RecordPtr> records,
               std::vector<Value> served, store::Revision revision);

  const std::shared_ptr<const Context> context_;
  const std::vector<store::RecordPtr> records_;
  const std::vector<Value> served_;  // the same, where a webhook converts and it is not long
  const store::Revision revision_;
  std::vector<std::size_t> starts_;  // the first record of each piece
  Mutex mutex_;
  std::vector<std::weak_ptr<const std::string>> made_ DIBS_GUARDED_BY(mutex_);
  std::set<std::size_t> converting_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::server
