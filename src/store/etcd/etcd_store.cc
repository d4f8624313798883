#include "store/etcd/etcd_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "proto/etcd.pb.h"
#include "runtime/blocking.h"
#include "runtime/real_runtime.h"
#include "store/batch.h"
#include "store/etcd/barrier.h"
#include "store/etcd/client.h"
#include "store/etcd/feed.h"
#include "store/etcd/later.h"
#include "store/etcd/leases.h"
#include "store/etcd/own_values.h"
#include "store/etcd/rewrite.h"
#include "store/etcd/trouble.h"
#include "store/etcd/write.h"
#include "store/mvcc.h"

namespace dibs::store {
namespace etcd {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kOpen = 30s;   // for an etcd to be there
constexpr auto kTry = 5s;     // for one answer
constexpr auto kWrite = 20s;  // for a write with all its tries
constexpr auto kSync = 10s;   // for a read with all its tries
constexpr auto kLookAgain = 1s;
constexpr auto kEnd = 3s;  // for writes in flight to end by themselves

/// A caller that waits for what comes from another thread.
template <typename T>
class Waiter {
 public:
  void finish(Result<T> answer) {
    const MutexLock lock(mutex_);
    answer_ = std::move(answer);
    done_.notify_one();
  }
  Result<T> wait() {
    const runtime::Blocking blocking;
    MutexLock lock(mutex_);
    done_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return answer_.has_value(); });
    return std::move(*answer_);
  }

 private:
  Mutex mutex_;
  CondVar done_;
  std::optional<Result<T>> answer_ DIBS_GUARDED_BY(mutex_);
};

class EtcdStore : public Store {
 public:
  explicit EtcdStore(const StoreOptions& options)
      : options_(options),
        keys_(options.etcd.prefix),
        client_(options.etcd, keys_),
        mvcc_(std::make_shared<Mvcc>(options.history)),
        feed_({client_, keys_, *mvcc_, options.at_rest,
               [this](const std::string& key, const std::string& bytes, Revision modified) {
                 return own_values_.find(key, bytes, modified);
               },
               [this](const std::string& key, Revision modified) { stale_.note(key, modified); }}) {
  }
  ~EtcdStore() override { close(); }

  Result<> open() {
    DIBS_CHECK(feed_.start(kOpen));
    auto stale = stale_.take();
    if (options_.etcd.rewrites) {
      rewrite(std::move(stale), [this](const StaleValues::Entry& one, Done done) {
        rewrite_one(one.first, one.second, std::move(done));
      });
    }
    return success();
  }

  Result<Revision> commit(std::vector<Op> ops) override {
    auto waiter = std::make_shared<Waiter<Revision>>();
    commit_async(std::move(ops),
                 [waiter](Result<Revision> answer) { waiter->finish(std::move(answer)); });
    return waiter->wait();
  }

