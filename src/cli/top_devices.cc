#include "cli/top_devices.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::cli {
namespace {

using json::Value;

using DeviceKey = std::tuple<std::string, std::string, std::string>;  // driver, pool, name

Quantity quantity_of(const Value& text) {
  auto parsed = Quantity::parse(text.as_string());
  return parsed ? *parsed : Quantity();
}

std::string node_of(const Value& spec, const Value& device) {
  for (const Value* at : {&device, &spec}) {
    if ((*at)["nodeName"].is_string()) return (*at)["nodeName"].str();
    if ((*at)["allNodes"].as_bool()) return "<all>";
    if ((*at)["nodeSelector"].is_object()) return "<selected>";
  }
  return "<none>";
}

std::string taint_text(const Value& taint) {
  const auto value = taint["value"].as_string();
  return cat(taint["key"].as_string(), value.empty() ? "" : "=", value, ":",
             taint["effect"].as_string());
}

bool rule_matches(const Value& rule, const TopDevice& device) {
  const Value& selector = rule["spec"]["deviceSelector"];
  const auto is = [&](const char* field, const std::string& value) {
    return !selector[field].is_string() || selector[field].as_string() == value;
  };
  return is("driver", device.driver) && is("pool", device.pool) && is("device", device.name);
}

/// -1 where it is no number from 0 to `most`.
std::int64_t bounded(const Value& value, std::int64_t most) {
  const std::int64_t number = value.as_int(-1);
  return number <= most ? number : -1;
}

TopUsage usage_of(const Value& told) {
  // What is exact as a double, so that the page shows the same.
  constexpr std::int64_t kMostBytes = (std::int64_t{1} << 53) - 1;
  TopUsage made;
  const std::int64_t memory = bounded(told["memory"], kMostBytes);
  const std::int64_t used = bounded(told["memoryUsed"], memory);
  if (memory > 0 && used >= 0) {
    made.memory = memory;
    made.memory_used = used;
  }
  const std::int64_t percent = bounded(told["percent"], 100);
  if (percent >= 0) made.percent = percent;
  return made;
}

/// An id of CDI or "driver/pool/device" ends with the device's name.
bool names_device(std::string_view id, const TopDevice& device) {
  if (id == cat(device.driver, "/", device.pool, "/", device.name)) return true;
  if (!id.ends_with(device.name) || id.size() == device.name.size()) return id == device.name;
  const char before = id[id.size() - device.name.size() - 1];
  return before == '=' || before == '/' || before == '-';
}

class Gathering {
 public:
  explicit Gathering(const WhyObjects& objects) : objects_(objects) {}

  std::vector<TopDevice> gather() {
    find_generations();
    for (const Value& slice : objects_.slices) take_slice(slice);
    // One slice may tell of devices of others.
    for (const Value& slice : objects_.slices) take_usage(slice);
    for (const Value& claim : objects_.claims) take_claim(claim);
    count_counters();
    for (const Value& rule : objects_.rules) {
      if (rule["spec"]["taint"]["effect"].as_string() == "None") continue;
      for (auto& [key, device] : devices_) {
        if (rule_matches(rule, device)) device.taints.push_back(taint_text(rule["spec"]["taint"]));
      }
    }
    find_ills();
    std::vector<TopDevice> made;
    made.reserve(devices_.size());
    for (auto& [key, device] : devices_) made.push_back(std::move(device));
    std::sort(made.begin(), made.end(), [](const TopDevice& a, const TopDevice& b) {
      if (a.node != b.node) return comes_before(a.node, b.node);
      if (a.driver != b.driver) return a.driver < b.driver;
      if (a.pool != b.pool) return comes_before(a.pool, b.pool);
      return comes_before(a.name, b.name);
    });
    return made;
  }

 private:
  struct Pool {
    std::int64_t generation = -1;
    std::int64_t wanted = 1;
    std::int64_t slices = 0;
    std::map<std::string, std::map<std::string, TopCapacity>> counters;  // by set and name
  };

  void find_generations() {
    for (const Value& slice : objects_.slices) {
      const Value& spec = slice["spec"];
      if (!spec["pool"].is_object()) continue;
      Pool& pool = pools_[{spec["driver"].str(), spec["pool"]["name"].str()}];
      const std::int64_t generation = spec["pool"]["generation"].as_int();
      if (generation < pool.generation) continue;
      if (generation > pool.generation) pool = Pool{generation, 1, 0, {}};
      pool.wanted = spec["pool"]["resourceSliceCount"].as_int(1);
      ++pool.slices;
      for (const Value& set : spec["sharedCounters"].items()) {
        for (const auto& [name, counter] : set["counters"].members()) {
          pool.counters[set["name"].str()][std::string(name)] = {
              cat(set["name"].as_string(), ".", name), Quantity(), quantity_of(counter["value"])};
        }
      }
    }
  }

