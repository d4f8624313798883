#include "store/sqlite_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "runtime/blocking.h"
#include "store/ballast.h"
#include "store/batch.h"
#include "store/sqlite_log.h"

namespace dibs::store {
namespace {

/// Rows deleted along with a group, and in a transaction of their own when nobody writes.
constexpr std::size_t kGarbageWithGroup = 256;
constexpr std::size_t kGarbageAlone = 1024;
/// On a full disk, where each touches a page of the write-ahead log.
constexpr std::size_t kGarbageScarce = 32;

/// A transaction on its way, and who gets its outcome.
struct Pending {
  std::vector<Op> ops;
  std::size_t bytes = 0;
  Store::Done done;
  bool frees = false;  // taken on a full disk
};
using Group = std::vector<Pending>;

bool all_free(const std::vector<Op>& ops) {
  return std::all_of(ops.begin(), ops.end(),
                     [](const Op& op) { return op.value == nullptr || op.frees; });
}

Error disk_full() {
  return Error::unavailable(
      "the disk is full (database space exceeded): only deletions are taken until there is room "
      "again");
}

/// A caller of commit() and its answer. Shared, so that the writer may wake the caller after
/// unlocking.
class Waiter {
 public:
  Result<Revision> wait() {
    MutexLock lock(mutex_);
    runtime::Blocking blocking;
    done_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return answer_.has_value(); });
    return std::move(*answer_);
  }
  void finish(Result<Revision> answer) {
    {
      const MutexLock lock(mutex_);
      answer_ = std::move(answer);
    }
    done_.notify_one();
  }

 private:
  Mutex mutex_;
  CondVar done_;
  std::optional<Result<Revision>> answer_ DIBS_GUARDED_BY(mutex_);
};

class SqliteStore : public Store {
 public:
  explicit SqliteStore(const SqliteOptions& options)
      : options_(options),
        mvcc_(std::make_shared<Mvcc>(options.history)),
        ballast_(*options.disk, options.path + ".ballast", options.ballast_bytes) {}
  ~SqliteStore() override { close(); }

  Result<> open() {
    std::vector<Garbage> garbage;
    DIBS_CHECK(open_log(garbage));
    if (mvcc_->revision() == 0) mvcc_->start_at(options_.first_revision - 1);
    {
      const MutexLock lock(mutex_);
      garbage_.assign(std::make_move_iterator(garbage.begin()),
                      std::make_move_iterator(garbage.end()));
    }
    writer_ = std::thread([this] { write_groups(); });
    maintainer_ = std::thread([this] { maintain(); });
    return success();
  }

  Result<Revision> commit(std::vector<Op> ops) override {
    auto waiter = std::make_shared<Waiter>();
    commit_async(std::move(ops),
                 [waiter](Result<Revision> answer) { waiter->finish(std::move(answer)); });
    return waiter->wait();
  }

  void commit_async(std::vector<Op> ops, Done done) override {
    if (auto checked = check_ops(ops, options_.max_transaction_bytes); !checked.ok()) {
      return done(std::move(checked).error());
    }
    const std::size_t bytes = bytes_of(ops);
    const bool frees = all_free(ops);
    if (full_ && !frees) return done(disk_full());
    bool wake = false;
    {
      MutexLock lock(mutex_);
      if (closing_) {
        lock.unlock();
        return done(Error::unavailable("the store is closed"));
      }
      queue_.push_back({std::move(ops), bytes, std::move(done), frees});
      wake = std::exchange(writer_waits_, false);
    }
    if (wake) work_.notify_one();
  }

