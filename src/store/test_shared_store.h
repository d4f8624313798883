#pragma once
// For tests under virtual time: a store that several servers share. One log has the truth; each
// server has a view of it that lags behind by a time of the test's choosing, or by chance.
//
// A commit is judged by the log alone, when it arrives there, and acknowledged when the view shows
// it; a conflict is told when the view shows what beat it. sync() ends when the view shows what the
// log had when it was asked. A call that blocks cannot let time pass in a world of one thread: for
// it the view catches up at once. The other ones (…_async) take the time they take.
//
// One thread; what is called back is posted to the executor.

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/runtime.h"
#include "store/batch.h"
#include "store/mvcc.h"
#include "store/store.h"

namespace dibs::store::testing {

/// A time by chance, `least` and `most` included.
struct Delay {
  Duration least = Duration::zero();
  Duration most = Duration::zero();

  Duration draw(runtime::Random& random) const {
    if (most <= least) return least;
    const auto width = static_cast<std::uint64_t>((most - least).count());
    return least + Duration(static_cast<Duration::rep>(random.below(width + 1)));
  }
};

struct ViewDelays {
  Delay lag = {};    // from the log to the view
  Delay reach = {};  // from a call to the log
  /// Who waits makes the view catch up at once: for callers that cannot let time pass.
  bool prompt = false;
};

class SharedView;

/// Outlives its views.
class SharedLog {
 public:
  explicit SharedLog(runtime::Runtime& runtime, Revision first_revision = 1000)
      : runtime_(runtime), state_(std::make_shared<Mvcc>()) {
    state_->start_at(first_revision - 1);
  }
  SharedLog(const SharedLog&) = delete;
  SharedLog& operator=(const SharedLog&) = delete;

  /// Begins with all that is there.
  std::unique_ptr<SharedView> open(ViewDelays delays = {});

  /// What is there in truth.
  RecordPtr get(std::string_view key) const { return state_->get(key); }
  Listing range(std::string_view prefix) const {
    return state_->range({std::string(prefix)}).value();
  }
  Revision revision() const { return state_->revision(); }
  /// As somebody who has no view.
  Result<Revision> commit(std::vector<Op> ops);
  /// Called after each transaction that has changed something.
  void on_written(std::function<void(const std::vector<std::string>& keys)> call) {
    written_ = std::move(call);
  }

 private:
  friend class SharedView;
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 20;

  runtime::Runtime& runtime_;
  const std::shared_ptr<Mvcc> state_;
  std::vector<SharedView*> views_;
  std::function<void(const std::vector<std::string>& keys)> written_;
};

class SharedView : public Store {
 public:
  SharedView(SharedLog& log, ViewDelays delays)
      : log_(log), delays_(delays), state_(std::make_shared<Mvcc>()) {
    const Listing all = log.range("");
    state_->start_at(all.revision);
    std::vector<Garbage> none;
    for (const RecordPtr& record : all.records) state_->load(copied(*record), none);
    log.views_.push_back(this);
  }
  ~SharedView() override { std::erase(log_.views_, this); }
  SharedView(const SharedView&) = delete;
  SharedView& operator=(const SharedView&) = delete;

  // What a test does to it.

  void set_delays(ViewDelays delays) { delays_ = delays; }
  /// Nothing new is shown until release(), but to callers that block.
  void hold() { held_ = true; }
  void release() {
    held_ = false;
    show_due();
  }
  /// Nothing gets through: whoever waits is told that it is unavailable, though a commit of his
  /// may have arrived, or does.
  void cut() {
    cut_ = true;
    for (auto& call : std::exchange(calls_, {})) {
      if (call->ops.empty()) continue;
      if (log_.runtime_.random.below(2) == 1) (void)log_.commit(std::move(call->ops));
      post_done(call->done, out_of_reach());
    }
    for (Waiter& waiter : std::exchange(waiters_, {})) post_done(waiter.done, out_of_reach());
  }
  void heal() {
    cut_ = false;
    show_due();
  }
  /// What it has not shown yet it shows as one difference: the way there is forgotten.
  void lose_history() {
    if (coming_.empty()) return;
    const Revision until = coming_.back().revision;
    std::map<std::string, Change> last;
    for (Transaction& transaction : coming_) {
      for (Change& change : transaction.changes) last[std::string(change.key())] = change;
    }
    coming_.clear();
    std::vector<Change> changes;
    for (auto& [key, change] : last) changes.push_back(std::move(change));
    std::sort(changes.begin(), changes.end(),
              [](const Change& a, const Change& b) { return a.revision < b.revision; });
    auto wakeups = state_->jump(std::move(changes), until);
    wakeups.fire();
    tell();
  }
  /// How many transactions it has not shown yet.
  std::size_t behind() const { return coming_.size(); }

  // Store.

  Result<Revision> commit(std::vector<Op> ops) override {
    if (!reachable()) return out_of_reach();
    auto outcome = log_.commit(std::move(ops));
    catch_up();
    return outcome;
  }
  void commit_async(std::vector<Op> ops, Done done) override {
    if (!reachable()) return post_done(done, out_of_reach());
    if (auto fine = check_ops(ops, SharedLog::kMaxBytes); !fine.ok()) {
      return post_done(done, fine.error());
    }
    call({std::move(ops), std::move(done)});
  }
  Result<> sync() override {
    if (!reachable()) return out_of_reach();
    catch_up();
    return success();
  }
  void sync_async(std::function<void(Result<>)> done) override {
    Done told = [done = std::move(done)](const Result<Revision>& outcome) {
      done(outcome.ok() ? Result<>(success()) : Result<>(outcome.error()));
    };
    if (!reachable()) return post_done(told, out_of_reach());
    call({{}, std::move(told)});
  }

