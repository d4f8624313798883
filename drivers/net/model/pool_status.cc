#include <algorithm>

#include "base/strings.h"
#include "drivers/net/model/fields.h"
#include "drivers/net/model/ip_pool.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

/// The JSON in a string of the status; an empty object where the field is absent.
Result<json::Value> embedded(const json::Value& status, std::string_view key) {
  const json::Value& field = status[key];
  if (field.is_null() || (field.is_string() && field.as_string().empty())) {
    return json::Value::object();
  }
  if (!field.is_string()) return Error::invalid(cat("status.", key, ": must be a string"));
  auto parsed = json::parse(field.as_string());
  if (!parsed.ok()) return parsed.error().within(cat("status.", key));
  if (parsed->is_null()) return json::Value::object();
  if (!parsed->is_object()) {
    return Error::invalid(cat("status.", key, ": must be a JSON object"));
  }
  return parsed;
}

Result<IpSet> read_set(const json::Value& object, std::string_view key, const api::Path& parent) {
  DIBS_TRY(const auto texts, read_texts(object, key, parent));
  auto set = IpSet::parse(texts);
  if (!set.ok()) return set.error().within(parent.child(key).str());
  return set;
}

}  // namespace

IpSet PoolStatus::used() const {
  IpSet used = settled;
  for (const auto& [ip, record] : allocated) used.add(ip);
  return used;
}

Result<PoolStatus> parse_pool_status(const json::Value& object) {
  const json::Value& value = object["status"];
  const api::Path path("status");
  PoolStatus status;
  DIBS_TRY(const json::Value records, embedded(value, "allocatedIPs"));
  for (const auto& [text, record] : records.members()) {
    const auto ip = Ip::parse(text);
    if (!ip.ok()) return ip.error().within("status.allocatedIPs");
    status.allocated[*ip] = {record["pod"].str(), record["podUid"].str(),
                             record["takenUp"].as_int()};
  }
  DIBS_TRY(status.settled, read_set(value, "settledIPs", path));
  DIBS_TRY(status.admitted, read_set(value, "admittedIPs", path));
  // The record says more: it is the one that counts where both have an address.
  for (const auto& [ip, record] : status.allocated) status.settled.remove(ip);
  status.total_count = value["totalIPCount"].as_int();
  status.allocated_count = value["allocatedIPCount"].as_int();
  return status;
}

std::string allocated_text(const std::map<Ip, PoolRecord>& allocated) {
  std::vector<std::pair<std::string, const PoolRecord*>> ordered;
  ordered.reserve(allocated.size());
  for (const auto& [ip, record] : allocated) ordered.emplace_back(ip.str(), &record);
  std::sort(ordered.begin(), ordered.end());
  std::string text = "{";
  for (const auto& [ip, record] : ordered) {
    if (text.size() > 1) text += ',';
    append(text, '"', ip, "\":{\"pod\":");
    json::write_string(text, record->pod, true);
    text += ",\"podUid\":";
    json::write_string(text, record->uid, true);
    if (record->taken_up != 0) append(text, ",\"takenUp\":", record->taken_up);
    text += '}';
  }
  return text + '}';
}

json::Value to_status(const PoolStatus& status) {
  json::Value value = json::Value::object();
  if (!status.allocated.empty()) value.set("allocatedIPs", allocated_text(status.allocated));
  if (!status.settled.empty()) value.set("settledIPs", texts_value(status.settled.to_strings()));
  if (!status.admitted.empty()) value.set("admittedIPs", texts_value(status.admitted.to_strings()));
  value.set("totalIPCount", status.total_count);
  const auto allocated = static_cast<std::int64_t>(status.allocated.size());
  value.set("allocatedIPCount", status.settled.count() + allocated);
  return value;
}

json::Value to_subnet_status(const IpSubnet& subnet,
                             const std::map<std::string, ControlledPool>& pools) {
  json::Value records = json::Value::object();
  IpSet held;
  for (const auto& [name, pool] : pools) {
    json::Value record = json::Value::object({{"ips", texts_value(pool.ips.to_strings())}});
    if (!pool.application.empty()) record.set("application", pool.application);
    records.set(name, std::move(record));
    held.add(pool.ips);
  }
  json::Value status = json::Value::object();
  if (!pools.empty()) status.set("controlledIPPools", json::write(records, true));
  status.set("totalIPCount", subnet.total.count());
  status.set("allocatedIPCount", held.count());
  return status;
}

}  // namespace dibs::drivers::net
