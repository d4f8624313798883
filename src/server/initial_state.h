#pragma once
// The state that watches begin with, read once and encoded once for all that ask for the same at
// the same time: a thousand of them cost one pass over the objects, and one copy of what is on its
// way to them.

#include <memory>
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
  /// What the watch of the context begins with: all that the selection matches. Errors: of the
  /// store.
  static Result<std::shared_ptr<InitialState>> read(const store::Store& store,
                                                    std::shared_ptr<const Context> context,
                                                    const Selection& selection);

  store::Revision revision() const { return revision_; }
  std::size_t pieces() const { return starts_.size(); }
  /// Lines of events, as of now. Thread-safe. One that nobody has any more is made again.
  SharedBytes piece(std::size_t index, Time now);

 private:
  InitialState(std::shared_ptr<const Context> context, std::vector<store::RecordPtr> records,
               store::Revision revision);

  const std::shared_ptr<const Context> context_;
  const std::vector<store::RecordPtr> records_;
  const store::Revision revision_;
  std::vector<std::size_t> starts_;  // the first record of each piece
  Mutex mutex_;
  std::vector<std::weak_ptr<const std::string>> made_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::server
