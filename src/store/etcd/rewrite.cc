#include "store/etcd/rewrite.h"

#include <memory>
#include <optional>

#include "base/log.h"

namespace dibs::store::etcd {
namespace {

constexpr std::size_t kAtOnce = 32;

class Rewriting : public std::enable_shared_from_this<Rewriting> {
 public:
  using Write = std::function<void(const StaleValues::Entry&, Store::Done)>;

  Rewriting(std::vector<StaleValues::Entry> stale, Write write)
      : stale_(std::move(stale)), write_(std::move(write)) {}

  /// Starts what may be under way. One at a time: a callback that comes at once leaves the next to
  /// the loop that made it.
  void go_on() {
    {
      const MutexLock lock(mutex_);
      if (std::exchange(busy_, true)) return;
    }
    while (const auto next = take_next()) {
      write_(stale_[*next], [self = shared_from_this()](const Result<Revision>& written) {
        self->written(written);
      });
    }
  }

 private:
  std::optional<std::size_t> take_next() {
    const MutexLock lock(mutex_);
    if (next_ < stale_.size() && open_ < kAtOnce) {
      ++open_;
      return next_++;
    }
    busy_ = false;
    return std::nullopt;
  }

  void written(const Result<Revision>& result) {
    bool last = false;
    {
      const MutexLock lock(mutex_);
      --open_;
      if (result.ok()) {
        done_ += *result != 0 ? 1 : 0;
      } else if (result.error().code() !=
                 Code::conflict) {  // else somebody has written it just now
        ++failed_;
        error_ = result.error();
      }
      last = next_ == stale_.size() && open_ == 0;
    }
    if (!last) return go_on();
    const MutexLock lock(mutex_);
    if (failed_ == 0) {
      log::info("values on etcd were written anew, as they are encrypted now", {{"values", done_}});
    } else {
      log::warn(
          "values on etcd are still encrypted with an old key, or not: the next start tries again",
          {{"values", failed_}, {"written", done_}, {"error", error_}});
    }
  }

  const std::vector<StaleValues::Entry> stale_;
  const Write write_;
  Mutex mutex_;
  bool busy_ DIBS_GUARDED_BY(mutex_) = false;
  std::size_t next_ DIBS_GUARDED_BY(mutex_) = 0;
  std::size_t open_ DIBS_GUARDED_BY(mutex_) = 0;
  std::size_t done_ DIBS_GUARDED_BY(mutex_) = 0;
  std::size_t failed_ DIBS_GUARDED_BY(mutex_) = 0;
  Error error_ DIBS_GUARDED_BY(mutex_) = Error::unavailable("");
};

}  // namespace

void StaleValues::note(const std::string& key, Revision modified) {
  const MutexLock lock(mutex_);
  if (!taken_) noted_[key] = modified;
}

std::vector<StaleValues::Entry> StaleValues::take() {
  const MutexLock lock(mutex_);
  taken_ = true;
  std::vector<Entry> out(noted_.begin(), noted_.end());
  noted_.clear();
  return out;
}

void rewrite(std::vector<StaleValues::Entry> stale, Rewriting::Write write) {
  if (stale.empty()) return;
  std::make_shared<Rewriting>(std::move(stale), std::move(write))->go_on();
}

}  // namespace dibs::store::etcd