  RecordPtr get(std::string_view key) const override { return mvcc_->get(key); }
  Result<Listing> range(const RangeQuery& query) const override { return mvcc_->range(query); }
  std::size_t count(std::string_view prefix) const override { return mvcc_->count(prefix); }
  Result<std::unique_ptr<Watch>> watch(std::string_view prefix, Revision from,
                                       std::function<void()> ready) override {
    return mvcc_->watch(prefix, from, std::move(ready));
  }
  Revision revision() const override { return mvcc_->revision(); }
  Revision compacted() const override { return mvcc_->compacted(); }
  Result<> sync() override { return success(); }
  Result<> health() const override {
    const MutexLock lock(mutex_);
    if (broken_) return *broken_;
    return success();
  }
  Result<> room() const override {
    if (full_) return disk_full();
    return success();
  }

  Result<> compact(Revision revision) override {
    const MutexLock compact_lock(compact_mutex_);
    DIBS_TRY(auto garbage, mvcc_->compact(revision));
    if (garbage.empty()) return success();
    {
      const MutexLock lock(mutex_);
      garbage_.insert(garbage_.end(), std::make_move_iterator(garbage.begin()),
                      std::make_move_iterator(garbage.end()));
      garbage_blocked_ = false;
    }
    work_.notify_one();
    return success();
  }

  void close() override {
    const MutexLock close_lock(close_mutex_);
    {
      const MutexLock lock(mutex_);
      closing_ = true;
    }
    work_.notify_one();
    chores_.notify_one();
    if (writer_.joinable()) writer_.join();
    if (maintainer_.joinable()) maintainer_.join();
    log_.reset();
  }

 private:
  /// On a full disk not even the companions of the file can be made: the ballast is for that too.
  Result<> open_log(std::vector<Garbage>& garbage) {
    const SqliteLog::Loader loader{
        .begin = [&](Revision compacted) { mvcc_->start_at(compacted); },
        .change = [&](Change change) { return mvcc_->load(std::move(change), garbage); },
        .commons = mvcc_->commons()};
    const SqliteLogOptions options{*options_.disk, options_.path, options_.max_pages,
                                   options_.at_rest};
    auto opened = SqliteLog::open(options, loader);
    // Once something has been loaded, it cannot be loaded again.
    if (!opened.ok() && is_full(opened.error()) && mvcc_->revision() == 0 && ballast_.release()) {
      opened = SqliteLog::open(options, loader);
    }
    DIBS_TRY(log_, std::move(opened));
    if (options_.ballast_bytes > 0 && !ballast_.take() && !has_room_inside(0)) begin_scarcity();
    return success();
  }