  void take_slice(const Value& slice) {
    const Value& spec = slice["spec"];
    if (!spec["pool"].is_object()) return;
    const std::string driver = spec["driver"].str();
    const std::string name = spec["pool"]["name"].str();
    const Pool& pool = pools_[{driver, name}];
    if (spec["pool"]["generation"].as_int() < pool.generation) return;
    for (const Value& device : spec["devices"].items()) {
      TopDevice made;
      made.driver = driver;
      made.pool = name;
      made.name = device["name"].str();
      made.node = node_of(spec, device);
      made.incomplete = pool.slices != pool.wanted;
      made.shared = device["allowMultipleAllocations"].as_bool();
      for (const Value& taint : device["taints"].items()) {
        if (taint["effect"].as_string() != "None") made.taints.push_back(taint_text(taint));
      }
      if (made.shared) {
        for (const auto& [capacity, value] : device["capacity"].members()) {
          made.shares.push_back({std::string(capacity), Quantity(), quantity_of(value["value"])});
        }
      }
      const DeviceKey key{driver, name, made.name};
      if (!device["consumesCounters"].empty()) consumers_[key] = device["consumesCounters"];
      devices_[key] = std::move(made);
    }
  }

  void take_usage(const Value& slice) {
    const Value& text = slice["metadata"]["annotations"][kUsageAnnotation];
    const Value& pool = slice["spec"]["pool"];
    if (!text.is_string() || !pool.is_object()) return;
    const std::string driver = slice["spec"]["driver"].str();
    const std::string name = pool["name"].str();
    if (pool["generation"].as_int() < pools_[{driver, name}].generation) return;
    // Anybody who may write slices may write anything there.
    const auto all = json::parse(text.as_string());
    if (!all.ok()) return;
    for (const auto& [device, told] : all->members()) {
      const auto found = devices_.find({driver, name, std::string(device)});
      if (found == devices_.end()) continue;
      const TopUsage usage = usage_of(told);
      if (usage.told()) found->second.usage = usage;
    }
  }

  void take_claim(const Value& claim) {
    for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
      const DeviceKey key{result["driver"].str(), result["pool"].str(), result["device"].str()};
      auto found = devices_.find(key);
      if (found == devices_.end()) {
        TopDevice made;
        std::tie(made.driver, made.pool, made.name) = key;
        made.node = place_of(claim);
        made.gone = true;
        found = devices_.emplace(key, std::move(made)).first;
      }
      TopDevice& device = found->second;
      const bool admin = result["adminAccess"].as_bool();
      auto& users = admin ? device.admins : device.claims;
      // Several shares of one device may be one claim's.
      if (users.empty() || users.back() != &claim) users.push_back(&claim);
      if (admin) continue;
      for (TopCapacity& share : device.shares) {
        share.used.add(quantity_of(result["consumedCapacity"][share.name]));
        device.full = device.full || (!share.all.is_zero() && share.used >= share.all);
      }
    }
  }

  static std::string place_of(const Value& claim) {
    const Value& selector = claim["status"]["allocation"]["nodeSelector"];
    for (const Value& term : selector["nodeSelectorTerms"].items()) {
      for (const Value& field : term["matchFields"].items()) {
        if (field["key"].as_string() == "metadata.name") return field["values"][0].str();
      }
    }
    return selector.is_object() ? "<selected>" : "<all>";
  }

  void count_counters() {
    for (const auto& [key, consumption] : consumers_) {
      const TopDevice& device = devices_[key];
      if (!device.held()) continue;
      each_counter(key, consumption,
                   [](TopCapacity& counter, const Quantity& amount) { counter.used.add(amount); });
    }
    for (const auto& [key, consumption] : consumers_) {
      TopDevice& device = devices_[key];
      each_counter(key, consumption, [&](TopCapacity& counter, const Quantity& amount) {
        device.counters.push_back(counter);
        Quantity after = counter.used;
        after.add(amount);
        device.blocked = device.blocked || (!device.held() && after > counter.all);
      });
    }
  }

