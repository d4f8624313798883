#include "server/usage/shares.h"

#include <utility>

#include "api/kinds/pod/resources.h"
#include "base/strings.h"
#include "server/plugins/device_index.h"

namespace dibs::server {
namespace {

using json::Value;

std::string pool_of(std::string_view driver, std::string_view pool) {
  return cat(driver, "/", pool, "/");
}

using api::Amounts;

double mean(const Amounts& whole, const Amounts& part) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& [name, all] : whole) {
    if (all.sign() <= 0) continue;
    ++count;
    if (const auto found = part.find(name); found != part.end())
      sum += found->second.approximate() / all.approximate();
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

/// Of {"name": {"value": "1Gi"}} or {"name": "1Gi"}.
Amounts amounts_in(const Value& members, std::string_view driver = {}) {
  Amounts made;
  for (const auto& [name, amount] : members.members()) {
    made.emplace(std::string(short_name(name, driver)),
                 api::quantity_of(amount.is_object() ? amount["value"] : amount));
  }
  return made;
}

}  // namespace

void DeviceShares::put(Table& table, std::vector<std::string>& names, std::string name,
                       Published published) {
  Published& known = table[name];
  // A pool that is published anew is in two generations for a while.
  if (!known.slice.empty() && published.generation < known.generation) return;
  known = std::move(published);
  names.push_back(std::move(name));
}

void DeviceShares::put_slice(const std::string& key, const Value& slice) {
  remove_slice(key);
  const Value& spec = slice["spec"];
  const std::string pool = pool_of(spec["driver"].as_string(), spec["pool"]["name"].as_string());
  const std::int64_t generation = spec["pool"]["generation"].as_int();
  Names names;
  for (const Value& set : spec["sharedCounters"].items()) {
    put(counters_, names.counters, cat(pool, set["name"].as_string()),
        {key, generation, set["counters"]});
  }
  for (const Value& device : spec["devices"].items()) {
    const bool shared = device["allowMultipleAllocations"].as_bool();
    if (device["consumesCounters"].empty() && !shared) continue;
    Value body = Value::object({{"consumesCounters", device["consumesCounters"]}});
    if (shared) body.set("capacity", device["capacity"]);
    put(devices_, names.devices, cat(pool, device["name"].as_string()),
        {key, generation, std::move(body)});
  }
  if (!names.counters.empty() || !names.devices.empty()) slices_[key] = std::move(names);
}

void DeviceShares::remove_slice(const std::string& key) {
  const auto slice = slices_.find(key);
  if (slice == slices_.end()) return;
  const auto forget = [&](Table& table, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const auto found = table.find(name);
      if (found != table.end() && found->second.slice == key) table.erase(found);
    }
  };
  forget(counters_, slice->second.counters);
  forget(devices_, slice->second.devices);
  slices_.erase(slice);
}

void DeviceShares::clear() {
  slices_.clear();
  devices_.clear();
  counters_.clear();
}

std::optional<double> DeviceShares::of_counters(const std::string& pool,
                                                const Value& device) const {
  double sum = 0;
  for (const Value& used : device["consumesCounters"].items()) {
    const auto set = counters_.find(cat(pool, used["counterSet"].as_string()));
    if (set == counters_.end()) return std::nullopt;
    sum += mean(amounts_in(set->second.body), amounts_in(used["counters"]));
  }
  return sum > 0 ? sum : 1;
}

std::optional<double> DeviceShares::share_of(const Value& result) const {
  const std::string pool = pool_of(result["driver"].as_string(), result["pool"].as_string());
  const auto found = devices_.find(cat(pool, result["device"].as_string()));
  if (found == devices_.end()) return std::nullopt;
  const Value& device = found->second.body;
  const auto of_set = of_counters(pool, device);
  if (!of_set) return std::nullopt;
  double share = *of_set;
  if (!result["consumedCapacity"].empty()) {
    const std::string_view driver = result["driver"].as_string();
    const double part = mean(amounts_in(device["capacity"], driver),
                             amounts_in(result["consumedCapacity"], driver));
    if (part > 0) share *= part;
  }
  return share;
}

}  // namespace dibs::server
