#pragma once
// The records of one pool, as of one version of the object, and what is free beside them. Pure.
//
// status.allocatedIPs names the pod of an address, status.settledIPs only the address: then the
// pod's endpoint says whose it is. Records settle when there are many, and only after their
// endpoint was written, so that a write stays small however large the pool is.
//
// Taking the lowest free address takes O(log n) of the ranges that the pool is made of.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/model/ip_pool.h"
#include "json/value.h"

namespace dibs::drivers::net {

/// Upstream's words.
inline constexpr std::string_view kUsedOut = "all IP addresses used out";

class PoolRecords {
 public:
  PoolRecords() = default;
  /// `pool` null: parsed here. `reserved`: addresses that are not handed out.
  PoolRecords(json::Value object, const IpSet& reserved,
              std::shared_ptr<const IpPool> pool = nullptr);

  /// Why the pool is not used: it is wrong, being deleted, or not admitted. "" when it is.
  const std::string& refusal() const { return refusal_; }
  /// False: the status cannot be read, and must not be written.
  bool readable() const { return readable_; }
  const json::Value& object() const { return object_; }
  const IpPool& pool() const { return *pool_; }
  const PoolStatus& status() const { return status_; }

  std::int64_t free_count() const { return free_.count(); }
  const PoolRecord* find(const Ip& ip) const;
  /// Addresses recorded for the pod, without those of `except`.
  std::vector<Ip> of_pod(std::string_view uid, const std::vector<Ip>& except = {}) const;

  /// The lowest free address; or one that an earlier attempt has left for this pod, not of
  /// `except`. The record is written under `record()` of the address. Errors: refusal, kUsedOut.
  Result<Ip> take(const std::string& pod, const std::string& uid, const std::vector<Ip>& except);
  /// False when the record is not this one any more.
  bool drop(const Ip& ip, const PoolRecord& expected);
  void drop_settled(const IpSet& ips);
  /// The same pod by name, with a new uid. False when there is no such record.
  bool rename(const Ip& ip, const std::string& uid);
  /// Moves those records to the settled ones that `is_written` knows an endpoint of. How many.
  std::size_t settle(const std::function<bool(const Ip& ip, const PoolRecord&)>& is_written);

  /// The object with the status of now.
  json::Value to_object() const;
  /// As to_object() was answered.
  void written(json::Value object) { object_ = std::move(object); }

 private:
  void release(const IpSet& ips);

  json::Value object_;
  std::shared_ptr<const IpPool> pool_ = std::make_shared<IpPool>();
  PoolStatus status_;
  IpSet free_;
  IpSet blocked_;  // reserved
  std::string refusal_ = "unknown";
  bool readable_ = false;
};

/// Why the collector has not admitted the pool's addresses yet; "" when it has.
std::string admission_fault(const IpPool& pool, const PoolStatus& status);

}  // namespace dibs::drivers::net