  template <typename Do>
  void each_counter(const DeviceKey& key, const Value& consumption, Do act) {
    auto& sets = pools_[{std::get<0>(key), std::get<1>(key)}].counters;
    for (const Value& one : consumption.items()) {
      const auto set = sets.find(one["counterSet"].str());
      if (set == sets.end()) continue;
      for (const auto& [name, counter] : one["counters"].members()) {
        const auto found = set->second.find(std::string(name));
        if (found != set->second.end()) act(found->second, quantity_of(counter["value"]));
      }
    }
  }

  /// What drivers say in the claims' status, and agents in that of pods.
  void find_ills() {
    std::map<std::string, const Value*> pods;  // by uid
    for (const Value& pod : objects_.pods) pods[pod["metadata"]["uid"].str()] = &pod;
    for (auto& [key, device] : devices_) {
      std::set<std::string> ills;
      for (const Value* claim : device.claims) {
        for (const Value& status : (*claim)["status"]["devices"].items()) {
          if (status["device"].as_string() != device.name ||
              status["pool"].as_string() != device.pool) {
            continue;
          }
          for (const Value& condition : status["conditions"].items()) {
            if (condition["type"].as_string().ends_with("Ready") &&
                condition["status"].as_string() == "False") {
              ills.insert(cat(condition["type"].as_string(), "=False"));
            }
          }
        }
        for (const Value& user : (*claim)["status"]["reservedFor"].items()) {
          const auto pod = pods.find(user["uid"].str());
          if (pod != pods.end()) add_health(*pod->second, device, ills);
        }
      }
      device.ills.assign(ills.begin(), ills.end());
    }
  }

  static void add_health(const Value& pod, const TopDevice& device, std::set<std::string>& ills) {
    for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
      for (const Value& status : pod["status"][list].items()) {
        for (const Value& resource : status["allocatedResourcesStatus"].items()) {
          if (!resource["name"].as_string().starts_with("claim:")) continue;
          for (const Value& one : resource["resources"].items()) {
            if (one["health"].as_string() == "Unhealthy" &&
                names_device(one["resourceID"].as_string(), device)) {
              ills.insert(one["message"].as_string().empty() ? std::string("Unhealthy")
                                                             : one["message"].str());
            }
          }
        }
      }
    }
  }

  const WhyObjects& objects_;
  std::map<std::pair<std::string, std::string>, Pool> pools_;  // by driver and name
  std::map<DeviceKey, TopDevice> devices_;
  std::map<DeviceKey, Value> consumers_;
};

}  // namespace

bool TopDevice::free() const {
  if (gone || incomplete || blocked || full || !taints.empty() || !ills.empty()) return false;
  return !held() || shared;
}

std::string TopDevice::state() const {
  std::string made = gone         ? "gone"
                     : incomplete ? "incomplete"
                     : !held()    ? blocked ? "blocked" : "free"
                     : shared     ? full ? "full" : "shared"
                                  : "held";
  if (!taints.empty()) made += ",tainted";
  // Nobody needs to be told of one that is gone that it is not well, and pods tell it later.
  if (!ills.empty() && !gone) made += ",unhealthy";
  return made;
}

std::vector<TopDevice> devices_in(const WhyObjects& objects) { return Gathering(objects).gather(); }

std::string key_of_claim(const Value& claim) {
  return cat(claim["metadata"]["namespace"].as_string(), "/",
             claim["metadata"]["name"].as_string());
}

std::vector<std::string> pods_of_claim(const Value& claim) {
  std::vector<std::string> made;
  for (const Value& user : claim["status"]["reservedFor"].items()) {
    if (user["resource"].as_string() != "pods") continue;
    made.push_back(cat(claim["metadata"]["namespace"].as_string(), "/", user["name"].as_string()));
  }
  std::sort(made.begin(), made.end());
  return made;
}

bool comes_before(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto number = [&](std::string_view text) {
    std::size_t end = 0;
    while (end < text.size() && digit(text[end])) ++end;
    const std::size_t zeros = std::min(text.find_first_not_of('0'), end);
    return std::pair(text.substr(zeros, end - zeros), end);
  };
  while (!a.empty() && !b.empty()) {
    if (digit(a.front()) && digit(b.front())) {
      const auto [x, x_end] = number(a);
      const auto [y, y_end] = number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      a.remove_prefix(x_end);
      b.remove_prefix(y_end);
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() < b.size();
}

}  // namespace dibs::cli
