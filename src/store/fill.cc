#include "store/fill.h"

#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::store {
namespace {

constexpr std::size_t kInFlight = 256;
constexpr int kTries = 5;
/// Revisions that were only counted up are forgotten so often.
constexpr Revision kForgetEvery = 20'000;

bool means_the_same(const FillOptions& options, std::string_view a, std::string_view b) {
  return a == b || (options.same && options.same(a, b));
}

void tell(const FillOptions& options, std::string_view what, std::size_t done, std::size_t all) {
  if (options.progress) options.progress({what, done, all});
}

Op put(std::string_view key, std::string value) {
  return {std::string(key), share(std::move(value)), std::nullopt};
}

Result<> check_place(const Store& store, const FillOptions& options) {
  const RecordPtr mark = store.get(kUnfinished);
  if (mark && !options.resume && !options.overwrite) {
    return Error::already_exists(cat("it was not filled to its end (", *mark->value,
                                     "): --resume goes on with that, --overwrite begins anew"));
  }
  const std::size_t keys = store.count(kObjects) - store.count(kServers);
  if (!mark && keys > 0 && !options.overwrite) {
    return Error::already_exists(
        cat("it holds ", keys, " objects already: choose an empty one, or say --overwrite"));
  }
  return success();
}

/// Counts a store's revision up by writes of the mark, many at a time.
class Advance {
 public:
  Advance(Store& store, const FillOptions& options) : store_(store), options_(options) {}

  Result<> to(Revision wanted) {
    const Revision first = store_.revision();
    for (Revision at = first; at < wanted;) {
      const Revision until = std::min(wanted, at + kForgetEvery);
      DIBS_CHECK(write(static_cast<std::size_t>(until - at)));
      if (store_.revision() == at) return Error::timeout("nothing could be written");
      at = store_.revision();
      DIBS_CHECK(store_.compact(at));
      tell(options_, "revisions", static_cast<std::size_t>(at - first),
           static_cast<std::size_t>(wanted - first));
    }
    return success();
  }

 private:
  Result<> write(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      {
        MutexLock lock(mutex_);
        done_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return in_flight_ < kInFlight; });
        ++in_flight_;
      }
      store_.commit_async({put(kUnfinished, options_.mark)}, [this](const Result<Revision>& made) {
        const MutexLock lock(mutex_);
        // One whose answer was lost may count or not.
        if (!made.ok() && made.error().code() != Code::timeout) failed_ = made.error();
        --in_flight_;
        // Inside of the lock: whoever waits may end this object's life.
        done_.notify_all();
      });
    }
    MutexLock lock(mutex_);
    done_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return in_flight_ == 0; });
    if (failed_) return *failed_;
    return success();
  }

  Store& store_;
  const FillOptions& options_;
  Mutex mutex_;
  CondVar done_;
  std::size_t in_flight_ DIBS_GUARDED_BY(mutex_) = 0;
  std::optional<Error> failed_ DIBS_GUARDED_BY(mutex_);
};

/// Operations, committed in groups that every store takes.
class Groups {
 public:
  explicit Groups(Store& store) : store_(store) {}

  Result<> add(Op op) {
    const std::size_t size = op.key.size() + (op.value ? op.value->size() : 0);
    if (!ops_.empty() && (ops_.size() == kGroupOps || bytes_ + size > kGroupBytes)) {
      DIBS_CHECK(flush());
    }
    bytes_ += size;
    ops_.push_back(std::move(op));
    return success();
  }
  Result<> flush() {
    bytes_ = 0;
    if (ops_.empty()) return success();
    const std::vector<Op> group = std::exchange(ops_, {});
    for (int tries = 1;; ++tries) {
      const auto made = store_.commit(group);
      if (made.ok()) return success();
      // It may have been written, or not: the same once more does no harm.
      if (made.error().code() != Code::timeout || tries == kTries) {
        return made.error().within(group.front().key);
      }
    }
  }

 private:
  Store& store_;
  std::vector<Op> ops_;
  std::size_t bytes_ = 0;
};

/// Walks two states beside each other: `pair` gets every key that one of them has, null for the one
/// that has it not.
template <typename Pair>
Result<> walk(State& wanted, State& there, Pair pair) {
  Item left;
  Item right;
  DIBS_TRY(bool has_left, wanted.next(left));
  DIBS_TRY(bool has_right, there.next(right));
  while (has_left || has_right) {
    const int order = !has_left ? 1 : !has_right ? -1 : left.key.compare(right.key);
    DIBS_CHECK(pair(order <= 0 ? &left : nullptr, order >= 0 ? &right : nullptr));
    if (order <= 0) {
      DIBS_TRY(has_left, wanted.next(left));
    }
    if (order >= 0) {
      DIBS_TRY(has_right, there.next(right));
    }
  }
  return success();
}

}  // namespace

Result<FillCount> fill(Store& store, State& state, const FillOptions& options) {
  DIBS_CHECK(check_place(store, options));
  DIBS_CHECK(store.commit({put(kUnfinished, options.mark)}));
  if (options.advance) DIBS_CHECK(Advance(store, options).to(state.revision()));
  DIBS_TRY(const auto there, state_of(store));
  Groups groups(store);
  FillCount count;
  DIBS_CHECK(walk(state, *there, [&](const Item* wanted, const Item* is) -> Result<> {
    if (wanted == nullptr) {
      ++count.removed;
      return groups.add({is->key, nullptr, std::nullopt});
    }
    tell(options, "keys", ++count.keys, 0);
    // What has an older version than the state counts as another.
    const bool current = is != nullptr && (!options.advance || is->modified > state.revision());
    if (current && means_the_same(options, wanted->value, is->value)) return success();
    ++count.written;
    Op op = put(wanted->key, wanted->value);
    if (options.lifetime) op.lifetime = options.lifetime(wanted->key);
    return groups.add(std::move(op));
  }));
  DIBS_CHECK(groups.flush());
  return count;
}

Result<FillCount> compare(const Store& store, State& state, const FillOptions& options) {
  DIBS_CHECK(state.rewind());
  DIBS_TRY(const auto there, state_of(store));
  FillCount count;
  DIBS_CHECK(walk(state, *there, [&](const Item* wanted, const Item* is) -> Result<> {
    if (wanted == nullptr) {
      return Error::internal(cat("read back, ", is->key, " is there and should not be"));
    }
    // What expires may be gone already.
    if (is == nullptr && options.lifetime && options.lifetime(wanted->key)) return success();
    if (is == nullptr) return Error::internal(cat("read back, ", wanted->key, " is missing"));
    if (!means_the_same(options, wanted->value, is->value)) {
      return Error::internal(cat("read back, ", wanted->key, " has another value"));
    }
    if (options.advance && is->modified <= state.revision()) {
      return Error::internal(cat("read back, ", wanted->key, " has revision ", is->modified,
                                 ", not above ", state.revision()));
    }
    ++count.keys;
    return success();
  }));
  return count;
}

Result<> finish(Store& store) {
  const RecordPtr mark = store.get(kUnfinished);
  if (!mark) return success();
  // Whoever knows a revision of another store must list again: what was removed between that one
  // and the state nobody could tell. A file notes what it has forgotten when it deletes something,
  // which is the mark before this one.
  DIBS_CHECK(store.commit({put(kUnfinished, *mark->value)}));
  DIBS_CHECK(store.compact_for_all(store.revision()));
  DIBS_CHECK(store.commit({{std::string(kUnfinished), nullptr, std::nullopt}}));
  return success();
}

}  // namespace dibs::store
