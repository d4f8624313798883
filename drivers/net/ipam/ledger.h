#pragma once
// Writes the records of pools (records.h), for all who ask at once.
//
// Who asks while nobody writes the pool writes for everybody that has come until then; the others
// wait for it. A write that is refused because another process was faster is decided anew on what
// that one wrote: at once the first time, then after a pause that grows. What stands in memory is
// as new as the last write here, or as the informer's object.
//
// Thread-safe; calls block. In a simulation, where one thread does everything, who would wait for
// himself writes alone.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "client/client.h"
#include "drivers/net/ipam/endpoint.h"
#include "drivers/net/ipam/records.h"
#include "runtime/runtime.h"

namespace dibs::drivers::net {

/// What is known of a pool without a request.
struct KnownPool {
  json::Value object;
  std::shared_ptr<const IpPool> pool;  // null: the object is wrong
};

struct LedgerOptions {
  int tries = 30;
  std::size_t records = 256;
  /// The informer's; nothing where the pool is not known.
  std::function<std::optional<KnownPool>(const std::string& pool)> known = {};
  std::function<std::shared_ptr<const IpSet>()> reserved = {};
};

/// An address with the record that was written for it.
struct Taken {
  Held held;
  PoolRecord record;
};

class Ledger {
 public:
  /// `api` and `runtime` must outlive it.
  Ledger(client::Client& api, runtime::Runtime& runtime, LedgerOptions options);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Calls that wait end with an error, later ones at once.
  void stop();

  /// `except`: addresses that the pod uses already. Errors: conflict, with the reason alone, when
  /// this pool has none for it; any other when it is not known.
  Result<Taken> take(const std::string& pool, const std::string& pod, const std::string& uid,
                     const std::vector<Ip>& except);
  /// Success where the record is not this one any more.
  Result<> drop(const Taken& taken);
  /// The pod of that name has a new uid. Success where the record is not of that pod.
  Result<> rename(const Held& held, const std::string& pod, const std::string& uid);
  /// The pool is gone.
  void forget(const std::string& pool);
  /// The endpoint that names it is written: it may settle.
  void endpoint_written(const Taken& taken);

  /// The record as it is known now; nothing where the address is free or settled.
  std::optional<PoolRecord> record(const Held& held);
  /// How many addresses take() could give this pod; the error says why none. `fresh` asks the
  /// server.
  Result<std::int64_t> room(const std::string& pool, const std::string& uid,
                            const std::vector<Ip>& except, bool fresh = false);

 private:
  struct Wish;
  struct Entry;
  std::shared_ptr<Entry> entry(const std::string& pool);
  void submit(const std::string& pool, Wish& wish);
  void commit(const std::string& pool, Entry& entry, const std::vector<Wish*>& wishes);
  /// Once: decides and writes. False: to be done again.
  bool try_commit(const std::string& pool, Entry& entry, const std::vector<Wish*>& wishes,
                  bool last);
  bool pause(int attempt);
  bool stopped();

  client::Client& api_;
  runtime::Runtime& runtime_;
  const LedgerOptions options_;
  Mutex mutex_;
  CondVar stopping_;
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::shared_ptr<Entry>> entries_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::drivers::net
