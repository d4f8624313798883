#include "drivers/net/ipam/ledger.h"

#include <algorithm>
#include <thread>

#include "base/strings.h"
#include "driver/own_writes.h"
#include "drivers/net/objects/install.h"
#include "runtime/blocking.h"

namespace dibs::drivers::net {
namespace {

// Pods in one write: what is recorded at once stays small.
constexpr std::size_t kBatch = 128;
// Upstream's bound of records that name a pod.
constexpr std::size_t kMostRecords = 5000;
constexpr Duration kFirstPause = std::chrono::milliseconds(1);
constexpr int kPauseDoublings = 5;

}  // namespace

/// What one caller wants of one pool.
struct Ledger::Wish {
  /// Changes the records, or says why not.
  std::function<Result<bool>(PoolRecords& records)> apply;
  // Guarded by the entry's mutex until it is done.
  Result<> outcome = success();
  bool done = false;
};

struct Ledger::Entry {
  Mutex mutex;
  CondVar changed;
  bool writing DIBS_GUARDED_BY(mutex) = false;
  std::thread::id writer DIBS_GUARDED_BY(mutex);
  std::vector<Wish*> waiting DIBS_GUARDED_BY(mutex);
  PoolRecords records DIBS_GUARDED_BY(mutex);
  std::shared_ptr<const IpSet> reserved DIBS_GUARDED_BY(mutex);
  /// A write failed: what is true has to be read.
  bool stale DIBS_GUARDED_BY(mutex) = false;
  std::map<Ip, PoolRecord> written DIBS_GUARDED_BY(mutex);  // their endpoints are

  void load(json::Value object, std::shared_ptr<const IpSet> blocked,
            std::shared_ptr<const IpPool> pool) DIBS_REQUIRES(mutex) {
    reserved = std::move(blocked);
    records = PoolRecords(std::move(object), *reserved, std::move(pool));
  }

  /// Takes over what the informer knows, where that is newer.
  void bring_up(const std::string& pool, const LedgerOptions& options) DIBS_REQUIRES(mutex) {
    auto known = options.known(pool);
    auto blocked = options.reserved();
    const bool newer =
        known && (client::uid_of(known->object) != client::uid_of(records.object()) ||
                  driver::revision_of(known->object) > driver::revision_of(records.object()));
    if (newer) {
      load(std::move(known->object), std::move(blocked), std::move(known->pool));
    } else if (blocked != reserved && records.object().is_object()) {
      load(records.object(), std::move(blocked), nullptr);
    }
  }

  void settle(std::size_t limit) DIBS_REQUIRES(mutex) {
    if (records.status().allocated.size() > limit) {
      records.settle([this](const Ip& ip, const PoolRecord& record) DIBS_REQUIRES(mutex) {
        const auto known = written.find(ip);
        return known != written.end() && known->second == record;
      });
    }
    if (written.size() <= 2 * limit) return;
    std::erase_if(written, [this](const auto& known) DIBS_REQUIRES(mutex) {
      const PoolRecord* record = records.find(known.first);
      return record == nullptr || !(*record == known.second);
    });
  }
};

Ledger::Ledger(client::Client& api, runtime::Runtime& runtime, LedgerOptions options)
    : api_(api), runtime_(runtime), options_(std::move(options)) {}

Ledger::~Ledger() { stop(); }

void Ledger::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  stopping_.notify_all();
}

bool Ledger::stopped() {
  const MutexLock lock(mutex_);
  return stopped_;
}

std::shared_ptr<Ledger::Entry> Ledger::entry(const std::string& pool) {
  const MutexLock lock(mutex_);
  auto& entry = entries_[pool];
  if (entry == nullptr) entry = std::make_shared<Entry>();
  return entry;
}

void Ledger::submit(const std::string& pool, Wish& wish) {
  const auto entry = this->entry(pool);
  MutexLock lock(entry->mutex);
  if (entry->writing && entry->writer == std::this_thread::get_id()) {
    lock.unlock();
    Entry alone;
    {
      const MutexLock inner(alone.mutex);
      alone.stale = true;
    }
    return commit(pool, alone, {&wish});
  }
  entry->waiting.push_back(&wish);
  if (entry->writing) {
    const runtime::Blocking blocking;
    entry->changed.wait(lock,
                        [&]() DIBS_REQUIRES(entry->mutex) { return wish.done || !entry->writing; });
  }
  if (wish.done) return;
  entry->writing = true;
  entry->writer = std::this_thread::get_id();
  while (!wish.done) {
    auto& waiting = entry->waiting;
    const auto end =
        waiting.begin() + static_cast<std::ptrdiff_t>(std::min(kBatch, waiting.size()));
    const std::vector<Wish*> batch(waiting.begin(), end);
    waiting.erase(waiting.begin(), end);
    lock.unlock();
    commit(pool, *entry, batch);
    lock.lock();
    entry->changed.notify_all();
  }
  entry->writing = false;
  entry->changed.notify_all();
}

void Ledger::commit(const std::string& pool, Entry& entry, const std::vector<Wish*>& wishes) {
  int attempt = 0;
  while (!try_commit(pool, entry, wishes, attempt >= options_.tries)) {
    // The first conflict is mostly one with what was not known yet; later ones are with others who
    // write as eagerly.
    if (attempt > 0 && !pause(attempt)) attempt = options_.tries;
    ++attempt;
  }
}