  /// Waits for something to write. False when the store closes and nothing is left.
  bool take(Group& group, std::vector<Garbage>& garbage) {
    MutexLock lock(mutex_);
    const auto is_due = [this]() DIBS_REQUIRES(mutex_) {
      writer_waits_ = !closing_ && queue_.empty() && (garbage_.empty() || garbage_blocked_);
      return !writer_waits_;
    };
    if (full_ || broken_) {
      work_.wait_for(lock, options_.room_interval, is_due);
    } else {
      work_.wait(lock, is_due);
    }
    std::size_t bytes = 0;
    while (!queue_.empty() && group.size() < options_.group_transactions &&
           bytes < options_.group_bytes) {
      bytes += queue_.front().bytes;
      group.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    if (group.empty() && closing_) return false;
    // At least twice as much as comes in, so that the pile shrinks under load too.
    const std::size_t usual =
        group.empty() ? kGarbageAlone : std::max(kGarbageWithGroup, group.size() * 2);
    const std::size_t limit = full_ ? kGarbageScarce : usual;
    const auto end =
        garbage_.begin() + static_cast<std::ptrdiff_t>(std::min(limit, garbage_.size()));
    garbage.assign(std::make_move_iterator(garbage_.begin()), std::make_move_iterator(end));
    garbage_.erase(garbage_.begin(), end);
    return true;
  }

  void put_back(std::vector<Garbage> garbage) {
    const MutexLock lock(mutex_);
    garbage_.insert(garbage_.begin(), std::make_move_iterator(garbage.begin()),
                    std::make_move_iterator(garbage.end()));
    garbage_blocked_ = true;
  }

  void write_groups() {
    while (true) {
      Group group;
      std::vector<Garbage> garbage;
      if (!take(group, garbage)) return;
      if (full_) look_for_room();
      if (group.empty()) look_whether_it_works();
      if (group.empty() && garbage.empty()) continue;
      // Without the ballast ordinary writes live on room inside of the file.
      if (!full_ && options_.ballast_bytes > 0 && !ballast_.is_held() && !has_room_inside(0)) {
        begin_scarcity();
      }
      if (full_) refuse_all_but_freeing(group);
      write_group(group, std::move(garbage));
      request_chores();
    }
  }

  void write_group(Group& group, std::vector<Garbage> garbage) {
    Batch batch(*mvcc_);
    std::vector<Result<Revision>> answers;
    answers.reserve(group.size());
    for (Pending& pending : group) {
      // What frees may have to be written once more.
      answers.push_back(batch.add(pending.frees ? pending.ops : std::move(pending.ops)));
    }

    if (!batch.changes().empty() || !garbage.empty()) {
      auto written = log_->write(batch.changes(), garbage, mvcc_->compacted());
      if (!written.ok() && !garbage.empty() && !batch.changes().empty()) {
        // Deleting can wait, and may be what failed.
        put_back(std::exchange(garbage, {}));
        written = log_->write(batch.changes(), {}, 0);
      }
      if (!written.ok() && is_first_sign_of_scarcity()) {
        begin_scarcity();
        refuse_all_but_freeing(group);
        return write_group(group, std::move(garbage));
      }
      if (!written.ok()) {
        // A conflict may have been one with a write that did not come about.
        const bool scarce = full_ && log_->was_full();
        put_back(std::move(garbage));
        if (!scarce) note_failure(written.error());
        for (const Pending& pending : group) pending.done(scarce ? disk_full() : written.error());
        // A full disk may have room in the write-ahead log once that starts again.
        log_->checkpoint_all();
        return;
      }
      note_success(!garbage.empty());
    }
    mvcc_->apply(batch.take_changes(), batch.revision()).fire();
    for (std::size_t i = 0; i < group.size(); ++i) group[i].done(std::move(answers[i]));
  }

  // --- a disk that fails ---

  void note_failure(const Error& error) {
    bool first = false;
    {
      const MutexLock lock(mutex_);
      first = !broken_;
      broken_ = error;
    }
    if (first) log::error("cannot write", {{"file", options_.path}, {"error", error.message()}});
  }

  void note_success(bool unblocks) {
    bool was_broken = false;
    {
      const MutexLock lock(mutex_);
      was_broken = broken_.has_value();
      broken_.reset();
      // What could not be deleted may be now.
      if (unblocks || was_broken) garbage_blocked_ = false;
    }
    if (was_broken) log::info("can write again", {{"file", options_.path}});
  }

  /// Who sees that the store is not healthy sends no more writes that would show it is again.
  void look_whether_it_works() {
    if (health().ok()) return;
    if (log_->probe().ok()) note_success(true);
  }

  // --- a full disk ---

  bool is_first_sign_of_scarcity() const {
    return log_->was_full() && !full_ && options_.ballast_bytes > 0;
  }

  /// The ballast becomes room, and so does the write-ahead log.
  void begin_scarcity() {
    log::error("the disk is full: only deletions are taken until there is room again",
               {{"file", options_.path}});
    full_ = true;
    ballast_.release();
    log_->checkpoint_and_shrink();
  }

  void refuse_all_but_freeing(Group& group) {
    std::erase_if(group, [](Pending& pending) {
      if (!pending.frees) pending.done(disk_full());
      return !pending.frees;
    });
  }

  /// Whether the file itself has as much as the ballast would keep, and `more`.
  bool has_room_inside(std::size_t more) const {
    return log_->free_bytes() >= options_.ballast_bytes + more;
  }

  /// Deletions make room inside of the file once their history is forgotten, others on the disk.
  void look_for_room() {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < options_.room_interval) return;
    looked_ = now;
    {
      // What could not be deleted may be now.
      const MutexLock lock(mutex_);
      garbage_blocked_ = false;
    }
    if (!ballast_.take() && !has_room_inside(options_.ballast_bytes / 4)) return;
    full_ = false;
    log::info("there is room on the disk again", {{"file", options_.path}});
  }