  void commit_async(std::vector<Op> ops, Done done) override {
    if (auto checked = check(ops); !checked.ok()) return done(std::move(checked).error());
    auto write = std::make_shared<Write>();
    write->ops = std::move(ops);
    send(write, std::move(done));
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
  bool shared() const override { return true; }
  bool expires() const override { return true; }

  Result<> sync() override {
    auto waiter = std::make_shared<Waiter<Nothing>>();
    sync_async([waiter](Result<> answer) { waiter->finish(std::move(answer)); });
    return waiter->wait();
  }

  void sync_async(std::function<void(Result<>)> done) override {
    if (!begin()) return done(Error::unavailable("the store is closed"));
    {
      const MutexLock lock(sync_mutex_);
      sync_waiting_.push_back([this, done = std::move(done)](const Result<>& answer) {
        done(answer);
        end();
      });
      if (std::exchange(sync_busy_, true)) return;
    }
    ask_revision();
  }

  Result<> health() const override {
    if (feed_.connection() == nullptr) return feed_.why_not();
    return trouble_.state();
  }
  Result<> room() const override {
    if (trouble_.is_full()) return trouble_.state();
    return success();
  }

  Result<> compact(Revision revision) override {
    {
      const MutexLock lock(compact_mutex_);
      DIBS_CHECK(mvcc_->compact(revision));
    }
    if (options_.etcd.compacts) compact_etcd(revision);
    return success();
  }

  Result<> compact_for_all(Revision revision) override {
    {
      const MutexLock lock(compact_mutex_);
      DIBS_CHECK(mvcc_->compact(revision));
    }
    if (!begin()) return Error::unavailable("the store is closed");
    auto waiter = std::make_shared<Waiter<Nothing>>();
    compact_now(revision, Clock::now() + kWrite, 0, [this, waiter](Result<> answer) {
      waiter->finish(std::move(answer));
      end();
    });
    return waiter->wait();
  }

  void close() override {
    const MutexLock close_lock(close_mutex_);
    MutexLock lock(mutex_);
    closing_ = true;
    const auto idle = [this]() DIBS_REQUIRES(mutex_) { return in_flight_ == 0; };
    const bool ended = idle_.wait_for(lock, kEnd, idle);
    lock.unlock();
    if (!ended) feed_.stop();  // who waits for its watch has waited long enough
    lock.lock();
    idle_.wait(lock, idle);
    lock.unlock();
    feed_.stop();
    later_.stop();
  }

 private:
  using SharedWrite = std::shared_ptr<Write>;
  using SettleRound = std::shared_ptr<std::vector<SharedWrite>>;
  using SyncRound = std::shared_ptr<std::vector<std::function<void(const Result<>&)>>>;

  // --- what is in flight ---

  /// False when the store is closed.
  bool begin() {
    const MutexLock lock(mutex_);
    if (closing_) return false;
    ++in_flight_;
    return true;
  }
  void end() {
    const MutexLock lock(mutex_);
    if (--in_flight_ == 0) idle_.notify_all();
  }
  /// For what must go on though the store closes.
  void begin_more() {
    const MutexLock lock(mutex_);
    ++in_flight_;
  }
  bool closing() {
    const MutexLock lock(mutex_);
    return closing_;
  }

  // --- writing ---

  void send(const SharedWrite& write, Done done) {
    if (auto sealed = seal(*write, options_.at_rest.get()); !sealed.ok()) {
      return done(std::move(sealed).error());
    }
    if (!begin()) return done(Error::unavailable("the store is closed"));
    write->done = std::move(done);
    write->until = Clock::now() + kWrite;
    // Of a full etcd only deletions are taken, and such a put is none.
    if (write->removes() && write->can_be_settled() && !trouble_.is_full()) {
      write->hand = share(cat(name_, "/", ++removals_));
    }
    own_values_.add(*write);
    attempt(write);
  }

  /// The same value again, if it is still that one.
  void rewrite_one(const std::string& key, Revision modified, Done done) {
    const RecordPtr record = mvcc_->get(key);
    if (!record || record->modified != modified) return done(Revision{0});
    std::string value;
    record->value->append_to(value);
    auto write = std::make_shared<Write>();
    write->ops.push_back({key, share(std::move(value)), modified});
    write->keeps_leases = true;
    send(write, std::move(done));
  }

  Result<> check(const std::vector<Op>& ops) const {
    DIBS_CHECK(check_ops(ops, options_.max_transaction_bytes));
    for (const Op& op : ops) {
      DIBS_CHECK(Keys::check(op.key));
      if (!op.expected) continue;
      // What is newer here already is not older there.
      const RecordPtr record = mvcc_->get(op.key);
      if (record && record->modified > *op.expected && *op.expected != 0) {
        return conflict_error(op, record->modified);
      }
    }
    return success();
  }

  void finish(const SharedWrite& write, Result<Revision> answer) {
    own_values_.remove(*write);
    write->done(std::move(answer));
    end();
  }

  void attempt(const SharedWrite& write) {
    ConnectionPtr connection = feed_.connection();
    if (connection == nullptr) return try_again(write, away());
    for (std::size_t i = 0; i < write->ops.size(); ++i) {
      if (write->ops[i].lifetime && write->leases[i] == 0) {
        return get_lease(write, std::move(connection), i);
      }
    }
    write->known = mvcc_->revision();
    write->barrier = barrier_.at();
    const std::string request =
        encode(*write, keys_, options_.at_rest.get(),
               [this](const std::string& key) { return feed_.is_apart(key); });
    connection->call("/etcdserverpb.KV/Txn", request, kTry,
                     [this, write, connection](const rpc::Reply& reply) {
                       if (reply.status.ok()) {
                         answered(write, connection, reply.bytes);
                       } else {
                         failed(write, connection, reply.status);
                       }
                     });
  }

  void get_lease(const SharedWrite& write, ConnectionPtr connection, std::size_t i) {
    const auto lifetime = std::max<std::chrono::seconds>(
        1s, std::chrono::ceil<std::chrono::seconds>(*write->ops[i].lifetime));
    leases_.get(*connection, lifetime,
                [this, write, connection, i](const Result<Leases::Lease>& lease,
                                             const rpc::Status& status) {
                  if (!lease.ok()) return failed(write, connection, status, false);
                  write->leases[i] = *lease;
                  attempt(write);
                });
  }

  void answered(const SharedWrite& write, const ConnectionPtr& connection,
                const std::string& bytes) {
    const Outcome outcome = decode(*write, keys_, bytes);
    if (outcome.kind == Outcome::Kind::nonsense) {
      return failed(write, connection, {rpc::Code::internal, "not a message of etcd"});
    }
    if (auto same = client_.check(outcome.cluster, outcome.answered, write->known); !same.ok()) {
      feed_.drop(connection, same.error().message());
      return finish(write, same.error().within("etcd"));
    }
    if (outcome.kind == Outcome::Kind::behind_barrier) {
      barrier_.learn(outcome.barrier, outcome.answered);
      return attempt_in_time(write, Error::unavailable("etcd: others settle lost writes"));
    }
    if (outcome.kind == Outcome::Kind::conflict) {
      return feed_.reach(outcome.revision, outcome.ask,
                         [this, write, conflict = outcome.conflict](const Result<>& reached) {
                           finish(write, reached.ok() ? conflict : reached.error());
                         });
    }
    // Deletions are taken on a full one too.
    if (write->puts()) trouble_.end();
    feed_.reach(outcome.revision, outcome.ask,
                [this, write, revision = outcome.revision](Result<> reached) {
                  if (reached.ok()) return finish(write, revision);
                  finish(write, std::move(reached).error());
                });
  }

  /// `sent`: the transaction itself was, and not only what it needs.
  void failed(const SharedWrite& write, const ConnectionPtr& connection, const rpc::Status& status,
              bool sent = true) {
    const Fault fault = fault_of(status);
    const Error error = error_of(fault, status);
    switch (fault) {
      case Fault::away:
        note_trouble(error, false);
        feed_.drop(connection, status.message);
        if (!sent) return try_again(write, error);
        if (!write->can_be_settled()) return finish(write, unknown(error));
        return settle(write);
      case Fault::not_sent:
      case Fault::stale_auth:
        feed_.drop(connection, status.message);
        return try_again(write, error);
      case Fault::busy:
        return try_again(write, error);
      case Fault::no_lease:
        for (auto& lease : write->leases) leases_.forget(std::exchange(lease, 0));
        return try_again(write, error);
      case Fault::no_space:
        note_trouble(error, true);
        if (!write->hand) break;
        own_values_.remove(*write);
        write->hand = nullptr;
        own_values_.add(*write);
        return attempt_in_time(write, error);
      case Fault::denied:
        note_trouble(error, false);
        break;
      default:
        break;
    }
    finish(write, error);
  }

  static Error away() { return Error::unavailable("etcd cannot be reached"); }
  static Error unknown(const Error& error) {
    return Error::timeout(cat(error.message(), " (the write may have been done)"));
  }

  bool is_too_late(const SharedWrite& write) { return closing() || Clock::now() > write->until; }

  void attempt_in_time(const SharedWrite& write, const Error& error) {
    if (is_too_late(write)) return finish(write, error);
    attempt(write);
  }

  void try_again(const SharedWrite& write, const Error& error) {
    if (is_too_late(write)) return finish(write, error);
    ++write->attempts;
    later_.after(pause_before(write->attempts), [this, write] { attempt(write); });
  }

  // --- writes that may have been done ---

  /// Ends with it, or tries it again, when it is known.
  void settle(const SharedWrite& write) {
    {
      const MutexLock lock(settle_mutex_);
      unsettled_.push_back(write);
      if (std::exchange(settle_busy_, true)) return;
    }
    move_barrier();
  }

  /// For all that wait when it starts.
  void move_barrier() {
    auto round = std::make_shared<std::vector<SharedWrite>>();
    {
      const MutexLock lock(settle_mutex_);
      round->swap(unsettled_);
      settle_busy_ = !round->empty();
    }
    if (!round->empty()) move_barrier(round, 0);
  }

  void move_barrier(const SettleRound& round, int attempts) {
    const ConnectionPtr connection = feed_.connection();
    if (connection == nullptr) return move_again(round, attempts, away());
    Revision from = 0;
    for (const auto& write : *round) from = std::max(from, write->barrier);
    const Revision known = mvcc_->revision();
    connection->call("/etcdserverpb.KV/Txn", Barrier::encode_move(keys_, from), kTry,
                     [this, round, attempts, connection, known](const rpc::Reply& reply) {
                       if (!reply.status.ok())
                         return cannot_move(round, attempts, connection, reply.status);
                       const Barrier::Moved moved = Barrier::decode_move(reply.bytes);
                       const auto same = client_.check(moved.cluster, moved.answered, known);
                       if (!same.ok()) {
                         feed_.drop(connection, same.error().message());
                         return move_again(round, attempts, same.error().within("etcd"));
                       }
                       barrier_.learn(moved.at, moved.answered);
                       move_barrier();
                       feed_.reach(moved.answered, !moved.by_this,
                                   [this, round](const Result<>& reached) {
                                     for (const auto& write : *round) settled(write, reached);
                                   });
                     });
  }

  void cannot_move(const SettleRound& round, int attempts, const ConnectionPtr& connection,
                   const rpc::Status& status) {
    const Fault fault = fault_of(status);
    const Error error = error_of(fault, status);
    if (fault == Fault::busy) return move_again(round, attempts, error);
    if (fault == Fault::away || fault == Fault::not_sent || fault == Fault::stale_auth) {
      feed_.drop(connection, status.message);
      return move_again(round, attempts, error);
    }
    note_trouble(error, fault == Fault::no_space);
    move_barrier();
    for (const auto& write : *round) finish(write, unknown(error));
  }

  void move_again(const SettleRound& round, int attempts, const Error& error) {
    const auto late =
        std::stable_partition(round->begin(), round->end(),
                              [this](const SharedWrite& write) { return !is_too_late(write); });
    const std::vector<SharedWrite> ended(late, round->end());
    round->erase(late, round->end());
    if (round->empty()) {
      move_barrier();
    } else {
      later_.after(pause_before(attempts + 1),
                   [this, round, attempts] { move_barrier(round, attempts + 1); });
    }
    for (const auto& write : ended) finish(write, unknown(error));
  }

  /// No earlier try can be done any more, and what was done is in memory.
  void settled(const SharedWrite& write, const Result<>& reached) {
    const auto done = reached.ok() ? done_at(*write) : std::nullopt;
    if (!done)
      return finish(write, unknown(Error::timeout("etcd: the answer to a write was lost")));
    if (*done == 0) return attempt_in_time(write, away());
    if (write->puts()) trouble_.end();
    finish(write, *done);
  }

  /// 0: it was not. Nothing where nobody knows.
  std::optional<Revision> done_at(const Write& write) const {
    if (!feed_.has_seen_all_since(write.known)) return std::nullopt;
    if (write.hand || (write.puts() && !write.removes())) return own_values_.shown(write);
    for (const Op& op : write.ops) {
      if (op.value || op.only_expects) continue;
      const RecordPtr record = mvcc_->get(op.key);
      if (record && record->modified == op.expected) return 0;
    }
    return std::nullopt;
  }

  // --- when nothing can be written ---

  void note_trouble(const Error& error, bool full) {
    if (!trouble_.begin(error, full)) return;
    log::error("etcd takes no writes", {{"error", error}});
    look_again();
  }

  /// Somebody may have mended it though nobody writes.
  void look_again() {
    begin_more();
    later_.after(kLookAgain, [this] {
      const ConnectionPtr connection = feed_.connection();
      if (closing() || !trouble_.is_there()) return end();
      if (connection == nullptr) {
        look_again();
        return end();
      }
      etcdserverpb::PutRequest marker;
      marker.set_key(keys_.marker());
      connection->call("/etcdserverpb.KV/Put", marker.SerializeAsString(), kTry,
                       [this](const rpc::Reply& reply) {
                         if (reply.status.ok()) {
                           trouble_.end();
                         } else {
                           look_again();
                         }
                         end();
                       });
    });
  }

  // --- asking for the revision ---

  /// For all who wait when it starts.
  void ask_revision() {
    auto round = std::make_shared<std::vector<std::function<void(const Result<>&)>>>();
    {
      const MutexLock lock(sync_mutex_);
      round->swap(sync_waiting_);
      sync_busy_ = !round->empty();
    }
    if (!round->empty()) ask_revision(round, Clock::now() + kSync, 0);
  }

  void ask_revision(const SyncRound& round, Clock::time_point until, int attempts) {
    const ConnectionPtr connection = feed_.connection();
    if (connection == nullptr) return ask_again(round, until, attempts, away());
    etcdserverpb::RangeRequest request;
    request.set_key(keys_.probe());
    request.set_limit(1);
    request.set_keys_only(true);
    const Revision known = mvcc_->revision();
    connection->call("/etcdserverpb.KV/Range", request.SerializeAsString(), kTry,
                     [this, round, until, attempts, known, connection](const rpc::Reply& reply) {
                       if (!reply.status.ok()) {
                         const Fault fault = fault_of(reply.status);
                         if (fault != Fault::busy) feed_.drop(connection, reply.status.message);
                         return ask_again(round, until, attempts, error_of(fault, reply.status));
                       }
                       etcdserverpb::RangeResponse answer;
                       const bool parsed = answer.ParseFromString(reply.bytes);
                       const auto same = client_.check(answer.header().cluster_id(),
                                                       answer.header().revision(), known);
                       if (!parsed || !same.ok()) {
                         const std::string why =
                             parsed ? same.error().message() : "not a message of etcd";
                         feed_.drop(connection, why);
                         return ask_again(round, until, attempts, Error::unavailable(why));
                       }
                       answer_round(round, answer.header().revision());
                     });
  }

  void ask_again(const SyncRound& round, Clock::time_point until, int attempts,
                 const Error& error) {
    if (!closing() && Clock::now() < until) {
      return later_.after(pause_before(attempts), [this, round, until, attempts] {
        ask_revision(round, until, attempts + 1);
      });
    }
    ask_revision();
    for (const auto& done : *round) done(error);
  }

  void answer_round(const SyncRound& round, Revision revision) {
    // The next begins without waiting for the watch.
    begin_more();
    ask_revision();
    feed_.reach(revision, true, [this, round](const Result<>& reached) {
      for (const auto& done : *round) done(reached);
      end();
    });
  }

  // --- compaction ---

  /// As kube-apiserver does it, so that of all servers one compacts in each interval: who knows the
  /// version of the key writes it and compacts, who does not learns it.
  void compact_etcd(Revision revision) {
    const ConnectionPtr connection = feed_.connection();
    if (connection == nullptr || !begin()) return;
    etcdserverpb::TxnRequest txn;
    auto& compare = *txn.add_compare();
    compare.set_target(etcdserverpb::Compare::VERSION);
    compare.set_key(std::string(kCompactKey));
    compare.set_version(compact_version_);
    auto& put = *txn.add_success()->mutable_request_put();
    put.set_key(std::string(kCompactKey));
    put.set_value(std::to_string(revision));
    txn.add_failure()->mutable_request_range()->set_key(std::string(kCompactKey));
    connection->call("/etcdserverpb.KV/Txn", txn.SerializeAsString(), kTry,
                     [this, connection, revision](const rpc::Reply& reply) {
                       etcdserverpb::TxnResponse answer;
                       if (!reply.status.ok() || !answer.ParseFromString(reply.bytes)) {
                         log::warn("etcd is not compacted", {{"error", reply.status.message}});
                         return end();
                       }
                       if (answer.succeeded()) {
                         ++compact_version_;
                         compact_at(connection, revision);
                       } else if (!answer.responses().empty() &&
                                  !answer.responses(0).response_range().kvs().empty()) {
                         compact_version_ = answer.responses(0).response_range().kvs(0).version();
                       }
                       end();
                     });
  }

  void compact_at(const ConnectionPtr& connection, Revision revision) {
    begin_more();
    send_compaction(connection, revision, [this, revision](const rpc::Status& status) {
      if (status.ok()) {
        log::debug("compacted etcd", {{"revision", revision}});
      } else {
        log::warn("etcd is not compacted", {{"error", status.message}});
      }
      end();
    });
  }

  /// Whoever's turn it is.
  void compact_now(Revision revision, Clock::time_point until, int attempts,
                   const std::function<void(Result<>)>& done) {
    const auto again = [this, revision, until, attempts, done](const Error& error) {
      if (closing() || Clock::now() > until) return done(error);
      later_.after(pause_before(attempts + 1), [this, revision, until, attempts, done] {
        compact_now(revision, until, attempts + 1, done);
      });
    };
    const ConnectionPtr connection = feed_.connection();
    if (connection == nullptr) return again(away());
    send_compaction(connection, revision, [again, done](const rpc::Status& status) {
      if (status.ok()) return done(success());
      const Fault fault = fault_of(status);
      const Error error = error_of(fault, status).within("it is not compacted");
      if (fault == Fault::denied || fault == Fault::refused) return done(error);
      again(error);
    });
  }

  /// Success also where that revision was forgotten already.
  static void send_compaction(const ConnectionPtr& connection, Revision revision,
                              const std::function<void(const rpc::Status&)>& done) {
    etcdserverpb::CompactionRequest request;
    request.set_revision(revision);
    connection->call("/etcdserverpb.KV/Compact", request.SerializeAsString(), kTry,
                     [done](const rpc::Reply& reply) {
                       const bool before = fault_of(reply.status) == Fault::compacted;
                       done(before ? rpc::Status() : reply.status);
                     });
  }

  const StoreOptions options_;
  const Keys keys_;
  Client client_;
  const std::shared_ptr<Mvcc> mvcc_;
  OwnValues own_values_;
  Barrier barrier_;
  const std::string name_ = runtime::make_uuid(runtime::system_random());
  std::atomic<std::uint64_t> removals_ = 0;
  StaleValues stale_;
  Leases leases_;
  Trouble trouble_;
  std::atomic<std::int64_t> compact_version_ = 0;

  Mutex mutex_;
  CondVar idle_;
  bool closing_ DIBS_GUARDED_BY(mutex_) = false;
  int in_flight_ DIBS_GUARDED_BY(mutex_) = 0;

  Mutex sync_mutex_;
  std::vector<std::function<void(const Result<>&)>> sync_waiting_ DIBS_GUARDED_BY(sync_mutex_);
  bool sync_busy_ DIBS_GUARDED_BY(sync_mutex_) = false;

  Mutex settle_mutex_;
  std::vector<SharedWrite> unsettled_ DIBS_GUARDED_BY(settle_mutex_);
  bool settle_busy_ DIBS_GUARDED_BY(settle_mutex_) = false;

  Mutex compact_mutex_;  // one at a time
  Mutex close_mutex_;
  Later later_;
  Feed feed_;
};

}  // namespace
}  // namespace etcd

Result<std::unique_ptr<Store>> open_etcd_store(const StoreOptions& options) {
  DIBS_CHECK(etcd::Client::check(options.etcd));
  auto store = std::make_unique<etcd::EtcdStore>(options);
  DIBS_CHECK(store->open());
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace dibs::store
