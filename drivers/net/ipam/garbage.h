#pragma once
// Frees addresses that nobody has any more: endpoints whose pod is gone, records that no endpoint
// names, settled addresses without an endpoint (collector.h). ipam.h has the order of writes that
// makes it exact.

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "base/mutex.h"
#include "drivers/net/ipam/collecting.h"

namespace dibs::drivers::net {

class Garbage {
 public:
  explicit Garbage(Collecting& shared) : shared_(shared), endpoints_(shared.api) {}

  /// What the informer of endpoints says; `after` null: it is gone. Any thread.
  void endpoint_changed(const json::Value* before, const json::Value* after);

  /// The endpoint with this key and its pod.
  client::WorkOutcome look_at_endpoint(const std::string& key);
  /// The records of a pool.
  client::WorkOutcome look_at_records(const std::string& pool);

 private:
  using RecordKey = std::tuple<std::string, Ip, std::string, std::int64_t>;
  enum class Verdict : std::uint8_t { keep, drop, later, again };

  /// How long its addresses stay: nothing for good, zero when they are free.
  Result<std::optional<Duration>> time_left(const Endpoint& endpoint, const json::Value& pod);
  Result<bool> is_kept_by_set(const Endpoint& endpoint);
  Result<> free_endpoint(const std::string& key);

  /// Once; false: another one was faster.
  Result<bool> clean(const std::string& pool, std::optional<Duration>& again);
  Result<Verdict> judge_record(const Held& held, const PoolRecord& record,
                               std::optional<Duration>& again);
  Result<Verdict> fence(const Held& held, const PoolRecord& record);
  Result<bool> is_live(const PoolRecord& record);
  Result<IpSet> unnamed(const std::string& pool, const IpSet& settled,
                        std::optional<Duration>& again);
  void forget(const std::string& pool, const std::map<Ip, PoolRecord>& present);
  bool names(const Held& held, const PoolRecord& record, bool* same_uid);

  Collecting& shared_;
  Endpoints endpoints_;
  std::map<RecordKey, Duration> first_seen_;  // of records of live pods that nobody names
  Duration next_list_{0};
  std::uint64_t fences_ = 0;
  Mutex mutex_;
  std::map<std::string, IpSet> named_ DIBS_GUARDED_BY(mutex_);  // by endpoints, by pool
};

}  // namespace dibs::drivers::net