  void request_chores() {
    // Once for every so many pages: each time costs two waits for the disk.
    const std::size_t pages = log_->wal_pages();
    if (pages < asked_at_) asked_at_ = 0;
    const bool checkpoint = pages >= asked_at_ + options_.checkpoint_pages;
    if (checkpoint) asked_at_ = pages;
    const bool compact = mvcc_->compaction_due() != 0;
    if (checkpoint || compact) {
      {
        const MutexLock lock(mutex_);
        checkpoint_wanted_ = checkpoint_wanted_ || checkpoint;
        compact_wanted_ = compact_wanted_ || compact;
      }
      chores_.notify_one();
    }
    // Under steady load there are always new pages behind the checkpoint, and the log would grow
    // without end: the writer stops for the short rest, after which the log begins anew.
    if (log_->wal_pages() >= options_.max_wal_pages) log_->checkpoint_all();
  }

  void maintain() {
    bool failing = false;
    MutexLock lock(mutex_);
    while (true) {
      chores_.wait(lock, [this]() DIBS_REQUIRES(mutex_) {
        return closing_ || checkpoint_wanted_ || compact_wanted_;
      });
      if (closing_) return;
      const bool checkpoint = std::exchange(checkpoint_wanted_, false);
      const bool compact_now = std::exchange(compact_wanted_, false);
      lock.unlock();
      if (compact_now) {
        // Cannot fail: the revision was taken from the history.
        if (const Revision due = mvcc_->compaction_due(); due != 0) (void)compact(due);
      }
      if (checkpoint) {
        const auto moved = log_->checkpoint();
        if (!moved.ok() && !failing) {
          log::error("cannot move the write-ahead log into the file, which grows",
                     {{"file", options_.path}, {"error", moved.error().message()}});
        }
        failing = !moved.ok();
      }
      lock.lock();
    }
  }

  const SqliteOptions options_;
  const std::shared_ptr<Mvcc> mvcc_;
  std::unique_ptr<SqliteLog> log_;

  mutable Mutex mutex_;
  CondVar work_;                                         // for the writer
  CondVar chores_;                                       // for the maintainer
  std::deque<Pending> queue_ DIBS_GUARDED_BY(mutex_);    // as long as there are callers
  bool writer_waits_ DIBS_GUARDED_BY(mutex_) = false;    // nobody has woken it since
  std::deque<Garbage> garbage_ DIBS_GUARDED_BY(mutex_);  // rows to delete
  /// Deleting failed: wait for the next write.
  bool garbage_blocked_ DIBS_GUARDED_BY(mutex_) = false;
  bool checkpoint_wanted_ DIBS_GUARDED_BY(mutex_) = false;
  bool compact_wanted_ DIBS_GUARDED_BY(mutex_) = false;
  bool closing_ DIBS_GUARDED_BY(mutex_) = false;
  std::optional<Error> broken_ DIBS_GUARDED_BY(mutex_);  // why the last write failed

  std::atomic<bool> full_ = false;  // changed by the writer alone

  // Of the writer alone, once it runs.
  Ballast ballast_;
  std::chrono::steady_clock::time_point looked_ = {};  // for room
  std::size_t asked_at_ = 0;  // the length of the write-ahead log when a checkpoint was asked for

  Mutex compact_mutex_;  // one compaction at a time; taken before mutex_
  Mutex close_mutex_;
  std::thread writer_;
  std::thread maintainer_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteOptions& options) {
  auto store = std::make_unique<SqliteStore>(options);
  DIBS_CHECK(store->open());
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace dibs::store
