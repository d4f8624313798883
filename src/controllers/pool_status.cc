#include "controllers/pool_status.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "controllers/pool_views.h"

namespace dibs::controllers {
namespace {

using json::Value;

constexpr std::size_t kMostErrorBytes = 256;
constexpr std::int64_t kDefaultLimit = 100;

bool keeps_pods_away(const Value& taint) {
  const auto effect = taint["effect"].as_string();
  return effect == "NoSchedule" || effect == "NoExecute";
}

bool selects(const Value& rule, const Value& spec, const Value& device) {
  const Value& selector = rule["spec"]["deviceSelector"];
  // One without a selector is about no device.
  if (selector.is_null() || !keeps_pods_away(rule["spec"]["taint"])) return false;
  const auto fits = [&](const char* key, const Value& value) {
    return selector[key].is_null() || selector[key] == value;
  };
  return fits("driver", spec["driver"]) && fits("pool", spec["pool"]["name"]) &&
         fits("device", device["name"]);
}

bool is_unavailable(const Value& spec, const Value& device, const std::vector<Value>& rules) {
  for (const Value& taint : device["taints"].items()) {
    if (keeps_pods_away(taint)) return true;
  }
  return std::any_of(rules.begin(), rules.end(),
                     [&](const Value& rule) { return selects(rule, spec, device); });
}

struct Pool {
  PoolView view;
  std::int64_t generation = 0;
  std::int64_t slices = 0;
  std::int64_t expected = 0;
  std::int64_t unavailable = 0;
  std::optional<std::string> node = {};  // nothing: no slice seen
  bool several_nodes = false;
};

void add_slice(const Value& slice, const std::vector<Value>& rules, Pool& pool) {
  const Value& spec = slice["spec"];
  const std::string node = spec["nodeName"].str();
  if (!pool.node) {
    pool.node = node;
    pool.expected = spec["pool"]["resourceSliceCount"].as_int();
  } else if (*pool.node != node) {
    pool.several_nodes = true;
  }
  ++pool.slices;
  for (const Value& device : spec["devices"].items()) {
    if (is_unavailable(spec, device, rules)) ++pool.unavailable;
    pool.view.devices.push_back({device, spec["partitionTypeAttribute"].str()});
  }
  for (const Value& set : spec["sharedCounters"].items()) pool.view.counters.push_back(set);
}

/// Slices of older generations are on their way out.
std::map<std::string, Pool> gather(const Value& spec, const PoolObjects& objects) {
  std::map<std::string, Pool> pools;
  const auto concerns = [&](const Value& slice) {
    if (!(slice["spec"]["driver"] == spec["driver"])) return false;
    const auto wanted = spec["poolName"].as_string();
    return wanted.empty() || slice["spec"]["pool"]["name"].as_string() == wanted;
  };
  for (const Value& slice : objects.slices) {
    if (!concerns(slice)) continue;
    const Value& of = slice["spec"]["pool"];
    Pool& pool = pools[of["name"].str()];
    pool.generation = std::max(pool.generation, of["generation"].as_int());
  }
  for (const Value& slice : objects.slices) {
    if (!concerns(slice)) continue;
    Pool& pool = pools[slice["spec"]["pool"]["name"].str()];
    if (slice["spec"]["pool"]["generation"].as_int() < pool.generation) continue;
    add_slice(slice, objects.taint_rules, pool);
  }
  return pools;
}

/// A device counts once, however many claims share it; who only looks at it takes nothing.
void count_claims(const Value& spec, const std::vector<Value>& claims,
                  std::map<std::string, Pool>& pools) {
  for (const Value& claim : claims) {
    for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
      if (result["adminAccess"].as_bool() || !(result["driver"] == spec["driver"])) continue;
      const auto found = pools.find(result["pool"].str());
      if (found == pools.end()) continue;
      PoolView& view = found->second.view;
      view.in_use.insert(result["device"].str());
      for (const auto& [name, amount] : result["consumedCapacity"].members()) {
        auto quantity = Quantity::parse(amount.as_string());
        if (quantity.ok()) view.consumed[std::string(name)].add(*quantity);
      }
    }
  }
}

Value shown(const Value& request, const std::string& name, Pool& pool) {
  const std::string driver = request["spec"]["driver"].str();
  Value out =
      Value::object({{"driver", driver}, {"poolName", name}, {"generation", pool.generation}});
  if (!pool.node->empty() && !pool.several_nodes) out.set("nodeName", *pool.node);
  const auto total = static_cast<std::int64_t>(pool.view.devices.size());
  const auto taken = static_cast<std::int64_t>(pool.view.in_use.size());
  out.set("resourceSliceCount", pool.slices);
  out.set("totalDevices", total);
  out.set("allocatedDevices", taken);
  out.set("availableDevices", std::max<std::int64_t>(0, total - taken - pool.unavailable));
  out.set("unavailableDevices", pool.unavailable);
  pool.view.driver = driver;
  pool.view.name = name;
  PoolSummaries made = summarize(pool.view, request["spec"]["defaultPartitionTypeAttribute"].str());
  if (!made.partitions.empty()) out.set("partitionSummary", std::move(made.partitions));
  if (!made.shareable.is_null()) out.set("shareableSummary", std::move(made.shareable));
  if (!made.error.empty()) out.set("validationError", made.error.substr(0, kMostErrorBytes));
  return out;
}

}  // namespace

Value pool_status(const Value& request, const PoolObjects& objects, Time now) {
  const Value& spec = request["spec"];
  std::map<std::string, Pool> pools = gather(spec, objects);
  count_claims(spec, objects.claims, pools);
  const std::int64_t limit = spec["limit"].is_integer() ? spec["limit"].as_int() : kDefaultLimit;
  std::int64_t count = 0;
  std::int64_t flawed = 0;
  Value list;
  for (auto& [name, pool] : pools) {
    if (pool.slices < pool.expected) return {};
    if (count++ >= limit) continue;
    Value one = shown(request, name, pool);
    if (one.contains("validationError")) ++flawed;
    list.push(std::move(one));
  }
  std::string message = cat("Calculated status for ", list.size(), " pools");
  if (flawed > 0) append(message, " (", flawed, " incomplete)");
  Value out = Value::object({{"poolCount", count}});
  if (!list.empty()) out.set("pools", std::move(list));
  out.set("conditions", Value::array({Value::object({{"type", "Complete"},
                                                     {"status", "True"},
                                                     {"lastTransitionTime", format_rfc3339(now)},
                                                     {"reason", "CalculationComplete"},
                                                     {"message", message}})}));
  return out;
}

}  // namespace dibs::controllers
