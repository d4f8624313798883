#include "drivers/net/ipam/records.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::drivers::net {

using json::Value;

PoolRecords::PoolRecords(Value object, const IpSet& reserved, std::shared_ptr<const IpPool> pool)
    : object_(std::move(object)), blocked_(reserved) {
  refusal_.clear();
  if (pool == nullptr) {
    auto parsed = parse_ip_pool(object_);
    if (parsed) {
      pool = std::make_shared<IpPool>(std::move(parsed).value());
    } else {
      refusal_ = parsed.error().message();
    }
  }
  if (pool != nullptr) pool_ = std::move(pool);
  auto status = parse_pool_status(object_);
  if (!status) {
    // Nothing is known of what is taken: a write would lose it.
    refusal_ = status.error().message();
    return;
  }
  status_ = std::move(status).value();
  readable_ = true;
  if (!refusal_.empty()) return;
  if (pool_->terminating) refusal_ = "being deleted";
  if (refusal_.empty()) refusal_ = admission_fault(*pool_, status_);
  free_ = pool_->total.minus(blocked_).minus(status_.used());
}

std::string admission_fault(const IpPool& pool, const PoolStatus& status) {
  if (status.admitted == pool.total) return "";
  return "its addresses were not admitted yet";
}

const PoolRecord* PoolRecords::find(const Ip& ip) const {
  const auto found = status_.allocated.find(ip);
  return found == status_.allocated.end() ? nullptr : &found->second;
}

std::vector<Ip> PoolRecords::of_pod(std::string_view uid, const std::vector<Ip>& except) const {
  std::vector<Ip> out;
  for (const auto& [ip, record] : status_.allocated) {
    if (record.uid != uid) continue;
    if (std::find(except.begin(), except.end(), ip) == except.end()) out.push_back(ip);
  }
  return out;
}

Result<Ip> PoolRecords::take(const std::string& pod, const std::string& uid,
                             const std::vector<Ip>& except) {
  if (!refusal_.empty()) return Error::conflict(refusal_);
  for (const auto& ip : of_pod(uid, except)) {
    if (!pool_->total.contains(ip)) continue;
    PoolRecord& record = status_.allocated.find(ip)->second;
    record.pod = pod;
    ++record.taken_up;
    return ip;
  }
  const auto lowest = free_.lowest();
  if (!lowest) return Error::conflict(std::string(kUsedOut));
  free_.remove(*lowest);
  status_.allocated[*lowest] = {pod, uid, 0};
  return *lowest;
}

bool PoolRecords::drop(const Ip& ip, const PoolRecord& expected) {
  const auto found = status_.allocated.find(ip);
  if (found == status_.allocated.end() || !(found->second == expected)) return false;
  status_.allocated.erase(found);
  if (pool_->total.contains(ip) && !blocked_.contains(ip)) free_.add(ip);
  return true;
}

void PoolRecords::drop_settled(const IpSet& ips) {
  const IpSet gone = status_.settled.intersection(ips);
  status_.settled.remove(gone);
  release(gone);
}

void PoolRecords::release(const IpSet& ips) {
  free_.add(ips.intersection(pool_->total).minus(blocked_));
}

bool PoolRecords::rename(const Ip& ip, const std::string& uid) {
  const auto found = status_.allocated.find(ip);
  if (found == status_.allocated.end()) return false;
  found->second.uid = uid;
  return true;
}

std::size_t PoolRecords::settle(
    const std::function<bool(const Ip& ip, const PoolRecord&)>& is_written) {
  std::size_t count = 0;
  for (auto at = status_.allocated.begin(); at != status_.allocated.end();) {
    if (!is_written(at->first, at->second)) {
      ++at;
      continue;
    }
    status_.settled.add(at->first);
    at = status_.allocated.erase(at);
    ++count;
  }
  return count;
}

Value PoolRecords::to_object() const {
  Value object = object_;
  Value status = object_["status"];
  for (const char* key : {"allocatedIPs", "settledIPs", "admittedIPs"}) status.erase(key);
  const Value written = to_status(status_);
  for (const auto& [key, value] : written.members()) status.set(key, value);
  object.set("status", std::move(status));
  return object;
}

}  // namespace dibs::drivers::net