  RecordPtr get(std::string_view key) const override { return state_->get(key); }
  Result<Listing> range(const RangeQuery& query) const override { return state_->range(query); }
  std::size_t count(std::string_view prefix) const override { return state_->count(prefix); }
  Result<std::unique_ptr<Watch>> watch(std::string_view prefix, Revision from,
                                       std::function<void()> ready) override {
    return state_->watch(prefix, from, std::move(ready));
  }
  Revision revision() const override { return state_->revision(); }
  Revision compacted() const override { return state_->compacted(); }
  bool shared() const override { return true; }
  Result<> health() const override {
    if (!reachable()) return out_of_reach();
    return success();
  }
  Result<> compact(Revision revision) override {
    DIBS_CHECK(state_->compact(revision));
    return success();
  }
  void close() override {
    for (auto& call : std::exchange(calls_, {})) arrive(*call);
    catch_up();
    closed_ = true;
  }

 private:
  friend class SharedLog;

  struct Call {
    std::vector<Op> ops;  // none: sync()
    Done done;
  };
  /// Of what the log has answered already.
  struct Waiter {
    Revision until;
    Result<Revision> outcome;
    Done done;
  };
  struct Transaction {
    Duration due;
    Revision revision;
    std::vector<Change> changes;
  };

  static Error out_of_reach() { return Error::unavailable("the log is out of reach"); }
  bool reachable() const { return !cut_ && !closed_; }

  Change copied(const Record& record) const {
    Change change;
    change.revision = record.modified;
    change.now = std::make_shared<const Record>(state_->commons(), record.key, *record.value,
                                                record.created, record.modified);
    return change;
  }

  void call(Call made) {
    const Duration reach = delays_.reach.draw(log_.runtime_.random);
    if (reach == Duration::zero()) return arrive(made);
    calls_.push_back(std::make_shared<Call>(std::move(made)));
    const auto underway = calls_.back();
    log_.runtime_.timers.after(reach, [this, alive = std::weak_ptr<bool>(alive_), underway] {
      if (alive.expired() || std::erase(calls_, underway) == 0) return;
      arrive(*underway);
    });
  }

  void arrive(Call& call) {
    Result<Revision> outcome =
        call.ops.empty() ? Result<Revision>(log_.revision()) : log_.commit(std::move(call.ops));
    if (delays_.prompt) catch_up();
    // A conflict is of something that the log has already.
    waiters_.push_back({outcome.ok() ? *outcome : log_.revision(), outcome, std::move(call.done)});
    tell();
  }

  /// By the log, of each transaction.
  void take(const std::vector<Change>& changes, Revision revision) {
    const Duration now = log_.runtime_.clock.steady();
    Transaction transaction{now + delays_.lag.draw(log_.runtime_.random), revision, {}};
    if (!coming_.empty()) transaction.due = std::max(transaction.due, coming_.back().due);
    for (const Change& change : changes) {
      if (change.now) {
        transaction.changes.push_back(copied(*change.now));
      } else {
        transaction.changes.push_back({change.revision, nullptr, change.removed});
      }
    }
    const Duration wait = transaction.due - now;
    coming_.push_back(std::move(transaction));
    log_.runtime_.timers.after(wait, [this, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) show_due();
    });
  }

  void show_due() {
    if (held_ || cut_) return;
    show([now = log_.runtime_.clock.steady()](const Transaction& next) { return next.due <= now; });
  }
  void catch_up() {
    show([](const Transaction&) { return true; });
  }
  void show(const std::function<bool(const Transaction&)>& is_due) {
    while (!coming_.empty() && is_due(coming_.front())) {
      Transaction next = std::move(coming_.front());
      coming_.pop_front();
      auto wakeups = state_->apply(std::move(next.changes), next.revision);
      wakeups.fire();
    }
    tell();
  }
  void tell() {
    std::vector<Waiter> rest;
    for (Waiter& waiter : std::exchange(waiters_, {})) {
      if (waiter.until > state_->revision()) {
        rest.push_back(std::move(waiter));
      } else {
        post_done(waiter.done, std::move(waiter.outcome));
      }
    }
    waiters_ = std::move(rest);
  }
  void post_done(const Done& done, Result<Revision> outcome) {
    log_.runtime_.executor.post([done, outcome = std::move(outcome)] { done(outcome); });
  }

  SharedLog& log_;
  ViewDelays delays_;
  const std::shared_ptr<Mvcc> state_;
  std::deque<Transaction> coming_;
  std::vector<std::shared_ptr<Call>> calls_;  // that have not reached the log
  std::vector<Waiter> waiters_;
  bool held_ = false;
  bool cut_ = false;
  bool closed_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

inline std::unique_ptr<SharedView> SharedLog::open(ViewDelays delays) {
  return std::make_unique<SharedView>(*this, delays);
}

inline Result<Revision> SharedLog::commit(std::vector<Op> ops) {
  DIBS_CHECK(check_ops(ops, kMaxBytes));
  std::vector<std::string> keys;
  for (const Op& op : ops) keys.push_back(op.key);
  Batch batch(*state_);
  DIBS_TRY(const Revision revision, batch.add(std::move(ops)));
  std::vector<Change> changes = batch.take_changes();
  if (changes.empty()) return revision;
  for (SharedView* view : views_) view->take(changes, revision);
  auto wakeups = state_->apply(std::move(changes), revision);
  wakeups.fire();
  if (written_) written_(keys);
  return revision;
}

}  // namespace dibs::store::testing