bool Ledger::try_commit(const std::string& pool, Entry& entry, const std::vector<Wish*>& wishes,
                        bool last) {
  MutexLock lock(entry.mutex);
  const auto finish = [&](const std::optional<Error>& error) DIBS_REQUIRES(entry.mutex) {
    for (Wish* wish : wishes) {
      if (error) wish->outcome = *error;
      wish->done = true;
    }
    return true;
  };
  if (stopped()) return finish(Error::unavailable("stopped"));
  bool fresh = entry.stale || !entry.records.object().is_object();
  if (!entry.stale) entry.bring_up(pool, options_);
  if (fresh || !entry.records.object().is_object()) {
    lock.unlock();
    auto object = api_.get(kIpPools, "", pool);
    lock.lock();
    if (!object) return finish(object.error().within(cat("IPPool ", pool)));
    entry.load(std::move(object).value(), options_.reserved(), nullptr);
    entry.stale = false;
    fresh = true;
  }
  if (!entry.records.readable()) return finish(Error::conflict(entry.records.refusal()));
  bool changed = false;
  bool refused = false;
  for (Wish* wish : wishes) {
    auto applied = wish->apply(entry.records);
    wish->outcome = applied ? success() : Result<>(applied.error());
    changed = changed || (applied && *applied);
    refused = refused || !applied;
  }
  if (refused && !fresh) {
    // What is known may be old: what was given back meanwhile counts.
    entry.stale = true;
    return false;
  }
  if (!changed) return finish(std::nullopt);
  entry.settle(options_.records);
  const json::Value object = entry.records.to_object();
  lock.unlock();
  auto written = api_.update_status(kIpPools, "", object);
  lock.lock();
  if (written) {
    entry.records.written(std::move(written).value());
    return finish(std::nullopt);
  }
  entry.stale = true;
  if (written.error().code() == Code::conflict && !last) return false;
  if (written.error().code() == Code::conflict) {
    return finish(Error::unavailable(cat("IPPool ", pool, ": exhaust all retries")));
  }
  return finish(written.error().within(cat("IPPool ", pool)));
}

bool Ledger::pause(int attempt) {
  const Duration longest = kFirstPause * (1 << std::min(attempt, kPauseDoublings));
  const auto share = runtime_.random.below(static_cast<std::uint64_t>(longest.count()));
  const runtime::Blocking blocking;
  MutexLock lock(mutex_);
  return !stopping_.wait_for(lock, Duration(static_cast<std::int64_t>(share)),
                             [this]() DIBS_REQUIRES(mutex_) { return stopped_; });
}

Result<Taken> Ledger::take(const std::string& pool, const std::string& pod, const std::string& uid,
                           const std::vector<Ip>& except) {
  Taken taken;
  taken.held.pool = pool;
  Wish wish;
  wish.apply = [&](PoolRecords& records) -> Result<bool> {
    if (records.status().allocated.size() >= kMostRecords) {
      return Error::conflict("too many addresses wait for their SpiderEndpoints");
    }
    DIBS_TRY(taken.held.ip, records.take(pod, uid, except));
    taken.record = *records.find(taken.held.ip);
    return true;
  };
  submit(pool, wish);
  DIBS_CHECK(wish.outcome);
  return taken;
}

Result<> Ledger::drop(const Taken& taken) {
  Wish wish;
  wish.apply = [&](PoolRecords& records) -> Result<bool> {
    return records.drop(taken.held.ip, taken.record);
  };
  submit(taken.held.pool, wish);
  return wish.outcome;
}

Result<> Ledger::rename(const Held& held, const std::string& pod, const std::string& uid) {
  Wish wish;
  wish.apply = [&](PoolRecords& records) -> Result<bool> {
    const PoolRecord* record = records.find(held.ip);
    return record != nullptr && record->pod == pod && record->uid != uid &&
           records.rename(held.ip, uid);
  };
  submit(held.pool, wish);
  return wish.outcome;
}

void Ledger::forget(const std::string& pool) {
  const MutexLock lock(mutex_);
  entries_.erase(pool);
}

void Ledger::endpoint_written(const Taken& taken) {
  const auto entry = this->entry(taken.held.pool);
  const MutexLock lock(entry->mutex);
  entry->written[taken.held.ip] = taken.record;
}

std::optional<PoolRecord> Ledger::record(const Held& held) {
  const auto entry = this->entry(held.pool);
  const MutexLock lock(entry->mutex);
  if (!entry->writing) entry->bring_up(held.pool, options_);
  const PoolRecord* record = entry->records.find(held.ip);
  if (record == nullptr) return std::nullopt;
  return *record;
}

Result<std::int64_t> Ledger::room(const std::string& pool, const std::string& uid,
                                  const std::vector<Ip>& except, bool fresh) {
  const auto count = [&](const PoolRecords& records) -> Result<std::int64_t> {
    if (!records.refusal().empty()) return Error::conflict(records.refusal());
    const auto room =
        records.free_count() + static_cast<std::int64_t>(records.of_pod(uid, except).size());
    if (room == 0) return Error::conflict(std::string(kUsedOut));
    return room;
  };
  if (fresh) {
    DIBS_TRY(auto object, api_.get(kIpPools, "", pool));
    return count(PoolRecords(std::move(object), *options_.reserved()));
  }
  const auto entry = this->entry(pool);
  const MutexLock lock(entry->mutex);
  if (!entry->writing) entry->bring_up(pool, options_);
  return count(entry->records);
}

}  // namespace dibs::drivers::net
