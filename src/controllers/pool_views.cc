#include "controllers/pool_views.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"

namespace dibs::controllers {
namespace {

using json::Value;

constexpr std::size_t kMostEntries = 32;

/// Amounts by set and counter.
using Counters = std::map<std::string, std::map<std::string, Quantity>>;

Quantity amount(const Value& value) {
  auto parsed = Quantity::parse(value.as_string());
  return parsed.ok() ? *parsed : Quantity();
}

template <typename Each>
void each_counter(const Value& device, Each each) {
  for (const Value& consumption : device["consumesCounters"].items()) {
    for (const auto& [name, counter] : consumption["counters"].members()) {
      each(consumption["counterSet"].str(), std::string(name), amount(counter["value"]));
    }
  }
}

void deduct(const Value& device, Counters& left) {
  each_counter(device, [&](const std::string& set, const std::string& name, const Quantity& cost) {
    const auto counters = left.find(set);
    if (counters == left.end()) return;
    if (const auto found = counters->second.find(name); found != counters->second.end()) {
      found->second.subtract(cost);
    }
  });
}

bool fits(const Value& device, const Counters& left) {
  bool enough = true;
  each_counter(device, [&](const std::string& set, const std::string& name, const Quantity& cost) {
    const auto counters = left.find(set);
    const bool known = counters != left.end() && counters->second.contains(name);
    enough = enough && known && !(counters->second.at(name) < cost);
  });
  return enough;
}

std::string cost_of(const Value& device) {
  std::vector<std::string> parts;
  each_counter(device, [&](const std::string& set, const std::string& name, const Quantity& cost) {
    parts.push_back(cat(set, '/', name, '=', cost.canonical()));
  });
  std::sort(parts.begin(), parts.end());
  return join(parts, ",");
}

/// What devices in use leave: each takes once, however many share it.
Counters left_of(const PoolView& pool) {
  Counters out;
  for (const Value& set : pool.counters) {
    for (const auto& [name, counter] : set["counters"].members()) {
      out[set["name"].str()][std::string(name)] = amount(counter["value"]);
    }
  }
  for (const PoolDevice& one : pool.devices) {
    if (pool.in_use.contains(one.device["name"].str())) deduct(one.device, out);
  }
  return out;
}

/// The value of the attribute; a name in the driver's own domain may stand there without it.
std::optional<std::string> type_of(const PoolView& pool, const Value& device,
                                   const std::string& attribute) {
  const Value* found = device["attributes"].find(attribute);
  const std::string own = pool.driver + "/";
  if (found == nullptr && attribute.starts_with(own)) {
    found = device["attributes"].find(attribute.substr(own.size()));
  }
  if (found == nullptr || !(*found)["string"].is_string()) return std::nullopt;
  return (*found)["string"].str();
}

struct Group {
  std::int64_t total = 0;
  std::vector<Value> unused = {};
  std::string cost = {};
};

std::string where(const PoolView& pool) { return cat("pool ", pool.driver, '/', pool.name); }

Value partitions_of(const PoolView& pool, std::string& error) {
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const PoolDevice& one : pool.devices) {
    const Value& device = one.device;
    if (device["consumesCounters"].empty() || one.attribute.empty()) continue;
    const auto type = type_of(pool, device, one.attribute);
    if (!type) {
      error = cat("PartitionTypeMissing: device ", quoted(device["name"].as_string()), " in ",
                  where(pool), " does not carry partition type attribute ", quoted(one.attribute));
      return {};
    }
    Group& group = groups[{one.attribute, *type}];
    std::string cost = cost_of(device);
    if (group.total++ == 0) {
      group.cost = std::move(cost);
    } else if (group.cost != cost) {
      error = cat("PartitionCostMismatch: devices of partition type ", quoted(*type), " in ",
                  where(pool), " consume different counters");
      return {};
    }
    if (!pool.in_use.contains(device["name"].str())) group.unused.push_back(device);
  }
  if (groups.size() > kMostEntries) {
    error = cat("PartitionSummaryOverCap: ", where(pool), " has ", groups.size(),
                " partition types, exceeding the maximum of ", kMostEntries);
    return {};
  }
  const Counters all_left = left_of(pool);
  Value out;
  for (const auto& [key, group] : groups) {
    // Each type as if nothing else were asked for.
    Counters left = all_left;
    std::int64_t allocatable = 0;
    for (const Value& device : group.unused) {
      if (!fits(device, left)) continue;
      ++allocatable;
      deduct(device, left);
    }
    out.push(Value::object({{"attribute", key.first},
                            {"type", key.second},
                            {"total", group.total},
                            {"allocatable", allocatable}}));
  }
  return out;
}

Value shareable_of(const PoolView& pool, std::string& error) {
  std::int64_t untouched = 0;
  std::int64_t partly = 0;
  std::map<std::string, Quantity> totals;
  for (const PoolDevice& one : pool.devices) {
    if (!one.device["allowMultipleAllocations"].as_bool()) continue;
    ++(pool.in_use.contains(one.device["name"].str()) ? partly : untouched);
    for (const auto& [name, capacity] : one.device["capacity"].members()) {
      totals[std::string(name)].add(amount(capacity["value"]));
    }
  }
  if (untouched + partly == 0) return {};
  if (totals.size() > kMostEntries) {
    error = cat("ShareableSummaryOverCap: ", where(pool), " has ", totals.size(),
                " shareable capacity keys, exceeding the maximum of ", kMostEntries);
    return {};
  }
  Value capacity;
  for (const auto& [name, total] : totals) {
    const auto found = pool.consumed.find(name);
    const Quantity consumed = found == pool.consumed.end() ? Quantity() : found->second;
    Quantity available = total;
    available.subtract(consumed);
    if (available.sign() < 0) available = Quantity(0, 0, total.format());
    capacity.push(Value::object({{"name", name},
                                 {"total", total.canonical()},
                                 {"consumed", consumed.canonical()},
                                 {"available", available.canonical()}}));
  }
  Value out =
      Value::object({{"fullyAvailableDevices", untouched}, {"partiallyAvailableDevices", partly}});
  if (!capacity.empty()) out.set("capacity", std::move(capacity));
  return out;
}

}  // namespace

PoolSummaries summarize(const PoolView& given, const std::string& fallback) {
  PoolView pool = given;
  const bool declared = std::any_of(pool.devices.begin(), pool.devices.end(),
                                    [](const PoolDevice& one) { return !one.attribute.empty(); });
  bool grouped = declared;
  if (!declared && !fallback.empty()) {
    for (PoolDevice& one : pool.devices) one.attribute = fallback;
    grouped = !pool.devices.empty();
  }
  PoolSummaries out;
  if (grouped && pool.counters.empty()) {
    out.error = cat("PartitionTypeMissing: ", where(pool),
                    " declares partitionTypeAttribute but publishes no sharedCounters");
  } else if (grouped) {
    out.partitions = partitions_of(pool, out.error);
  }
  std::string shared_error;
  out.shareable = shareable_of(pool, shared_error);
  if (out.error.empty()) out.error = shared_error;
  if (!out.error.empty()) out.partitions = Value();
  return out;
}

}  // namespace dibs::controllers
