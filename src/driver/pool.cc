#include "driver/pool.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"

namespace dibs::driver {
namespace {

using json::Value;

Value canonical(const Value& quantity) {
  if (quantity.is_integer()) return cat(quantity.as_int());
  auto parsed = Quantity::parse(quantity.as_string());
  // What is no quantity is the server's to refuse, in its words.
  return parsed ? Value(parsed->canonical()) : quantity;
}

void canonicalize(Value& object, std::string_view member) {
  if (object.contains(member)) object.mut(member) = canonical(object[member]);
}

/// {"memory": {"value": "80Gi", "requestPolicy": …}, …}
Value canonical_amounts(const Value& amounts) {
  Value out = Value::object();
  for (const auto& [name, given] : amounts.members()) {
    Value amount = given;
    canonicalize(amount, "value");
    if (amount.contains("requestPolicy")) {
      Value& policy = amount.mut("requestPolicy");
      canonicalize(policy, "default");
      if (policy.contains("validValues")) {
        Value values = Value::array();
        for (const auto& value : policy["validValues"].items()) values.push(canonical(value));
        policy.set("validValues", std::move(values));
      }
      if (policy.contains("validRange")) {
        for (const char* bound : {"min", "max", "step"}) {
          canonicalize(policy.mut("validRange"), bound);
        }
      }
    }
    out.set(name, std::move(amount));
  }
  return out;
}

Value canonical_device(const Value& given) {
  Value device = given;
  if (device.contains("capacity")) {
    device.set("capacity", canonical_amounts(device["capacity"]));
  }
  if (device.contains("consumesCounters")) {
    Value consumed = Value::array();
    for (const auto& entry : device["consumesCounters"].items()) {
      Value copy = entry;
      copy.set("counters", canonical_amounts(entry["counters"]));
      consumed.push(std::move(copy));
    }
    device.set("consumesCounters", std::move(consumed));
  }
  return device;
}

bool is_costly(const Value& device) {
  if (!device["taints"].empty() || !device["consumesCounters"].empty()) return true;
  for (const auto& [name, attribute] : device["attributes"].members()) {
    for (const char* list : {"ints", "bools", "strings", "versions"}) {
      if (attribute.contains(list)) return true;
    }
  }
  return false;
}

Result<> check_names(const Pool& pool) {
  std::set<std::string, std::less<>> devices;
  std::map<std::string, Value, std::less<>> counters;
  for (const auto& slice : pool.slices) {
    for (const auto& set : slice.shared_counters) {
      const std::string name = set["name"].str();
      if (!counters.emplace(name, set["counters"]).second) {
        return Error::invalid(
            cat("pool ", quoted(pool.name), ": duplicate counter set ", quoted(name)));
      }
    }
  }
  for (const auto& slice : pool.slices) {
    for (const auto& device : slice.devices) {
      const Value& object = device.object();
      const std::string name = object["name"].str();
      if (!devices.insert(name).second) {
        return Error::invalid(
            cat("pool ", quoted(pool.name), ": duplicate device name ", quoted(name)));
      }
      for (const auto& consumed : object["consumesCounters"].items()) {
        const std::string set = consumed["counterSet"].str();
        const auto found = counters.find(set);
        if (found == counters.end()) {
          return Error::invalid(cat("pool ", quoted(pool.name), ", device ", quoted(name),
                                    ": unknown counter set ", quoted(set)));
        }
        for (const auto& [counter, amount] : consumed["counters"].members()) {
          if (found->second.contains(counter)) continue;
          return Error::invalid(cat("pool ", quoted(pool.name), ", device ", quoted(name),
                                    ": unknown counter ", quoted(counter), " in counter set ",
                                    quoted(set)));
        }
      }
    }
  }
  return success();
}

class Splitter {
 public:
  explicit Splitter(const Pool& pool) : pool_(pool) {}

  void add(const SliceContent& content) {
    add_list("sharedCounters", counter_sets(content), kMaxCounterSets, false);
    bool costly = false;
    std::vector<Value> devices;
    devices.reserve(content.devices.size());
    for (const auto& device : content.devices) {
      devices.push_back(canonical_device(device.object()));
      costly = costly || is_costly(devices.back());
    }
    add_list("devices", std::move(devices), costly ? kMaxCostlyDevices : kMaxDevices,
             content.per_device_node_selection);
    if (content.devices.empty() && content.shared_counters.empty()) slices_.push_back(base(false));
  }

  std::vector<Value> take() { return std::move(slices_); }

 private:
  static std::vector<Value> counter_sets(const SliceContent& content) {
    std::vector<Value> sets;
    for (const auto& given : content.shared_counters) {
      Value set = given;
      set.set("counters", canonical_amounts(given["counters"]));
      sets.push_back(std::move(set));
    }
    return sets;
  }

  Value base(bool per_device) const {
    Value slice = Value::object();
    if (per_device) {
      slice.set("perDeviceNodeSelection", true);
    } else if (!pool_.node_selector.is_null()) {
      slice.set("nodeSelector", pool_.node_selector);
    } else if (pool_.all_nodes) {
      slice.set("allNodes", true);
    }
    return slice;
  }

  void add_list(std::string_view field, std::vector<Value> entries, std::size_t limit,
                bool per_device) {
    for (std::size_t from = 0; from < entries.size(); from += limit) {
      const std::size_t to = std::min(entries.size(), from + limit);
      Value list = Value::array();
      for (std::size_t i = from; i < to; ++i) list.push(std::move(entries[i]));
      Value slice = base(per_device);
      slice.set(field, std::move(list));
      slices_.push_back(std::move(slice));
    }
  }

  const Pool& pool_;
  std::vector<Value> slices_;
};

}  // namespace

Device& Device::attribute(std::string_view name, const Value& value) {
  const char* kind = value.is_boolean() ? "bool" : value.is_integer() ? "int" : "string";
  object_.mut("attributes").set(name, Value::object({{kind, value}}));
  return *this;
}

Device& Device::version(std::string_view name, std::string_view value) {
  object_.mut("attributes").set(name, Value::object({{"version", value}}));
  return *this;
}

Device& Device::capacity(std::string_view name, std::string_view quantity, Value policy) {
  Value amount = Value::object({{"value", quantity}});
  if (!policy.is_null()) amount.set("requestPolicy", std::move(policy));
  object_.mut("capacity").set(name, std::move(amount));
  return *this;
}

Device& Device::taint(std::string_view key, std::string_view effect, std::string_view value) {
  const Value* before = object_.find("taints");
  Value taints = before != nullptr ? *before : Value::array();
  Value taint = Value::object({{"key", key}});
  if (!value.empty()) taint.set("value", value);
  taint.set("effect", effect);
  taints.push(std::move(taint));
  return set("taints", std::move(taints));
}

Device& Device::set(std::string_view field, Value value) {
  object_.set(field, std::move(value));
  return *this;
}

Pool make_pool(std::string name, std::vector<Device> devices) {
  Pool pool;
  pool.name = std::move(name);
  pool.slices.emplace_back();
  pool.slices.back().devices = std::move(devices);
  return pool;
}

Result<std::vector<Value>> slices_of(const Pool& pool) {
  DIBS_CHECK(check_names(pool));
  Splitter splitter(pool);
  for (const auto& content : pool.slices) splitter.add(content);
  return splitter.take();
}

}  // namespace dibs::driver
