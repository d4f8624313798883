#include "controllers/device_counts.h"

#include <algorithm>

#include "base/strings.h"
#include "client/client.h"

namespace dibs::controllers {
namespace {

using json::Value;

bool keeps_away(const Value& taint) {
  const std::string_view effect = taint["effect"].as_string();
  return effect == "NoSchedule" || effect == "NoExecute";
}

std::string pool_key(const Value& driver, const Value& pool) {
  return cat(driver.as_string(), '/', pool.as_string());
}

}  // namespace

const Value& taints_of(const Value& device) {
  return device.contains("basic") ? device["basic"]["taints"] : device["taints"];
}

bool selects_device(const Value& rule, std::string_view driver, std::string_view pool,
                    std::string_view device) {
  const Value& selector = rule["spec"]["deviceSelector"];
  if (selector.is_null()) return false;
  const auto fits = [&](const char* key, std::string_view value) {
    return selector[key].is_null() || selector[key].as_string() == value;
  };
  return fits("driver", driver) && fits("pool", pool) && fits("device", device);
}

bool DeviceCounts::is_tainted(const Pool& pool, const Value& device) const {
  const auto& taints = taints_of(device).items();
  if (std::any_of(taints.begin(), taints.end(), keeps_away)) return true;
  return std::any_of(rules_.begin(), rules_.end(), [&](const auto& rule) {
    return selects_device(rule.second, pool.driver, pool.name, device["name"].as_string());
  });
}

void DeviceCounts::put_slice(const Value& slice) {
  const Value& spec = slice["spec"];
  const std::string name(client::name_of(slice));
  const std::string key = pool_key(spec["driver"], spec["pool"]["name"]);
  const auto before = pool_of_.find(name);
  if (before != pool_of_.end() && before->second != key) forget_slice(name);
  pool_of_[name] = key;
  Pool& pool = pools_[key];
  pool.driver = spec["driver"].str();
  pool.name = spec["pool"]["name"].str();
  pool.slices[name] = {spec["pool"]["generation"].as_int(), spec["nodeName"].str(),
                       spec["devices"]};
  publish(key);
}

void DeviceCounts::remove_slice(const Value& slice) {
  forget_slice(std::string(client::name_of(slice)));
}

void DeviceCounts::forget_slice(const std::string& name) {
  const auto found = pool_of_.find(name);
  if (found == pool_of_.end()) return;
  Pool& pool = pools_[found->second];
  pool.slices.erase(name);
  publish(found->second);
  if (pool.slices.empty()) pools_.erase(found->second);
  pool_of_.erase(found);
}

void DeviceCounts::count(const Kind& kind, int change) {
  const auto at = counts_.emplace(kind, 0).first;
  at->second += change;
  if (at->second == 0) counts_.erase(at);
}

void DeviceCounts::publish(const std::string& key) {
  Pool& pool = pools_[key];
  for (const auto& [name, kind] : pool.published) count(kind, -1);
  pool.published.clear();
  std::int64_t newest = 0;
  for (const auto& [name, slice] : pool.slices) newest = std::max(newest, slice.generation);
  for (const auto& [slice_name, slice] : pool.slices) {
    if (slice.generation != newest) continue;
    for (const Value& device : slice.devices.items()) {
      const std::string name = device["name"].str();
      Kind kind;
      kind.driver = pool.driver;
      kind.node = device["nodeName"].is_string() ? device["nodeName"].str() : slice.node;
      kind.allocated = holders_.contains({key, name});
      kind.tainted = is_tainted(pool, device);
      if (pool.published.emplace(name, kind).second) count(kind, 1);
    }
  }
}

void DeviceCounts::hold(const Held& held, int change) {
  int& holders = holders_[held];
  const bool before = holders > 0;
  holders += change;
  const bool now = holders > 0;
  if (!now) holders_.erase(held);
  if (before == now) return;
  const auto pool = pools_.find(held.first);
  if (pool == pools_.end()) return;
  const auto device = pool->second.published.find(held.second);
  if (device == pool->second.published.end()) return;
  count(device->second, -1);
  device->second.allocated = now;
  count(device->second, 1);
}

void DeviceCounts::put_claim(const Value& claim) {
  std::vector<Held> held;
  for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
    // An administrator's look at a device takes it from nobody.
    if (result["adminAccess"].as_bool()) continue;
    held.emplace_back(pool_key(result["driver"], result["pool"]), result["device"].str());
  }
  for (const Held& one : held) hold(one, 1);
  remove_claim(claim);
  if (!held.empty()) claims_[client::key_of(claim)] = std::move(held);
}

void DeviceCounts::remove_claim(const Value& claim) {
  const auto found = claims_.find(client::key_of(claim));
  if (found == claims_.end()) return;
  for (const Held& one : found->second) hold(one, -1);
  claims_.erase(found);
}

void DeviceCounts::put_rule(const Value& rule) {
  const std::string name(client::name_of(rule));
  if (!keeps_away(rule["spec"]["taint"])) return remove_rule(rule);
  rules_.insert_or_assign(name, rule);
  for (const auto& [key, pool] : pools_) publish(key);
}

void DeviceCounts::remove_rule(const Value& rule) {
  if (rules_.erase(std::string(client::name_of(rule))) == 0) return;
  for (const auto& [key, pool] : pools_) publish(key);
}

}  // namespace dibs::controllers
